"""The scheduler on the host alone, before a device that is a list of rows, through random histories."""

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from minillm.engine.request import Request, Status
from minillm.engine.sampling import Sampling
from minillm.engine.scheduler import Scheduler


def request_of(number, prompt, most):
    return Request(number, [1] * prompt, Sampling(max_tokens=most), limit=prompt + most)


class History(RuleBasedStateMachine):
    """Turns of an engine whose tokens are all 1. A request ends, by a stop token that the host does not
    foresee, after ``ends[request]`` tokens; ``rows`` and ``tables`` are what a device would hold."""

    @initialize(
        num_blocks=st.integers(4, 14),
        block_size=st.integers(1, 4),
        max_batch=st.integers(1, 4),
        budget=st.integers(1, 9),
        ahead=st.integers(0, 2),
    )
    def start(self, num_blocks, block_size, max_batch, budget, ahead):
        self.scheduler = Scheduler(num_blocks, block_size, max_batch, budget)
        self.num_blocks, self.block_size, self.ahead = num_blocks, block_size, ahead
        self.rows, self.tables, self.flight = [], [], deque()
        self.requests, self.ends, self.preempted, self.drains = [], {}, [], 0
        original = self.scheduler.preempt

        def preempt(request):
            inside = [*self.scheduler.running, *self.scheduler.prefilling]
            assert request is max(inside, key=lambda r: r.id) and len(inside) > 1
            assert self.drains and not self.flight, "preempted without having looked whether one has ended"
            self.preempted.append(request)
            original(request)

        self.scheduler.preempt = preempt

    # ---- what may happen
    @rule(data=st.data(), prompt=st.integers(1, 14), most=st.integers(1, 12))
    def add(self, data, prompt, most):
        request = request_of(len(self.requests), prompt, most)
        if self.scheduler.blocks_for(request.most_slots) > self.num_blocks - 1:
            return  # the engine refuses it
        self.requests.append(request)
        self.ends[request] = data.draw(st.integers(1, most + 1))
        self.scheduler.add(request)
        assert request.status is Status.WAITING

    @rule(data=st.data())
    def cancel(self, data):
        unfinished = [r for r in self.requests if not r.done]
        if unfinished:
            request = data.draw(st.sampled_from(unfinished))
            request.finish = "cancelled"
            self.scheduler.finish(request)
            self.follow()

    @rule()
    def break_off(self):
        """What is underway is lost; tokens that have arrived are not."""
        self.flight.clear()
        self.rows, self.tables = [], []
        self.scheduler.restart([r for r in self.requests if not r.done])
        assert self.scheduler.allocator.num_free == self.num_blocks - 1 and not self.scheduler.running
        assert all(not r.blocks and r.prefilled == 0 for r in self.requests if not r.done)

    @rule(turns=st.integers(1, 6))
    def take_turns(self, turns):
        for _ in range(turns):
            self.turn()
            self.books_agree()

    # ---- one turn, as the engine's loop has it
    def turn(self):
        earliest = next((r for r in self.requests if not r.done), None)
        before = earliest and (len(earliest.known), earliest.prefilled, earliest.length)
        preempted = earliest and earliest.preemptions
        free_rows = self.scheduler.max_batch - len(self.scheduler.running) - len(self.scheduler.prefilling)
        chunks = self.scheduler.next_chunks()
        self.check_chunks(chunks, free_rows)
        first = []
        for request, count in chunks:
            if self.scheduler.prefilled(request, count):
                first.append(request)
                self.rows.append(request)
                self.tables.append(list(request.blocks))
        if first:
            self.flight.append(first)
        self.drains = 0
        growth = self.scheduler.grow(self.drain)
        self.follow()
        for request, column, block in growth:
            table = self.tables[self.rows.index(request)]
            assert column == len(table), "a block for another column than the next one"
            table.append(block)
        goes_on = False
        for request in self.scheduler.running:
            if request.length < request.limit:
                assert request.room >= request.length, "the step writes where it has no block"
                request.length += 1
                goes_on = True
        if goes_on:
            self.flight.append(list(self.scheduler.running))
        self.collect(self.ahead if goes_on else 0)
        if earliest and not earliest.done:
            underway = before[2] == earliest.limit  # its last token, which arrives in a later turn
            assert underway or (len(earliest.known), earliest.prefilled, earliest.length) != before, (
                "it did not get on"
            )
            assert earliest.preemptions == preempted

    def check_chunks(self, chunks, free_rows):
        counts, budget = [count for _, count in chunks], self.scheduler.prefill_budget
        assert sum(counts) <= budget and all(count >= 1 for count in counts)
        assert len(chunks) < 2 or len(chunks) * max(counts) <= 2 * budget
        ids = [request.id for request, _ in chunks]
        assert ids == sorted(ids)
        for request, count in chunks:
            rest = len(request.known) - request.prefilled
            assert count == rest or (count < rest and sum(counts) == budget)
            assert request.status is Status.PREFILLING and request.room > request.prefilled
        if not chunks and self.scheduler.waiting and not self.scheduler.prefilling:
            # Then there is a reason: no row, or too few blocks beside one in reserve for each that runs.
            wanted = self.scheduler.waiting[0]
            needed = -(-min(len(wanted.known) + 1, wanted.most_slots) // self.block_size)
            free = self.scheduler.allocator.num_free - len(self.scheduler.running)
            assert free_rows == 0 or needed > free

    def drain(self):
        self.drains += 1
        assert self.drains == 1 and self.scheduler.allocator.num_free == 0
        self.collect(0)

    def collect(self, leave):
        while len(self.flight) > leave:
            for request in self.flight.popleft():
                if request.finish:
                    continue
                if len(request.tokens) + 1 == self.ends[request]:
                    request.finish = "stop"
                else:
                    request.tokens.append(1)
                    if len(request.tokens) == request.most_tokens:
                        request.finish = "length"
                if request.finish:
                    self.scheduler.finish(request)
        self.follow()

    def follow(self):
        for source, target in self.scheduler.moves:
            assert source == len(self.rows) - 1, "only the last row is given up"
            self.rows[target], self.tables[target] = self.rows[source], self.tables[source]
            self.rows.pop()
            self.tables.pop()
        self.scheduler.moves.clear()

    # ---- what holds at any time
    @invariant()
    def books_agree(self):
        if not hasattr(self, "scheduler"):
            return
        scheduler = self.scheduler
        assert self.rows == scheduler.running
        assert self.tables == [request.blocks for request in scheduler.running]
        places = {
            Status.WAITING: scheduler.waiting,
            Status.PREFILLING: scheduler.prefilling,
            Status.RUNNING: scheduler.running,
        }
        for request in self.requests:
            found = [status for status, place in places.items() if request in place]
            assert found == ([] if request.done else [request.status])
            assert request.room == len(request.blocks) * self.block_size
            assert not request.blocks or request.status in (Status.PREFILLING, Status.RUNNING)
        owned = [block for request in self.requests for block in request.blocks]
        assert len(owned) == len(set(owned)) and 0 not in owned
        assert len(owned) + scheduler.allocator.num_free == self.num_blocks - 1
        inside = [request.id for request in (*scheduler.running, *scheduler.prefilling)]
        assert len(inside) <= scheduler.max_batch
        waiting = [request.id for request in scheduler.waiting]
        assert waiting == sorted(waiting) and max(inside, default=-1) < min(waiting, default=len(self.ends))
        assert scheduler.preemptions == len(self.preempted) == sum(r.preemptions for r in self.requests)

    def teardown(self):
        """From wherever it is, everything comes to an end, in a number of turns that can be reckoned."""
        if not hasattr(self, "scheduler"):
            return
        unfinished = [r for r in self.requests if not r.done]
        most = sum(2 * r.limit + self.ahead + 2 for r in unfinished)
        turns = 0
        while not all(request.done for request in self.requests):
            self.turn()
            self.books_agree()
            turns += 1
            assert turns <= most
        assert self.scheduler.allocator.num_free == self.num_blocks - 1 and not self.rows


TestHistory = History.TestCase
TestHistory.settings = settings(deadline=None, max_examples=250, stateful_step_count=20)


def run(scheduler, rounds):
    """Turns without a device; what was prefilled in each."""
    seen = []
    for _ in range(rounds):
        chunks = scheduler.next_chunks()
        seen.append([(request.id, count) for request, count in chunks])
        for chunk in chunks:
            scheduler.prefilled(*chunk)
        scheduler.grow(lambda: None)
        for request in scheduler.running:
            request.length += request.length < request.limit
    return seen


def test_long_prompts_come_in_chunks_and_short_ones_share_a_turn():
    scheduler = Scheduler(num_blocks=50, block_size=4, max_batch=5, prefill_budget=10)
    for number, prompt in enumerate([23, 3, 4, 2, 9]):
        scheduler.add(request_of(number, prompt, 5))
    assert run(scheduler, 5) == [[(0, 10)], [(0, 10)], [(0, 3), (1, 3), (2, 4)], [(3, 2), (4, 8)], [(4, 1)]]


def test_very_unequal_chunks_are_not_packed_together():
    scheduler = Scheduler(num_blocks=90, block_size=4, max_batch=9, prefill_budget=20)
    for number, prompt in enumerate([15, 1, 1, 1, 1]):
        scheduler.add(request_of(number, prompt, 5))
    assert run(scheduler, 2) == [[(0, 15), (1, 1)], [(2, 1), (3, 1), (4, 1)]]


def test_a_large_request_is_not_overtaken_by_small_ones():
    scheduler = Scheduler(num_blocks=6, block_size=4, max_batch=4, prefill_budget=100)
    for number, prompt in enumerate([8, 16, 1]):
        scheduler.add(request_of(number, prompt, 4))
    # 3 of 5 blocks are given to the first; the second needs 5, and the third waits behind it.
    assert run(scheduler, 2) == [[(0, 8)], []]
    scheduler.finish(scheduler.running[0])
    assert run(scheduler, 1) == [[(1, 16)]]


def test_a_newcomer_leaves_a_block_in_reserve_for_each_that_runs():
    scheduler = Scheduler(num_blocks=5, block_size=4, max_batch=4, prefill_budget=100)
    for number in range(4):
        scheduler.add(request_of(number, 3, 8))
    assert run(scheduler, 1) == [[(0, 3), (1, 3), (2, 3), (3, 3)]]  # none was running yet
    scheduler = Scheduler(num_blocks=5, block_size=4, max_batch=4, prefill_budget=3)
    for number in range(4):
        scheduler.add(request_of(number, 3, 8))
    assert run(scheduler, 3)[:2] == [[(0, 3)], [(1, 3)]]
    assert scheduler.preemptions == 0


def test_the_latest_is_preempted_and_computed_again_with_what_it_had():
    scheduler = Scheduler(num_blocks=5, block_size=2, max_batch=2, prefill_budget=100)
    first, second = request_of(0, 2, 6), request_of(1, 1, 6)
    scheduler.add(first)
    scheduler.add(second)
    drains = []
    for _ in range(9):
        for chunk in scheduler.next_chunks():
            scheduler.prefilled(*chunk)
        scheduler.grow(lambda: drains.append(scheduler.preemptions))
        for request in scheduler.running:
            request.length += 1
            request.tokens.append(9)
        if scheduler.preemptions:
            break
    assert drains == [0] and second.preemptions == 1 and first.preemptions == 0
    assert second.status is Status.WAITING and second.blocks == [] and second.tokens
    assert scheduler.moves == [(1, 1)] and scheduler.running == [first]
    scheduler.finish(first)
    ((again, count),) = scheduler.next_chunks()
    assert again is second and count == 1 + len(second.tokens)


def test_who_proves_to_have_finished_saves_the_others_from_preemption():
    scheduler = Scheduler(num_blocks=3, block_size=2, max_batch=2, prefill_budget=100)
    first, second = request_of(0, 1, 3), request_of(1, 1, 2)
    for request in (first, second):
        scheduler.add(request)
    for chunk in scheduler.next_chunks():
        scheduler.prefilled(*chunk)
    first.length = 3
    growth = scheduler.grow(lambda: scheduler.finish(second))
    assert [(it.request, it.column) for it in growth] == [(first, 1)] and scheduler.preemptions == 0


def test_a_block_for_one_who_proves_to_have_finished_is_not_entered_anywhere():
    scheduler = Scheduler(num_blocks=4, block_size=2, max_batch=2, prefill_budget=100)
    first, second = request_of(0, 1, 5), request_of(1, 1, 5)
    for request in (first, second):
        scheduler.add(request)
    for chunk in scheduler.next_chunks():
        scheduler.prefilled(*chunk)
    first.length = second.length = 3
    growth = scheduler.grow(lambda: scheduler.finish(first))  # the first has got the last block by then
    assert [(it.request, it.column) for it in growth] == [(second, 1)] and scheduler.running == [second]


@pytest.mark.parametrize("tokens, blocks", [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_blocks_for(tokens, blocks):
    assert Scheduler(5, 4, 1, 1).blocks_for(tokens) == blocks


def grown(scheduler, turns):
    """Turns without a device, all decode steps; in which of them somebody was given a block."""
    seen = []
    for turn in range(turns):
        if scheduler.grow(lambda: None):
            seen.append(turn)
        for request in scheduler.running:
            assert request.room >= request.length
            request.length += 1
    return seen


@pytest.mark.parametrize("num_blocks, plenty", [(200, True), (48, False)])
def test_with_plenty_of_blocks_those_who_soon_need_one_get_it_in_one_turn(num_blocks, plenty):
    scheduler = Scheduler(num_blocks=num_blocks, block_size=16, max_batch=16, prefill_budget=1000)
    for number in range(16):  # each would need a block in another turn
        scheduler.add(request_of(number, number + 1, 40))
    run(scheduler, 1)
    turns = grown(scheduler, 24)
    if plenty:
        assert len(turns) <= 24 // 8 + 1
        assert all(len(r.blocks) <= -(-(r.length + 8) // 16) for r in scheduler.running)
    else:  # 31 are free, for 16 requests: nobody holds one that it does not need yet
        assert len(turns) > 12 and not scheduler.preemptions
        assert all(len(r.blocks) == -(-(r.length - 1) // 16) for r in scheduler.running)
