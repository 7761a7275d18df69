"""The learner's progress.json: read, changed and written so that nothing is ever lost.

A damaged file is set aside and kept, and what is whole in it goes on. Where the file cannot be read or
written, the progress lives as long as the kernel, and a warning says so once. MINILLM_PROGRESS names another
file.
"""

import json
import os
import shutil
import time
import warnings
from datetime import datetime, timezone
from pathlib import Path

from minillm.grading.file_lock import locked
from minillm.grading.outcome import NOT_ATTEMPTED, Outcome
from minillm.grading.progress_entries import FRESH, VERSION, parse

_in_memory: dict[Path, dict] = {}  # progress of files that cannot be used


def location() -> Path:
    """MINILLM_PROGRESS, else progress.json in the course folder found upwards, else in this folder.

    Where that is a link, what it leads to: the file is replaced at each change, and the link must stay.
    """
    return Path(os.path.realpath(_chosen_location()))


def _chosen_location() -> Path:
    if chosen := os.environ.get("MINILLM_PROGRESS"):
        return Path(os.path.expanduser(chosen))
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "notebooks").is_dir() and (folder / "exercises").is_dir():
            return folder / "progress.json"
    return here / "progress.json"


def read() -> dict[str, dict]:
    """Exercise id -> its entry, for every exercise that was touched."""
    return _load(location())


def note_outcome(outcome: Outcome) -> None:
    """Count an attempt (an untouched stub is none), and keep the time of the first PASS."""

    def change(entry):
        entry["status"] = outcome.status
        if outcome.status != NOT_ATTEMPTED:
            entry["attempts"] += 1
        if outcome.passed and entry["first_pass"] is None:
            entry["first_pass"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
        if outcome.misconception:
            seen = entry.setdefault("misconceptions", {})
            seen[outcome.misconception] = seen.get(outcome.misconception, 0) + 1

    _update(outcome.id, change)


def note_hint(id: str, available: int) -> int:
    """Count one more hint; how many the learner has now, at most `available`."""
    return _update(id, lambda entry: entry.update(hints=min(entry["hints"] + 1, available)))["hints"]


def note_revealed(id: str) -> None:
    """Mark the exercise as one whose solution was looked at."""
    _update(id, lambda entry: entry.update(revealed=True))


def _update(id: str, change) -> dict:
    path = location()
    with locked(path):
        exercises = _load(path)
        entry = exercises.setdefault(id, dict(FRESH))
        change(entry)
        if path not in _in_memory:
            try:
                _write(path, {"version": VERSION, "exercises": exercises})
            except OSError as error:
                _keep_in_memory(path, exercises, "written", error)
    return entry


def _load(path: Path) -> dict[str, dict]:
    if path in _in_memory:
        return _in_memory[path]
    try:
        good, damage = parse(path.read_text(encoding="utf-8-sig"))  # some editors begin it with a mark
    except FileNotFoundError:
        return {}
    except OSError as error:
        return _keep_in_memory(path, {}, "read", error)
    except UnicodeDecodeError as error:
        good, damage = {}, str(error)
    return good if damage is None else _set_aside(path, damage, good)


def _set_aside(path: Path, reason: str, good: dict) -> dict:
    """Rename the damaged file; the `good` entries are all that goes on."""
    stem = f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
    asides = (
        path.with_name(f"{stem}{more}{path.suffix}") for more in ("", *(f"-{n}" for n in range(2, 999)))
    )
    aside = next(each for each in asides if not each.exists())
    try:
        os.replace(path, aside)
        if good:
            _write(path, {"version": VERSION, "exercises": good})
    except OSError as error:
        return _keep_in_memory(path, good, "repaired", error)
    warnings.warn(f"{path.name} is damaged ({reason}); it was kept as {aside.name}", stacklevel=5)
    return good


def _keep_in_memory(path: Path, exercises: dict, what: str, error: OSError) -> dict:
    warnings.warn(
        f"{path} cannot be {what} ({error.strerror or error}): your progress is kept until the kernel stops. "
        "Set MINILLM_PROGRESS to a file that you can write.",
        stacklevel=5,
    )
    _in_memory[path] = exercises
    return exercises


def _write(path: Path, content: dict) -> None:
    """Replace the file in one step, so that a reader or a crash never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}-{os.getpid()}.tmp")
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, sort_keys=True)
            file.write("\n")
        if path.exists():
            shutil.copymode(path, unfinished)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
