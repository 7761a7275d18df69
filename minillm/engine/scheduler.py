"""Who computes next: requests join, grow by blocks, are preempted when blocks run out, and finish.

The host's bookkeeping alone: no tensor, no device. First come, first served: nobody waits for one that came
later, and when blocks run out the latest gives its own back and is computed again (vLLM's "recompute":
https://arxiv.org/abs/2309.06180, section 4.5). So the earliest always gets on, and every request ends.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import NamedTuple

from ..kv_cache import BlockAllocator, OutOfBlocks
from .request import Request, Status


class Growth(NamedTuple):
    """A block that a running request was given: it goes into this column of its block table."""

    request: Request
    column: int
    block: int


class Scheduler:
    """Continuous batching over the blocks of one cache, for at most ``max_batch`` requests at a time.

    ``prefill_budget``: tokens that are prefilled in one step at most; longer prompts come in chunks. A
    request's place in ``running`` is its row on the device. ``moves`` lists what the device has to follow:
    (row that is given up, row that its content moves to).
    """

    def __init__(self, num_blocks: int, block_size: int, max_batch: int, prefill_budget: int):
        self.num_blocks, self.block_size = num_blocks, block_size
        self.max_batch, self.prefill_budget = max_batch, prefill_budget
        self.preemptions = 0
        self._begin()

    def _begin(self) -> None:
        self.allocator = BlockAllocator(self.num_blocks)
        self.waiting: list[Request] = []  # by arrival, those who were preempted among them
        self.prefilling: list[Request] = []
        self.running: list[Request] = []
        self.moves: list[tuple[int, int]] = []

    def add(self, request: Request) -> None:
        """Queue a request, behind those who came before it."""
        request.status, request.prefilled = Status.WAITING, 0
        insort(self.waiting, request, key=lambda other: other.id)

    def next_chunks(self) -> list[tuple[Request, int]]:
        """Which requests to prefill now, and how many tokens of each: the earliest first, up to who waits."""
        chunks, budget, longest = [], self.prefill_budget, 0
        for request in [*self.prefilling, *self.waiting]:
            count = min(budget, len(request.known) - request.prefilled)
            # Attention sees every chunk as long as the longest, so very unequal ones are not packed together.
            padded = (len(chunks) + 1) * max(longest, count)
            if not budget or (chunks and padded > 2 * self.prefill_budget):
                break
            if request.status is Status.WAITING and not self._admit(request):
                break
            chunks.append((request, count))
            budget, longest = budget - count, max(longest, count)
        return chunks

    def _admit(self, request: Request) -> bool:
        """Give a waiting request the blocks for what it has and its next token, if there is room for it."""
        inside = len(self.running) + len(self.prefilling)
        # One that was preempted may have all its tokens but the last one to come.
        needed = self.blocks_for(min(len(request.known) + 1, request.most_slots))
        # A block in reserve for each that runs, or the newcomer would soon be preempted again.
        if inside >= self.max_batch or needed + len(self.running) > self.allocator.num_free:
            return False
        self._give(request, self.allocator.allocate(needed))
        self.waiting.remove(request)
        self.prefilling.append(request)
        request.status = Status.PREFILLING
        return True

    def _give(self, request: Request, blocks: list[int]) -> None:
        request.blocks += blocks
        request.room = len(request.blocks) * self.block_size

    def blocks_for(self, tokens: int) -> int:
        """How many blocks hold that many tokens."""
        return -(-tokens // self.block_size)

    def prefilled(self, request: Request, count: int) -> bool:
        """``count`` more tokens are in the cache. True if that was all of them: the request then runs."""
        request.prefilled += count
        if request.prefilled < len(request.known):
            return False
        self.prefilling.remove(request)
        request.length = len(request.known) + 1  # the token that the prefill chose
        request.status = Status.RUNNING
        self.running.append(request)
        return True

    def grow(self, drain: Callable[[], None]) -> list[Growth]:
        """Give every running request the block that its next step writes to, the earliest first.

        With plenty free, those who soon need one get it with them: each growth costs an upload of the tables.
        When none is free, ``drain()`` waits for the steps underway, and some request may prove to have
        finished. Only then the latest is preempted, if need be the asking one.
        """
        growth, drained, early = [], False, 0
        # The step writes token number `length`; one whose last token is underway writes nothing any more.
        short = [r for r in self.running if r.room < r.length and r.room < r.most_slots]
        if short and self.allocator.num_free > 2 * len(self.running):
            early = self.block_size // 2
            short = [r for r in self.running if r.room < min(r.length + early, r.most_slots)]
        for request in sorted(short, key=lambda r: r.id):
            wanted = min(request.length + early, request.most_slots)
            while request.status is Status.RUNNING and request.room < wanted:
                try:
                    (block,) = self.allocator.allocate(1)
                except OutOfBlocks:
                    if not drained:
                        drain()
                    else:
                        self.preempt(max([*self.running, *self.prefilling], key=lambda r: r.id))
                    drained = True
                    continue
                growth.append(Growth(request, len(request.blocks), block))
                self._give(request, [block])
        return [it for it in growth if it.request.status is Status.RUNNING]

    def preempt(self, request: Request) -> None:
        """Take all blocks from a request, and queue it where it was; its tokens are kept."""
        self.release(request)
        request.preemptions += 1
        self.preemptions += 1
        self.add(request)

    def finish(self, request: Request) -> None:
        """The request has ended, or was cancelled: its blocks and its row are free."""
        self.release(request)
        request.status = Status.FINISHED

    def release(self, request: Request) -> None:
        """Take a request out of wherever it is."""
        blocks, request.blocks, request.room = request.blocks, [], 0
        self.allocator.free(blocks)
        if request.status is Status.RUNNING:
            row, last = self.running.index(request), len(self.running) - 1
            self.running[row] = self.running[last]
            self.running.pop()
            self.moves.append((last, row))
        elif request.status is Status.PREFILLING:
            self.prefilling.remove(request)
        elif request in self.waiting:
            self.waiting.remove(request)

    def restart(self, unfinished: list[Request]) -> None:
        """Trust nothing: every block is free, and ``unfinished`` are computed anew from their tokens."""
        self._begin()
        for request in unfinished:
            request.blocks, request.room = [], 0
            self.add(request)
