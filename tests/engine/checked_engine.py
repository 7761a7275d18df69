"""An engine under watch: a trace runs through it; steps, turns and texts are held against what is right."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, deque
from functools import partial

import torch
from traces import BAD, MAX_CONTEXT, SETTINGS, Add, Break, Cancel, Refused, Trace

from minillm.engine import Engine
from minillm.engine.request import Status
from minillm.reciter import load_reciter, tokenizer

# What a row holds that stands for no sequence: written out, so that the engine's table is not its own judge.
PADDING = {
    "token_ids": 0,
    "positions": 0,
    "slot_mapping": 0,
    "block_tables": 0,
    "context_lens": 1,
    "remaining": 0,
    "stop_token": -1,
    "temperature": 0,
    "top_k": 0,
}


class Broken(Exception):
    """Thrown into a turn on purpose, as Ctrl-C would be."""


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as bytes, a row a row: compared so, NaN is equal to itself."""
    return tensor.view(len(tensor), -1).view(torch.uint8)


class Engines:
    """Engines by the name of their settings, each made when it is first needed, and used again and again."""

    def __init__(self):
        self.model, self.ready = load_reciter(), {}

    def run(self, trace: Trace, seen: Counter) -> None:
        """AssertionError if anything is not as it should be. Counts in ``seen`` what the trace was about."""
        checked = self.ready.pop(trace.engine, None) or CheckedEngine(trace.engine, self.model)
        checked.run(trace, seen)
        self.ready[trace.engine] = checked  # one that failed is not used again


