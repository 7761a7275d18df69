"""Answers to 3.2."""

import dataclasses

import torch
from torch.nn import functional

from minillm.engine.buffers import StaticBuffers
from minillm.grading.corpus import right, wrong
from minillm.inputs import BUFFERS, DecodeInputs

VECTORS = ("token_ids", "positions", "slot_mapping", "context_lens")


def region(target, source):
    return target[tuple(slice(size) for size in source.shape)]


def pad_and_copy(static, batch, skip=(), **other_padding):
    for name, buffer in BUFFERS.items():
        target, source = getattr(static, name), getattr(batch, name)
        if name not in skip:
            target.fill_(other_padding.get(name, buffer.padding))
        region(target, source).copy_(source)


@right("3.2")
def tails_by_hand(static, batch):
    n, w = batch.block_tables.shape
    for name in VECTORS:
        getattr(static, name)[:n] = getattr(batch, name)
    for tail in (static.token_ids[n:], static.positions[n:], static.slot_mapping[n:]):
        tail.zero_()
    static.context_lens[n:] = 1
    static.block_tables[:n, :w] = batch.block_tables
    static.block_tables[:n, w:] = 0
    static.block_tables[n:] = 0


@right("3.2")
def from_a_bundle_of_padding(static, batch):
    empty = DecodeInputs.padding(*static.block_tables.shape, device=static.token_ids.device)
    for name, target in vars(static).items():
        target.copy_(getattr(empty, name))
        region(target, getattr(batch, name)).copy_(getattr(batch, name), non_blocking=True)


@right("3.2")
def pads_the_source(static, batch):
    rows, columns = static.block_tables.shape
    n, w = batch.block_tables.shape
    for field in dataclasses.fields(static):
        source = getattr(batch, field.name)
        missing = (0, columns - w, 0, rows - n) if source.ndim == 2 else (0, rows - n)
        padded = functional.pad(source, missing, value=int(field.name == "context_lens"))
        torch.add(padded, 0, out=getattr(static, field.name))


@right("3.2")
def by_index_and_mask(static, batch):
    n, w = batch.block_tables.shape
    device = static.token_ids.device
    rows = torch.arange(static.batch, device=device) < n
    index = torch.arange(n, device=device)
    with torch.inference_mode():
        for name in VECTORS:
            target = getattr(static, name)
            target.index_copy_(0, index, getattr(batch, name))
            target.copy_(torch.where(rows, target, torch.full_like(target, BUFFERS[name].padding)))
        static.block_tables.zero_().narrow(0, 0, n).narrow(1, 0, w).add_(batch.block_tables)


@wrong("3.2", "reexport")
def lets_the_engine_do_it(static, batch):
    rest = [torch.zeros(static.batch) for _ in range(6)]
    StaticBuffers(static, *rest).load(batch, static.batch)


@wrong("3.2", "rebound")
def assigns_the_fields(static, batch):
    for name in BUFFERS:
        setattr(static, name, getattr(batch, name))


@wrong("3.2", "rebound")
def builds_the_table_anew(static, batch):
    pad_and_copy(static, batch)
    table = torch.zeros_like(static.block_tables)
    region(table, batch.block_tables).copy_(batch.block_tables)
    static.block_tables = table


@wrong("3.2", "moved")
def other_data_under_the_same_tensors(static, batch):
    for name, buffer in BUFFERS.items():
        target, source = getattr(static, name), getattr(batch, name)
        fresh = torch.full_like(target, buffer.padding)
        region(fresh, source).copy_(source)
        target.data = fresh


@wrong("3.2", "moved")
def sets_the_tensors(static, batch):
    for name in BUFFERS:
        getattr(static, name).set_(getattr(batch, name))


@wrong("3.2", "nothing-loaded")
def binds_the_loop_variable(static, batch):
    for target, source in zip(static.tensors().values(), batch.tensors().values(), strict=True):
        target = source.clone()  # noqa: F841, PLW2901


@wrong("3.2", "nothing-loaded")
def into_copies(static, batch):
    n, w = batch.block_tables.shape
    for name in VECTORS:
        getattr(static, name).clone()[:n].copy_(getattr(batch, name))
    static.block_tables.clone()[:n, :w].copy_(batch.block_tables)


@wrong("3.2", "field-forgotten")
def forgets_the_positions(static, batch):
    """The first of the six mistakes of the articles' manager."""
    for name in BUFFERS:
        if name != "positions":
            pad_and_copy_one(static, batch, name)


def pad_and_copy_one(static, batch, name):
    target, source = getattr(static, name), getattr(batch, name)
    target.fill_(BUFFERS[name].padding)
    region(target, source).copy_(source)


@wrong("3.2", "cleared-too-late")
def copies_and_clears(static, batch):
    for name, buffer in BUFFERS.items():
        region(getattr(static, name), getattr(batch, name)).copy_(getattr(batch, name))
        getattr(static, name).fill_(buffer.padding)


@wrong("3.2", "cleared-too-late")
def clears_the_table_after_it(static, batch):
    pad_and_copy(static, batch)
    static.block_tables.zero_()


