"""The engine's loop: continuous batching, eager prefill, decode steps that feed themselves.

The host runs a step ahead of the device. It launches step t, and only then looks at what step t − 1 chose,
so the device is never idle for want of the host, and no step waits for the one before it to be read.
"""

from __future__ import annotations

import time

import torch

from .. import graphs
from .device_batch import DeviceBatch
from .outbox import Kind, Outbox
from .record import Record
from .request import Request
from .scheduler import Scheduler

Produced = list[tuple[Request, int]]  # requests and their new tokens, in the order in which they came


class EngineCore:
    """Requests in, tokens out. ``scheduler`` decides who computes, ``batch`` holds the rows of those who run.

    ``ahead``: how many decode steps are launched before the result of the first is looked at. ``record``
    keeps the times. What a request may contain was checked before it comes here.
    """

    def __init__(self, scheduler: Scheduler, batch: DeviceBatch, ahead: int):
        self.scheduler, self.batch, self.ahead = scheduler, batch, ahead
        self.record = Record()
        self.outbox = Outbox(scheduler.max_batch, batch.kv.device)
        self.requests: dict[int, Request] = {}  # all that have not ended
        self._stops: set[int] = set()  # every stop token that a request has named
        self.held: Produced = []  # tokens that came outside of a turn: the next one returns them
        self._midway = False  # a turn has begun and has not ended

    def submit(self, request: Request) -> None:
        """Queue a request. If that is broken off, it is in the engine or it is not: nothing in between."""
        self._repair()
        request.arrived, self._midway = time.perf_counter(), True
        self._stops.add(request.stop)
        self.scheduler.add(request)
        self.requests[request.id] = request
        self._midway = False

    @torch.inference_mode()
    def step(self) -> Produced:
        """One turn: prefill what the budget allows, launch a decode step, take what has arrived.

        Returns the new tokens, those that end a text left out; a token arrives ``ahead`` turns after it was
        chosen. If a turn is broken off, by Ctrl-C or an error, the next one starts from what is certain: the
        tokens that had arrived.
        """
        self._repair()
        self._midway, produced, self.held = True, self.held, []
        self.record.clock.start()
        if self.scheduler.waiting or self.scheduler.prefilling:
            self._prefill()
        launched = self._decode(produced)
        self._collect(self.ahead if launched else 0, produced)
        if not self.requests:
            self._collect(0, produced)  # the steps that nobody waits for
            self.record.clock.stop()
        self._midway = False
        return produced

    def cancel(self, request: Request) -> None:
        """End a request early. What was underway, of any request, is `held` for the next turn."""
        self._repair()
        if self.requests.get(request.id) is not request:
            return
        self._midway = True
        self._collect(0, self.held)  # its tokens that are underway; it may prove to have ended
        if not request.done:
            self._end(request, "cancelled", time.perf_counter())
            self.batch.follow(self.scheduler.moves)
        if not self.requests:
            self.record.clock.stop()
        self._midway = False

    def _prefill(self) -> None:
        if not (chunks := self.scheduler.next_chunks()):
            return
        with self.record.clock.prefill():
            logits, first_row = self.batch.prefill(chunks), len(self.scheduler.running)
            whole = [at for at, chunk in enumerate(chunks) if self.scheduler.prefilled(*chunk)]
            if whole:
                requests = tuple(chunks[at][0] for at in whole)
                tokens = self.batch.choose(logits, whole, requests)
                self.batch.join(first_row, requests, tokens)
                self.outbox.send(tokens, Kind.PREFILL, requests)

    def _decode(self, produced: Produced) -> bool:
        """Launch a step, if some request has a token to come that is not underway already."""
        growth = self.scheduler.grow(lambda: self._collect(0, produced))
        self.batch.follow(self.scheduler.moves)
        running, goes_on, kind = self.scheduler.running, False, Kind.PLAIN
        for request, column, block in growth:
            self.batch.grow(running.index(request), column, block)
        for request in running:
            if request.length < request.limit:
                request.length += 1
                goes_on = True
            if request.length == request.limit:
                kind = Kind.STEP  # its last token is underway
        if goes_on:
            self.outbox.send(self.batch.step(running), kind, tuple(running))
            self.record.decode_steps += 1
        return goes_on

    def _collect(self, leave: int, produced: Produced) -> None:
        """Take what steps have chosen, until the newest ``leave`` are still underway."""
        while len(self.outbox) > leave:
            (kind, requests, tokens), before = self.outbox.receive(), len(produced)
            if kind is Kind.PLAIN and min(tokens) >= 0 and self._stops.isdisjoint(tokens):
                for request, token in zip(requests, tokens, strict=True):
                    request.tokens.append(token)  # as below, where nothing ends: most steps
                produced += zip(requests, tokens, strict=True)
            else:
                self._take(kind, requests, tokens, produced)
            self.record.came(len(produced) - before, kind)
        self.batch.follow(self.scheduler.moves)

    def _take(self, kind: Kind, requests, tokens, produced: Produced) -> None:
        now = time.perf_counter()
        for request, token in zip(requests, tokens, strict=True):
            if token < 0 or request.finish:
                continue  # its row had ended
            if kind is Kind.PREFILL:
                self.record.began(request, now)
            if token == request.stop:
                self._end(request, "stop", now)
                continue
            request.tokens.append(token)
            produced.append((request, token))
            if len(request.tokens) == request.most_tokens:
                self._end(request, request.when_full, now)

    def _end(self, request: Request, reason: str, now: float) -> None:
        request.finish = reason  # from here on it is done, whatever happens below
        self.scheduler.finish(request)
        self.requests.pop(request.id, None)
        self.record.ended(request, now)

    def _repair(self) -> None:
        """After a turn that was broken off: drop what was underway, and compute anew who has not ended."""
        if not self._midway:
            return
        graphs.cuda.synchronize()
        self.outbox.clear()
        self.batch.clear()
        for request in self.requests.values():
            if not request.done and len(request.tokens) == request.most_tokens:
                request.finish = request.when_full  # only that was not written down yet
        self.requests = {number: r for number, r in self.requests.items() if not r.done}
        self.scheduler.restart(list(self.requests.values()))
        self._midway = False
