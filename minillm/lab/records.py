"""The record files: numbers measured on named GPUs, one JSON file a GPU, shipped with the package.

``{"gpu": …, "runs": {id: provenance}, "experiments": {name: {"run": id, "source": hash, "data": {…}}}}``
"""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path

from .provenance import run_id

FOLDER = Path(__file__).parent / "records"
# Whose record is shown where there is no GPU, or none of this GPU: the first that has the experiment.
PREFERENCE = ("H200", "H100", "A100", "B200", "L4", "T4", "RTX 4090")


def slug(gpu: str) -> str:
    """The file name's form of a GPU's name: "nvidia-h200" of "NVIDIA H200"."""
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")


def recording_path(gpu: str) -> Path | None:
    """The file to write to: MINILLM_RECORD (a .json file, or a folder of them); None when it is not set."""
    target = os.environ.get("MINILLM_RECORD")
    if not target:
        return None
    return Path(target) if target.endswith(".json") else Path(target) / f"{slug(gpu)}.json"


def read(path: Path) -> dict:
    """One record file; a file that is no record is warned about and counts as empty."""
    try:
        return _parsed(path)
    except ValueError as error:
        warnings.warn(str(error), stacklevel=2)
        return {"gpu": "", "runs": {}, "experiments": {}}


def _parsed(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {
            "gpu": content["gpu"],
            "runs": dict(content["runs"]),
            "experiments": dict(content["experiments"]),
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"the record file {path.name} cannot be read ({type(error).__name__}: {error}); expected what "
            "`python -m minillm run --record` writes: record it again or restore it"
        ) from error


def look_up(name: str, source: str, gpu: str = "") -> tuple[list[tuple[dict, dict]], bool]:
    """The fresh records of an experiment as (run, data), best match first; and whether a stale one exists.

    Fresh means recorded with the experiment's present ``source`` hash. The record of ``gpu`` itself comes
    first, then by PREFERENCE, then the newest.
    """
    fresh, stale = [], False
    for path in sorted(FOLDER.glob("*.json")):
        content = read(path)
        entry = content["experiments"].get(name)
        if entry is None:
            continue
        if entry.get("source") == source and entry.get("run") in content["runs"]:
            fresh.append((content["runs"][entry["run"]], entry["data"]))
        else:
            stale = True
    fresh.sort(key=lambda record: record[0]["date"], reverse=True)
    fresh.sort(
        key=lambda record: (record[0]["gpu"] != gpu, _rank(record[0]["gpu"]))
    )  # stable: newest stays first
    return fresh, stale


def _rank(gpu: str) -> int:
    return next((at for at, model in enumerate(PREFERENCE) if model in gpu), len(PREFERENCE))


def write(path: Path, name: str, source: str, data: dict, run: dict) -> None:
    """Put one experiment into the record file, beside what is there; whole or not at all.

    Runs that no experiment refers to any more are dropped. ValueError when the file is another GPU's, or is
    damaged: it is left as it is, so that what can be saved of it can be saved.
    """
    content = _parsed(path) if path.exists() else {"gpu": run["gpu"], "runs": {}, "experiments": {}}
    content["gpu"] = content["gpu"] or run["gpu"]
    if content["gpu"] != run["gpu"]:
        raise ValueError(
            f"{path.name} is the record of {content['gpu']} and this is {run['gpu']}; a file holds one GPU: "
            "set MINILLM_RECORD to a folder, or to another file"
        )
    run_key = run_id(run)
    content["runs"][run_key] = run
    content["experiments"][name] = {"run": run_key, "source": source, "data": data}
    used = {entry["run"] for entry in content["experiments"].values()}
    content["runs"] = {key: value for key, value in content["runs"].items() if key in used}
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    whole.write_text(_text(content), encoding="utf-8", newline="\n")
    os.replace(whole, path)


def _text(content: dict) -> str:
    """JSON with one line a run and one line an experiment, sorted: a new recording is a readable diff."""

    def lines(entries: dict) -> str:
        return ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in sorted(entries.items())
        )

    return (
        f'{{\n "gpu": {json.dumps(content["gpu"])},\n "runs": {{\n{lines(content["runs"])}\n }},\n'
        f' "experiments": {{\n{lines(content["experiments"])}\n }}\n}}\n'
    )