class CheckedEngine:
    """An engine with the settings of that name, and what is hung into it.

    A token is written down where the device chose it (``chosen``), so that what the host is told later is
    compared with something. What a request has chosen says what every row, slot and block must be.
    """

    def __init__(self, name: str, model):
        self.name, self.settings = name, SETTINGS[name]
        self.engine = Engine(model, tokenizer, **self.settings)
        assert self.engine.mode.startswith("graphs" if self.settings.get("use_graphs", True) else "eager")
        self.scheduler, self.batch, kv = self.engine.scheduler, self.engine.batch, self.engine.kv
        self.buffers, self.block_size = self.batch.buffers.tensors(), kv.block_size
        # A row a slot, as whole numbers, which compare bit for bit: NaN is not equal to itself.
        self.cache = [t.flatten(0, 1).flatten(1).view(torch.int64) for t in kv.tensors().values()]
        self.places = {n: t.data_ptr() for n, t in {**self.buffers, **kv.tensors()}.items()}
        for decoder in self.batch.decoders:
            decoder.run = partial(self._run, decoder, decoder.run)
        self.batch.choose = partial(self._choose, self.batch.choose)
        self.batch.prefill = partial(self._prefill, self.batch.prefill)
        self.engine.core.outbox.wait = partial(self._wait, self.engine.core.outbox.wait)
        self.scheduler.grow = partial(self._grow, self.scheduler.grow)
        self.scheduler.preempt = partial(self._preempt, self.scheduler.preempt)

    # A trace

    def run(self, trace: Trace, seen: Counter) -> None:
        """See `Engines.run`."""
        self._check_idle()
        self.trace, self.seen, self.random = trace, seen, random.Random(trace.seed)
        self.noise = self._make_noise(trace)
        self.added: list[tuple] = []  # (request, its Add), in the order in which they came
        self.chosen, self.ended, self.told, self.cancelled = {}, set(), {}, set()
        self.underway: list[tuple] = []  # what steps chose, while nobody has looked at it: (tensor, requests)
        self.spoken: list[int] = []  # ids of requests whose first token was told, in that order
        self.fuse, self.turn, self.progress, self.widths, self.held = None, 0, (None, 0), [], {}
        events = deque(trace.events)
        while events or self.fuse or not self.engine.idle:
            while events and events[0].turn <= self.turn:
                self._happens(events.popleft())
            if self.engine.idle and not events:
                self.fuse = None
            self._one_turn()
        assert self.engine.step() == [], "tokens of nobody"
        self._look()
        for request, add in self.added:
            self._check_text(request, add)
        self._check_idle()
        self.seen["traces"] += 1
        self.seen[f"traces, {self.name}"] += 1
        self.seen["a narrower step after a wider one"] += any(
            after < before for before, after in zip(self.widths, self.widths[1:], strict=False)
        )

    def _make_noise(self, trace: Trace) -> torch.Tensor:
        noise = torch.full(self.cache[0].shape, -1)  # all bits 1: NaN in float32, bfloat16 and float16
        if trace.filling == "bytes":
            noise.random_(-(2**63), None, generator=torch.Generator().manual_seed(trace.seed))
        return noise.to(self.cache[0].device)

    def _happens(self, event) -> None:
        if isinstance(event, Add):
            request = self.engine.add(
                event.prompt,
                max_tokens=event.max_tokens,
                stop_token=event.stop,
                temperature=event.temperature,
                top_k=event.top_k,
            )
            self.added.append((request, event))
            self.chosen[request], self.told[request] = [], []
            self.seen["requests"] += 1
        elif isinstance(event, Cancel) and event.which < len(self.added):
            request, _ = self.added[event.which]
            before, tokens = request.finish, list(request.tokens)
            self.seen[f"cancelled while {request.status.value}"] += 1
            try:
                self.engine.cancel(request)
            except Broken:
                self._after_a_break()
                self.seen["a cancellation broken off"] += 1
                self.engine.cancel(request)
            # What was underway may come in yet, and with it the request's own end.
            assert request.done and request.tokens[: len(tokens)] == tokens
            assert before is None or (request.finish, request.tokens) == (before, tokens)
            if request.finish == "cancelled":
                self.cancelled.add(request)
            self._check_blocks()
        elif isinstance(event, Refused):
            prompt, choices = BAD[event.kind]
            before = self._bookkeeping()
            try:
                self.engine.add(prompt, **choices)
            except (TypeError, ValueError):
                pass
            else:
                raise AssertionError(f"{event.kind}: {prompt!r} with {choices} was accepted")
            assert self._bookkeeping() == before, f"{event.kind}: refused, but something has changed"
            self.seen["refused"] += 1
        elif isinstance(event, Break):
            self.fuse = event.place

    def _bookkeeping(self) -> tuple:
        scheduler = self.scheduler
        lists = [
            [r.id for r in part] for part in (scheduler.waiting, scheduler.prefilling, scheduler.running)
        ]
        return lists, list(scheduler.allocator._free), [list(r.blocks) for r, _ in self.added]

    def _one_turn(self) -> None:
        self.turn += 1
        self.seen["turns"] += 1
        self.outside = set(self.scheduler.waiting)
        try:
            produced = self.engine.step()
        except Broken:
            self._after_a_break()
            return
        for request, token in produced:
            self.told[request].append(token)
            if request.id not in self.spoken:
                self.spoken.append(request.id)
        # First come, first served: nobody's first token overtakes another's who came earlier.
        assert self.spoken == sorted(self.spoken), f"first tokens came in the order {self.spoken}"
        for request, _ in self.added:
            assert self.told[request] == request.tokens, "step() did not return what the request was given"
        self._check_blocks()
        self._check_progress()

    def _after_a_break(self) -> None:
        """Certain is what has arrived; the rest is computed again, and a draw may come out otherwise."""
        self._look()
        held = Counter(request for request, _ in self.engine.core.held)  # by a cancellation: come with a step
        for request, _ in self.added:
            self.seen["held at a break"] += held[request]
            self.told[request] = request.tokens[: len(request.tokens) - held[request]]
            if not request.done:
                self.chosen[request] = list(request.tokens)
                self.ended.discard(request)
            if request.tokens and request.id not in self.spoken:
                self.spoken = sorted([*self.spoken, request.id])
        self.progress = (None, self.turn)
        self.seen[f"broken off {self.broken}"] += 1

    def _burn(self, place: str) -> None:
        if self.fuse == place:
            self.fuse, self.broken = None, place
            raise Broken(place)

    def _wait(self, wait, event) -> None:
        if self.random.random() < 0.5:  # or at a later one, after some tokens have come in
            self._burn("while it waits")
        wait(event)

    # What is true after every turn

    def _check_blocks(self) -> None:
        """No block is leaked, owned by two, or the null block; who has ended has none."""
        scheduler, everyone = self.scheduler, [request for request, _ in self.added]
        owned = [block for request in everyone for block in request.blocks]
        assert sorted(owned + scheduler.allocator._free) == list(range(1, scheduler.num_blocks)), (
            "every block but block 0 is owned by one request or free"
        )
        assert scheduler.allocator.num_free == scheduler.num_blocks - 1 - len(owned)
        where = {
            Status.WAITING: scheduler.waiting,
            Status.PREFILLING: scheduler.prefilling,
            Status.RUNNING: scheduler.running,
        }
        for request in everyone:
            places = [status for status, part in where.items() if request in part]
            assert places == ([] if request.done else [request.status]), f"{request} is in {places}"
            assert not (request.blocks and (request.done or request.status is Status.WAITING))
        assert len(scheduler.running) + len(scheduler.prefilling) <= scheduler.max_batch
        assert not scheduler.moves

    def _check_progress(self) -> None:
        """The earliest that has not ended gets on: each token takes as many turns as a prefill at most."""
        first = next((request for request, _ in self.added if not request.done), None)
        if first is None:
            return
        state = first.id, len(first.tokens)
        if self.progress[0] != state:
            self.progress = (state, self.turn)
        chunks = -(-len(first.known) // self.scheduler.prefill_budget)
        since = self.turn - self.progress[1]
        assert since <= chunks + self.engine.core.ahead + 1, f"{first} has had no token for {since} turns"

    def _check_idle(self) -> None:
        """Nothing is left of anybody, neither on the host nor on the device."""
        scheduler, core = self.scheduler, self.engine.core
        assert self.engine.idle and not len(core.outbox)
        assert not (scheduler.waiting or scheduler.prefilling or scheduler.running or scheduler.moves)
        assert scheduler.allocator.num_free == scheduler.num_blocks - 1
        now = {**self.buffers, **self.engine.kv.tensors()}
        assert {name: tensor.data_ptr() for name, tensor in now.items()} == self.places
        for name, padding in PADDING.items():
            assert bool((self.buffers[name] == padding).all()), f"{name} is not padding when nobody is there"
        self.engine.check_addresses()

    def _check_text(self, request, add: Add) -> None:
        """The text is exactly right, and so is the reason why it ended."""
        tokens, chosen, longest = request.tokens, self.chosen[request], MAX_CONTEXT[self.name]
        assert request.done, f"{request} never ended"
        assert request.text == tokenizer.decode(tokens)
        assert request.id in self.spoken or not tokens
        if add.certain:
            right, reason = add.expected(longest)
            if request in self.cancelled:
                right, reason = right[: len(tokens)], "cancelled"
            assert tokenizer.decode(tokens) == tokenizer.decode(right)
            assert (tokens, request.finish) == (right, reason)
        # What the host was told is what the device chose; of a cancelled one it was not told the rest.
        assert tokens == (chosen[: len(tokens)] if request in self.cancelled else chosen)
        if request.finish == "stop":
            assert request in self.ended and len(tokens) < request.most_tokens
        elif request.finish in ("length", "context"):
            full = len(tokens) == add.max_tokens
            assert request.finish == ("length" if full else "context")
            assert full or add.begun + len(tokens) == longest + 1
        else:
            assert request.finish == "cancelled"
        self.seen[f"finish: {request.finish}"] += 1
        self.seen["tokens"] += len(tokens)
        self.seen["requests that were preempted"] += request.preemptions > 0

    # What the device chose

    def _look(self) -> None:
        """Write down what steps have chosen since the last look; waits for the device."""
        for tensor, requests in self.underway:
            for request, token in zip(requests, tensor.tolist(), strict=False):  # False: rows of nobody
                if request in self.ended:
                    assert token == -1, f"{request} has ended, and its row has produced {token}"
                    continue
                assert 0 <= token < tokenizer.vocab, f"{request} goes on, and its row has produced {token}"
                if token == request.stop:
                    self.ended.add(request)
                    continue
                self.chosen[request].append(token)
                if len(self.chosen[request]) == request.most_tokens:
                    self.ended.add(request)
        self.underway.clear()

    def _choose(self, choose, logits, places, requests):
        tokens = choose(logits, places, requests)
        if self.trace.share:
            self._check_draws(logits[places], tokens.tolist(), requests)
        self.underway.append((tokens.clone(), requests))
        return tokens

    def _check_draws(self, logits, tokens, requests) -> None:
        """A drawn token is one of the top_k likeliest, ties included; others are the likeliest."""
        if not any(request.sampling.temperature for request in requests):
            return  # texts say whether greedy tokens are right
        logits = logits.float().cpu()
        for request, row, token in zip(requests, logits, tokens, strict=False):  # False: rows of nobody
            if token >= 0:
                most = request.sampling.top_k or tokenizer.vocab
                least = row.topk(most if request.sampling.temperature else 1).values[-1]
                assert row[token] >= least, f"token {token} is not among the {most} likeliest"
                self.seen["sampled tokens"] += request.sampling.temperature > 0

    # Who computes

    def _grow(self, grow, drain):
        self.before = {request: len(request.blocks) for request in self.scheduler.running}
        return grow(drain)

    def _preempt(self, preempt, request) -> None:
        """The latest gives way, having lost no token, and nothing was given to it for nothing."""
        self._look()
        assert request.tokens == self.chosen[request]
        holders = [other for other, _ in self.added if other.blocks]
        assert request is max(holders, key=lambda other: other.id), f"{request} is not the latest"
        assert len(request.blocks) == self.before.get(request, len(request.blocks)), "it was given a block"
        assert request not in self.outside, "it was let in and thrown out in one turn"
        self.seen[f"preempted while {request.status.value}"] += 1
        preempt(request)

    # Prefill

    def _prefill(self, prefill, chunks):
        self._burn("before a prefill")
        assert 0 < sum(count for _, count in chunks) <= self.scheduler.prefill_budget
        checked = self.random.random() < self.trace.share
        if checked:
            self._look()
            self._fill()
            before = self._kv()
        logits = prefill(chunks)
        if checked:
            own = {
                self._slot(request, place)
                for request, count in chunks
                for place in range(request.prefilled, request.prefilled + count)
            }
            self._check_kv(before, self._kv(), own)
            self.seen["checked prefills"] += 1
        self.seen["prefills"] += 1
        self.seen["chunks of a prompt"] += sum(count < len(r.known) for r, count in chunks)
        self._burn("after a prefill")
        return logits

    # Decode

    def _run(self, decoder, run, rows, blocks):
        running = tuple(self.scheduler.running)
        self._burn("before a step")
        # As wide as the widest table that there is now, and no random numbers where nobody wants one.
        assert (rows, blocks) == (len(running), max(len(request.blocks) for request in running))
        drawn = any(request.sampling.temperature for request in running)
        assert decoder is (self.batch.sampling if drawn else self.batch.greedy)
        wanted, hits = self._size(decoder, rows, blocks), decoder.tally.hits.total()
        checked = self.random.random() < self.trace.share
        size = self._checked(decoder, run, rows, blocks) if checked else run(rows, blocks)
        assert (size, decoder.tally.hits.total() - hits) == wanted
        self._count(decoder, running, size, wanted[1])
        self.underway.append((self.buffers["tokens"].clone(), running))
        self._burn("after a step")
        return size

    def _size(self, decoder, rows, blocks) -> tuple[tuple[int, int], int]:
        """The size that a step must have, and 1 if a graph must have run: the smallest that holds it."""

        def smallest(ladder, size):
            at = bisect_left(ladder, size)
            return ladder[at] if at < len(ladder) else None

        bucket, width = smallest(decoder.buckets, rows), smallest(decoder.widths, blocks)
        captured = self.settings.get("use_graphs", True)
        captured = captured and (decoder is self.batch.greedy or self.settings.get("sampling", True))
        if captured and bucket and width:
            return (bucket, width), 1
        return (rows, width or self.buffers["block_tables"].shape[1]), 0

    def _checked(self, decoder, run, rows, blocks) -> tuple[int, int]:
        """One step, by graph and then again eagerly from the same state; what the graph did is what stays."""
        running = self.scheduler.running
        self._look()
        self._check_rows(running)
        alive = [row for row, request in enumerate(running) if request not in self.ended]
        own = {row: self._slot(running[row], self._context(running[row])) for row in alive}
        self._fill()
        tables = self.buffers["block_tables"].clone()
        self._make_stale(running)
        draws, before = self.batch.generator.get_state(), self._state()
        size = run(rows, blocks)
        draws_after, after = self.batch.generator.get_state(), self._state()
        self._check_kv(before[0], after[0], {*own.values(), *range(self.block_size)})
        self._check_ended(len(running))
        slots = self.buffers["slot_mapping"].tolist()
        assert slots[: size[0]] == [own.get(row, 0) for row in range(size[0])]
        for name, buffer in before[1].items():
            assert torch.equal(after[1][name][size[0] :], buffer[size[0] :]), (
                f"{name}: rows behind the bucket"
            )
        assert torch.equal(after[1]["block_tables"], before[1]["block_tables"]), "a step has changed a table"
        self._restore(before)
        self.batch.generator.set_state(draws)
        decoder.run_eagerly(*size)
        self._check_same(after, self._state(), alive)
        assert torch.equal(self.batch.generator.get_state(), draws_after), "other draws than in the graph"
        self._restore(after)
        self.batch.generator.set_state(draws_after)
        self._check_draws(self.buffers["logits"], self.buffers["tokens"].tolist(), running)
        self.buffers["block_tables"].copy_(tables)
        self.seen["checked steps"] += 1
        return size

    def _check_same(self, graph, eager, alive) -> None:
        """Bit for bit.

        Left out is what means nothing: the null block, and the logits of rows that are padding or have ended.
        Several padding rows write to slot 0, on a GPU in any order, and read it.
        """
        null = self.block_size
        assert torch.equal(graph[0][:, null:], eager[0][:, null:]), "another KV cache than without a graph"
        for name in self.buffers:
            one, other = graph[1][name], eager[1][name]
            if name == "logits":
                one, other = one[alive], other[alive]
            assert torch.equal(one, other), f"{name}: other values than without a graph"

    def _check_rows(self, running) -> None:
        """What the device has in its rows is what follows from what each request has chosen so far."""
        rows = {name: self.buffers[name].tolist() for name in PADDING}
        width = len(rows["block_tables"][0])
        for row in range(self.scheduler.max_batch):
            now = {name: values[row] for name, values in rows.items()}
            if row >= len(running):
                assert now == {**PADDING, "block_tables": [0] * width}, f"row {row} is not padding: {now}"
                continue
            request, context = running[row], self._context(running[row])
            sampling = request.sampling
            right = {
                "block_tables": request.blocks + [0] * (width - len(request.blocks)),
                "remaining": 0,
                "stop_token": request.stop,
                "temperature": sampling.temperature,
                "top_k": sampling.top_k or 0,
            }
            if request not in self.ended:
                right |= {
                    "token_ids": self.chosen[request][-1],
                    "positions": context,
                    "context_lens": context + 1,
                    "remaining": request.most_tokens - len(self.chosen[request]),
                }
                # A block more than the tokens need could be somebody else's.
                soon = min(context + 1 + self.block_size // 2, request.most_slots)
                needed, most = (-(-tokens // self.block_size) for tokens in (context + 1, soon))
                assert needed <= len(request.blocks) <= max(needed, most)
            assert {name: now[name] for name in right} == right, f"row {row}, {request}"

    def _check_ended(self, rows) -> None:
        """A row that can produce nothing more is padding after the step; the host learns of it later."""
        names = ("remaining", "token_ids", "positions", "context_lens")
        for row in zip(*(self.buffers[name][:rows].tolist() for name in names), strict=True):
            assert row[0] or row == (0, 0, 0, 1), f"a row has ended with {dict(zip(names, row, strict=True))}"

    def _count(self, decoder, running, size, replayed) -> None:
        self.seen["steps"] += 1
        self.seen["replays"] += replayed
        self.seen["steps that can draw"] += decoder is self.batch.sampling
        self.seen[f"batch size, {self.name}, {len(running)}"] += 1
        if not replayed and decoder.runners:
            self.seen["over the top: rows"] += len(running) > decoder.buckets[-1]
            self.seen["over the top: blocks"] += size[1] > decoder.widths[-1]
        if replayed:
            self.seen["padded replays"] += size[0] > len(running)
        if self.trace.share == 1:  # only then is it known here how long a context is
            longest = max((self._context(r) + 1 for r in running if r not in self.ended), default=0)
            self.seen["steps at the model's maximum context"] += longest == 1024
        self.widths.append(size[1])
        for row, request in enumerate(running):
            before = self.held.get(row, (request, 0))
            if before[0] is not request and before[1] > len(request.blocks):
                self.seen["a row with a narrower table than before"] += 1
            self.held[row] = (request, len(request.blocks))

    # The cache

    def _context(self, request) -> int:
        """Tokens of a running request that are in the cache: all but the newest."""
        return len(request.prompt) + len(self.chosen[request]) - 1

    def _slot(self, request, place: int) -> int:
        return request.blocks[place // self.block_size] * self.block_size + place % self.block_size

    def _fill(self) -> None:
        """NaN or noise wherever nobody may read: in the null block, in blocks that nobody owns, behind the
        contexts, and in what the last step left behind."""
        unread = torch.ones(self.scheduler.num_blocks, self.block_size, dtype=torch.bool)
        for request, _ in self.added:
            tokens = 0
            if request.status is Status.PREFILLING:
                tokens = request.prefilled
            elif request.status is Status.RUNNING and request not in self.ended:
                tokens = self._context(request)
            for column in range(-(-tokens // self.block_size)):
                unread[request.blocks[column], : tokens - column * self.block_size] = False
        where = unread.flatten().nonzero().squeeze(1).to(self.noise.device)
        filling = self.noise.index_select(0, where)
        for layer in self.cache:
            layer.index_copy_(0, where, filling)
        self.buffers["tokens"].fill_(self.random.randrange(tokenizer.vocab))
        logits = bits(self.buffers["logits"])
        logits.copy_(bits(self.noise).flatten()[: logits.shape[1]])

    def _make_stale(self, running) -> None:
        """Block ids of anybody in the columns that no sequence uses: nothing may come of them."""
        table = self.buffers["block_tables"]
        used = [len(request.blocks) for request in running] + [1] * (len(table) - len(running))
        stale = torch.arange(table.shape[1]) >= torch.tensor(used)[:, None]
        anybody = torch.Generator().manual_seed(self.random.randrange(2**31))
        blocks = torch.randint(self.scheduler.num_blocks, table.shape, dtype=torch.int32, generator=anybody)
        table.copy_(torch.where(stale.to(table.device), blocks.to(table.device), table))

    def _kv(self) -> torch.Tensor:
        """A copy of the cache: [layers × 2, slots, a slot's bits]."""
        return torch.stack(self.cache)

    def _state(self) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        return self._kv(), {name: bits(buffer).clone() for name, buffer in self.buffers.items()}

    def _restore(self, state) -> None:
        for layer, saved in zip(self.cache, state[0], strict=True):
            layer.copy_(saved)
        for name, saved in state[1].items():
            bits(self.buffers[name]).copy_(saved)

    def _check_kv(self, before, after, own: set[int]) -> None:
        changed = (before != after).any(-1).any(0).nonzero().squeeze(1).tolist()
        assert not (foreign := set(changed) - own), f"slots {sorted(foreign)} were written; allowed: {own}"
