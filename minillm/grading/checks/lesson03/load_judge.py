"""Exercise 3.2: static inputs before and after a load, and which mistake explains what stands in them."""

from __future__ import annotations

import torch

from minillm import graphs
from minillm.grading.checks.lesson03.load_places import at_the_end, left_over, one_behind
from minillm.grading.checks.lesson03.stream_order import StreamOrder
from minillm.grading.checks.lesson03.watching import Watch, place
from minillm.grading.registry import Wrong
from minillm.inputs import BUFFERS, DecodeInputs

Values = dict[str, torch.Tensor]  # a bundle's tensors by name, on the host
BLOCK_SIZE = 16
# Which stale buffer is named first: the one that does most harm.
STALE = {
    "slot_mapping": "stale-slots",
    "context_lens": "stale-lengths",
    "positions": "stale-positions",
    "block_tables": "stale-table-rows",
    "token_ids": "stale-tokens",
}


def make_batch(rng, rows: int, columns: int, blocks: int = 200) -> DecodeInputs:
    """`rows` live sequences with full tables of `columns` blocks: no number that padding could hold."""
    ids = rng.sample(range(2, blocks), rows * columns)
    tables = [ids[row * columns : (row + 1) * columns] for row in range(rows)]
    longest = columns * BLOCK_SIZE
    lengths = rng.sample(range(longest - BLOCK_SIZE + 3, longest + 1), rows)
    tokens = rng.sample(range(2, 120), rows)
    return DecodeInputs.for_sequences(tokens, tables, lengths, BLOCK_SIZE, columns, device=graphs.device)


def values(inputs: DecodeInputs) -> Values:
    return {name: tensor.cpu().clone() for name, tensor in inputs.tensors().items()}


def padded(batch: Values, rows: int, columns: int) -> Values:
    """The truth: `batch`, filled up to `rows` and `columns` as the padding contract has it."""
    found = {}
    for name, buffer in BUFFERS.items():
        own = batch[name]
        shape = (rows, columns) if own.dim() == 2 else (rows,)
        found[name] = torch.full(shape, buffer.padding, dtype=buffer.dtype)
        found[name][tuple(slice(size) for size in own.shape)] = own
    return found


def judge_load(answer, static: DecodeInputs, batch: DecodeInputs) -> None:
    """Call the answer once; raise Wrong if something else than `batch` and padding stands in `static`."""
    before, own, places = values(static), values(batch), _places(static)
    objects, watch = static.tensors(), Watch()
    order = StreamOrder(watch, *objects.values())
    rows, columns = static.block_tables.shape
    small = list(own["block_tables"].shape)
    seen = f"`static` has tables of {rows} rows and {columns} columns, `batch` {small[0]} and {small[1]}"
    try:
        with order.on(), watch.on():
            answer(static, batch)
    except Exception as error:
        if watch.moved:  # the emulator may refuse what CUDA lets happen
            raise Wrong("moved", f"It ended in {type(error).__name__}: {error}") from error
        raise
    for name, was in places.items():
        if _places(static)[name] != was:
            key = "moved" if getattr(static, name) is objects[name] else "rebound"
            raise Wrong(key, f"{name} was at {was[0]:#x} and is at {getattr(static, name).data_ptr():#x}.")
    after = values(static)
    if any(not torch.equal(now, own[name]) for name, now in values(batch).items()):
        raise Wrong("changed-input", f"The tensors of `batch` are not what they were: {seen}.")
    key, name = explain(before, after, own) or (None, "")
    if key:
        right = padded(own, rows, columns)[name]
        raise Wrong(key, f"{seen}. {name} is {after[name].tolist()}; right is {right.tolist()}.")
    if order.loose:
        raise Wrong("unordered", order.loose)
    if watch.waits:
        raise Wrong(
            "waits", f"The first of {len(watch.waits)} such calls in one load was {watch.waits[0][0]}."
        )


def _places(inputs: DecodeInputs) -> dict[str, tuple]:
    return {name: place(tensor) for name, tensor in inputs.tensors().items()}


def explain(before: Values, after: Values, own: Values) -> tuple[str, str] | None:
    """(mistake, name of a tensor that shows it), or None if `after` is right."""
    right = padded(own, *after["block_tables"].shape)
    wrong = {name: after[name] != right[name] for name in BUFFERS}
    if not any(bool(each.any()) for each in wrong.values()):
        return None
    return _rows_of_sequences(before, after, own, wrong) or _rows_of_padding(before, after, own, wrong)


def _rows_of_sequences(before, after, own, wrong) -> tuple[str, str] | None:
    """The mistake in what was to be copied."""
    count, region = len(own["token_ids"]), {n: tuple(slice(s) for s in own[n].shape) for n in BUFFERS}
    bad = [name for name in BUFFERS if bool(wrong[name][region[name]].any())]
    if not bad:
        return None
    unchanged = [n for n in bad if torch.equal(after[n][region[n]], before[n][region[n]])]
    cleared = [n for n in bad if bool((after[n][region[n]] == BUFFERS[n].padding).all())]
    if count > 1 and all(not bool(wrong[n][region[n]][: count - 1].any()) for n in bad):
        return "off-by-one", bad[0]
    if len(unchanged) == len(BUFFERS):
        return "nothing-loaded", bad[0]
    if at_end := [name for name in bad if at_the_end(after[name], own[name])]:
        return "at-the-end", at_end[0]
    if cleared:
        return "cleared-too-late", cleared[0]
    return ("field-forgotten", unchanged[0]) if unchanged else ("wrong-value", bad[0])


def _rows_of_padding(before, after, own, wrong) -> tuple[str, str]:
    """The mistake in the rows behind the batch and the columns behind its tables."""
    count, width = own["block_tables"].shape
    names = [name for name in BUFFERS if bool(wrong[name].any())]
    rows = {name: (after[name][count:], before[name][count:]) for name in names}
    columns = after["block_tables"][:count, width:], before["block_tables"][:count, width:]
    for name in names:
        if bool((after[name][wrong[name]] == -1).any()):
            return "minus-one", name
    lengths = after["context_lens"][count:]
    if "context_lens" in names and bool((lengths[wrong["context_lens"][count:]] == 0).all()):
        return "zero-length", "context_lens"
    if one_behind(count, width, wrong, names):
        return "off-by-one", names[0]
    stale = [name for name in STALE if name in names and left_over(*rows[name], wrong[name][count:])]
    stale_columns = left_over(*columns, wrong["block_tables"][:count, width:])
    if len(stale) == len(BUFFERS):
        return "nothing-cleared", "slot_mapping"
    if stale:
        return STALE[stale[0]], stale[0]
    if stale_columns:
        return "stale-columns", "block_tables"
    slots = after["slot_mapping"][count:]
    if "slot_mapping" in names and bool(torch.isin(slots, own["slot_mapping"]).all()):
        return "repeats-a-sequence", "slot_mapping"
    return "wrong-padding", names[0]
