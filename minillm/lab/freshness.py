"""Whether a lesson's recorded output still shows what its cell does. Nobody should read a stale figure.

A recorded cell carries ``metadata.minillm.recorded``: gpu, torch, date, a stamp of what its output was made
by (see `stamp.cell_stamp`) and a hash of the output itself. If either differs, the output is stale: the
source has changed since, or somebody ran the cell elsewhere and saved it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from .results import MISSING
from .stamp import cell_stamp, experiments_named, source_of


def needs_recording(cell: dict) -> bool:
    """Whether this cell's outputs come from a GPU: it names an experiment, or carries the tag "gpu"."""
    if cell["cell_type"] != "code":
        return False
    return "gpu" in cell["metadata"].get("tags", ()) or bool(experiments_named(source_of(cell)))


def stamp_cell(cell: dict, provenance: dict, before: Sequence[dict] = ()) -> None:
    """Write into the cell that its outputs were recorded now, on the GPU and torch of ``provenance``.

    ``before`` are the notebook's cells above it: their imports say what the names in this one mean.
    """
    recorded = {key: provenance[key] for key in ("gpu", "torch", "date")}
    recorded |= {"stamp": cell_stamp(cell, before), "outputs": _outputs_hash(cell)}
    cell["metadata"]["minillm"] = {**_ours(cell), "recorded": recorded}


def is_recorded(cell: dict) -> bool:
    """Whether the cell carries recorded outputs, fresh or stale; a placeholder is none.

    A cell that showed nothing when it was recorded counts as recorded without outputs.
    """
    recorded, outputs = _ours(cell).get("recorded"), cell.get("outputs") or []
    if recorded is None:
        return False
    return (
        not all(map(is_placeholder, outputs)) if outputs else recorded.get("outputs") == _outputs_hash(cell)
    )


def is_stale(cell: dict, before: Sequence[dict] = ()) -> bool:
    """Whether the cell's recorded outputs are of another source than it has, or uses, now; or of another run.

    ``before`` are the notebook's cells above it.
    """
    if not is_recorded(cell):
        return False
    recorded = _ours(cell)["recorded"]
    return recorded.get("stamp") != cell_stamp(cell, before) or recorded.get("outputs") != _outputs_hash(cell)


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


def _outputs_hash(cell: dict) -> str:
    """sha256 over the outputs, however the file splits their text into lines."""
    plain = json.dumps(_joined(cell.get("outputs") or []), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(plain.encode()).hexdigest()


def _joined(value):
    if isinstance(value, dict):
        return {key: _joined(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(part, str) for part in value):
            return "".join(value).rstrip("\n")
        return [_joined(part) for part in value]
    return value.rstrip("\n") if isinstance(value, str) else value


def _ours(cell: dict) -> dict:
    return cell["metadata"].get("minillm", {})
