"""Whether a lesson's recorded output still shows what its cell does. Nobody should read a stale figure.

A recorded cell carries ``metadata.minillm.recorded``: gpu, torch, date and a stamp, a hash over the
cell's source and that of the experiments whose names stand in it. A cell with the tag "gpu" that names none
draws what an earlier cell measured, so the experiments named before it count. A differing stamp means stale.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from .results import MISSING


def cell_stamp(source: str, earlier: Sequence[str] = ()) -> str:
    """sha256 over a cell's source, trailing blanks left out, and the experiments named in it or earlier."""
    lines = "\n".join(line.rstrip() for line in source.strip().splitlines())
    digest = hashlib.sha256(lines.encode())
    named = {key: value for text in (*earlier, source) for key, value in experiments_named(text).items()}
    for template, experiment_hash in sorted(named.items()):
        digest.update(f"\0{template}\0{experiment_hash}".encode())
    return digest.hexdigest()


def experiments_named(source: str) -> dict[str, str]:
    """Template -> source hash of each registered experiment that a string literal of the cell names.

    An f-string names it too: each {expression} in it stands for some parameter.
    """
    from .experiments import find, source_hash

    found = {}
    for literal in _literals(source):
        if re.fullmatch(r"[a-z]\w*(/[^/\s]+)+", literal):
            try:
                template = find(literal)[0].template
            except LookupError:
                continue
            found[template] = source_hash(literal)
    return found


def _literals(source: str) -> list[str]:
    """The string literals of a cell; an f-string with a placeholder for each of its expressions."""
    plain = re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source)  # notebook magics are not Python
    try:
        nodes = list(ast.walk(ast.parse(plain)))
    except SyntaxError:
        return re.findall(r"""["']([^"'\n]+)["']""", source)
    literals = [
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            literals.append("".join(map(str, parts)))
    return literals


def needs_recording(cell: dict) -> bool:
    """Whether this cell's outputs come from a GPU: it names an experiment, or carries the tag "gpu"."""
    if cell["cell_type"] != "code":
        return False
    return "gpu" in cell["metadata"].get("tags", ()) or bool(experiments_named(_source_of(cell)))


def stamp_cell(cell: dict, provenance: dict, before: Sequence[dict] = ()) -> None:
    """Write into the cell that its outputs were recorded now, on the GPU and torch of ``provenance``.

    ``before`` are the notebook's cells above it.
    """
    recorded = {key: provenance[key] for key in ("gpu", "torch", "date")}
    recorded["stamp"] = _stamp_of(cell, before)
    if not cell.get("outputs"):
        recorded["silent"] = True  # a cell that shows nothing lacks nothing
    cell["metadata"]["minillm"] = {**_ours(cell), "recorded": recorded}


def is_recorded(cell: dict) -> bool:
    """Whether the cell carries recorded outputs, fresh or stale; a placeholder is none.

    A cell that showed nothing when it was recorded counts as recorded without outputs.
    """
    recorded, outputs = _ours(cell).get("recorded"), cell.get("outputs") or []
    return recorded is not None and bool(
        recorded.get("silent") if not outputs else not all(map(is_placeholder, outputs))
    )


def is_stale(cell: dict, before: Sequence[dict] = ()) -> bool:
    """Whether the cell's recorded outputs are of another source than it has, or uses, now.

    ``before`` are the notebook's cells above it.
    """
    return is_recorded(cell) and _ours(cell)["recorded"].get("stamp") != _stamp_of(cell, before)


def _stamp_of(cell: dict, before: Sequence[dict]) -> str:
    source = _source_of(cell)
    draws_earlier = "gpu" in cell["metadata"].get("tags", ()) and not experiments_named(source)
    earlier = [_source_of(one) for one in before if one["cell_type"] == "code"] if draws_earlier else []
    return cell_stamp(source, earlier)


def shows_old_source(output: dict) -> bool:
    """Whether an output of ``lab.source`` shows lines that its file no longer holds."""
    shown = output.get("data", {}).get("text/plain", "")
    shown = shown if isinstance(shown, str) else "".join(shown)
    headed = re.match(r"# (minillm/\S+\.py), line \d+\n", shown)
    if not headed:
        return False
    path = Path(__file__).resolve().parents[2] / headed[1]
    return not path.exists() or shown[headed.end() :].rstrip() not in path.read_text(encoding="utf-8")


def placeholder_output() -> dict:
    """The output that stands where a recorded one is missing, as nbformat keeps outputs."""
    import nbformat

    return nbformat.v4.new_output(
        "display_data",
        data={"text/plain": MISSING, "text/html": f"<p><em>{MISSING}</em></p>"},
        metadata={"minillm": {"placeholder": True}},
    )


def is_placeholder(output: dict) -> bool:
    """Whether an output is `placeholder_output`'s."""
    return bool(output.get("metadata", {}).get("minillm", {}).get("placeholder"))


def _ours(cell: dict) -> dict:
    return cell["metadata"].get("minillm", {})


def _source_of(cell: dict) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)