@wrong("3.2", "off-by-one")
def first_padding_row_left_out(static, batch):
    n, w = batch.block_tables.shape
    for name in VECTORS:
        getattr(static, name)[:n] = getattr(batch, name)
        getattr(static, name)[n + 1 :] = BUFFERS[name].padding
    static.block_tables[:n, :w] = batch.block_tables
    static.block_tables[:n, w + 1 :] = 0
    static.block_tables[n + 1 :] = 0


@wrong("3.2", "off-by-one")
def last_column_left_out(static, batch):
    pad_and_copy(static, batch, skip=("block_tables",))
    n, w = batch.block_tables.shape
    static.block_tables[n:] = 0
    static.block_tables[:n, w + 1 :] = 0


@wrong("3.2", "off-by-one")
def clears_from_the_last_row_on(static, batch):
    pad_and_copy(static, batch)
    for name, buffer in BUFFERS.items():
        getattr(static, name)[batch.batch - 1 :] = buffer.padding


@wrong("3.2", "nothing-cleared")
def only_copies(static, batch):
    for name in BUFFERS:
        region(getattr(static, name), getattr(batch, name)).copy_(getattr(batch, name))


@wrong("3.2", "nothing-cleared")
def clears_columns_only(static, batch):
    n, w = batch.block_tables.shape
    only_copies(static, batch)
    static.block_tables[:n, w:] = 0


def all_but(*skip):
    """Pads every tensor but those of `skip`, whose rows behind the batch stay; columns are padded always."""

    def answer(static, batch):
        n, w = batch.block_tables.shape
        pad_and_copy(static, batch, skip)
        static.block_tables[:n, w:] = 0

    return answer


@wrong("3.2", "stale-slots")
def forgets_the_slots(static, batch):
    all_but("slot_mapping")(static, batch)


@wrong("3.2", "stale-slots")
def pads_only_the_lengths(static, batch):
    only_copies(static, batch)
    n, w = batch.block_tables.shape
    static.block_tables[:n, w:] = 0
    static.context_lens[n:] = 1


@wrong("3.2", "stale-lengths")
def forgets_the_lengths(static, batch):
    all_but("context_lens")(static, batch)


@wrong("3.2", "stale-positions")
def forgets_the_tail_of_the_positions(static, batch):
    all_but("positions")(static, batch)


@wrong("3.2", "stale-table-rows")
def clears_the_tables_of_the_batch_only(static, batch):
    all_but("block_tables")(static, batch)


@wrong("3.2", "stale-tokens")
def tokens_do_not_matter(static, batch):
    all_but("token_ids")(static, batch)


@wrong("3.2", "stale-columns")
def clears_rows_only(static, batch):
    pad_and_copy(static, batch, skip=("block_tables",))
    static.block_tables[batch.batch :] = 0


@wrong("3.2", "stale-columns")
def clears_when_the_batch_is_smaller(static, batch):
    """A table that is narrower in a batch of the same size is overlooked."""
    if batch.batch < static.batch:
        pad_and_copy(static, batch)
    else:
        only_copies(static, batch)


@wrong("3.2", "minus-one")
def no_slot_is_minus_one(static, batch):
    pad_and_copy(static, batch, slot_mapping=-1)


@wrong("3.2", "minus-one")
def everything_minus_one(static, batch):
    pad_and_copy(static, batch, **dict.fromkeys(BUFFERS, -1))


@wrong("3.2", "zero-length")
def zeroes_everything(static, batch):
    for tensor in static.tensors().values():
        tensor.zero_()
    only_copies(static, batch)


@wrong("3.2", "repeats-a-sequence")
def repeats_the_last_row(static, batch):
    n, w = batch.block_tables.shape
    pad_and_copy(static, batch)
    for name in VECTORS:
        getattr(static, name)[n:] = getattr(batch, name)[-1]
    static.block_tables[n:, :w] = batch.block_tables[-1]


@wrong("3.2", "wrong-padding")
def full_length_for_padding(static, batch):
    pad_and_copy(static, batch, context_lens=16)


@wrong("3.2", "wrong-padding")
def ones_everywhere(static, batch):
    pad_and_copy(static, batch, **dict.fromkeys(BUFFERS, 1))


@wrong("3.2", "waits")
def row_by_row_with_item(static, batch):
    pad_and_copy(static, batch)
    for row in range(batch.batch):
        static.context_lens[row] = batch.context_lens[row].item()


@wrong("3.2", "waits")
def through_lists(static, batch):
    rows = static.batch
    for name in VECTORS:
        listed = getattr(batch, name).tolist()
        listed += [BUFFERS[name].padding] * (rows - len(listed))
        getattr(static, name).copy_(torch.tensor(listed))
    pad_and_copy_one(static, batch, "block_tables")


@wrong("3.2", "waits")
def synchronizes_first(static, batch):
    from minillm.graphs import cuda

    cuda.current_stream().synchronize()
    pad_and_copy(static, batch)


@wrong("3.2", "changed-input")
def pads_the_batch_in_place(static, batch):
    for name, source in batch.tensors().items():
        region(getattr(static, name), source).copy_(source)
        source.fill_(BUFFERS[name].padding)
