"""The running requests' block tables, on their way from the host's bookkeeping to the device."""

from __future__ import annotations

import torch


class BlockTables:
    """A host copy of the static ``device_tables`` [max_batch, max_blocks] int32, and its upload.

    All rows go over in one copy: one launch, however many changed. The copy reads pinned memory while the
    host goes on, so each upload has a buffer of its own until the step behind it was waited for: with
    ``underway`` uploads that may still be read, one more is enough. A single buffer would be overwritten
    before it was copied.
    """

    def __init__(self, device_tables: torch.Tensor, underway: int):
        self.device_tables, pinned = device_tables, device_tables.device.type == "cuda"
        host = [
            torch.zeros(device_tables.shape, dtype=torch.int32, pin_memory=pinned)
            for _ in range(underway + 1)
        ]
        self._buffers = [(tensor, tensor.numpy()) for tensor in host]
        self._now = self._buffers[0][1].copy()
        self._next = 0
        self.changed = False

    def set_row(self, row: int, blocks: list[int]) -> None:
        """The row belongs to a request with these blocks; the columns behind them are 0, the null block."""
        self._now[row, : len(blocks)] = blocks
        self._now[row, len(blocks) :] = 0
        self.changed = True

    def move_row(self, source: int, target: int) -> None:
        """The request in row ``source`` goes to row ``target``; nobody is in ``source`` then."""
        self._now[target] = self._now[source]
        self.set_row(source, [])

    def clear(self) -> None:
        """Nobody is in any row."""
        self._now[:] = 0
        self.changed = True

    def set_block(self, row: int, column: int, block: int) -> None:
        """The row's request was given a block."""
        self._now[row, column] = block
        self.changed = True

    def upload(self) -> None:
        """Put the tables on the device if anything changed; does not wait."""
        if not self.changed:
            return
        tensor, array = self._buffers[self._next]
        self._next = (self._next + 1) % len(self._buffers)
        array[:] = self._now
        self.device_tables.copy_(tensor, non_blocking=True)
        self.changed = False
