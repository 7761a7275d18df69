"""Exercise 2.4: the program around an answer, and what it saw: scale, left and right, combine, finish."""

import gc

import torch

from minillm.graphs import backend, cuda, device

PARTS = ("left", "right", "combine")
SLEEP_CYCLES = 20_000_000  # about 10 ms: far longer than every kernel here


class Program:
    """`scale`, then the answer's two branches and `combine`, then `finish`, in one capture.

    Each part writes a buffer of its own (x [n] float32 and the like), by which its nodes are found again.
    drawn_in   the side stream is part of the capture beforehand: a fork that is missing is a race then
    slow       a part that sleeps first (CUDA only), so that who does not wait for it reads what was there
    """

    def __init__(self, size: int, numbers, drawn_in=False, slow=None):
        self.x, self.scaled, self.l, self.r, self.combined, self.finished, self.seen = (
            torch.zeros(size, device=device) for _ in range(7)
        )
        self.factor, self.shift, self.gain = numbers
        self.main, self.side = cuda.Stream(), cuda.Stream()  # torch has 32 in turn: two in a row differ
        self.drawn_in, self.slow = drawn_in, slow
        self.graph, self.left_current = cuda.CUDAGraph(keep_graph=True), False
        self.calls, self.returned = [], None

    def scale(self):
        self._pause("scale")
        torch.mul(self.x, self.factor, out=self.scaled)

    def left(self):
        self._begin("left", self.r if self.slow == "right" else None)
        torch.add(self.scaled, self.shift, out=self.l)
        return self.l.mul_(2.0)

    def right(self):
        self._begin("right", self.l if self.slow == "left" else None)
        torch.mul(self.scaled, self.gain, out=self.r)
        return self.r.add_(1.0)

    def combine(self, a, b):
        self._begin("combine")
        return torch.sub(a, b, out=self.combined)

    def expected(self, x):
        scaled = x * self.factor
        return ((scaled + self.shift) * 2.0 - (scaled * self.gain + 1.0)) * 3.0

    def expected_if_swapped(self, x):
        return -self.expected(x)

    def capture(self, answer) -> None:
        """Capture with `answer` in the middle; whatever becomes of it, the current stream is as before."""
        before = cuda.current_stream()
        if backend == "cuda":
            gc.collect()  # an old graph that is destroyed within a capture breaks it
        for part in (self.scale, self.left, self.right, lambda: self.combine(self.l, self.r), self.finish):
            part()  # loads the kernels, which a capture may not do
        cuda.synchronize()
        self.calls.clear()
        try:
            with cuda.graph(self.graph, stream=self.main):
                self._body(answer)
        finally:
            cuda.set_stream(before)

    def _body(self, answer):
        main = cuda.current_stream()
        if self.drawn_in:
            self.side.wait_stream(main)
        self.scale()
        try:
            self.returned = answer(self.left, self.right, self.combine, self.side)
            self.left_current = cuda.current_stream() != main
        finally:
            cuda.set_stream(main)
        if isinstance(self.returned, torch.Tensor) and self.returned.shape == self.x.shape:
            self.finish(self.returned)

    def finish(self, out=None):
        torch.mul(self.combined if out is None else out, 3.0, out=self.finished)

    def replay(self, x: torch.Tensor) -> torch.Tensor:
        """What `finish` wrote for the input x; everything in between is NaN before."""
        for buffer in (self.scaled, self.l, self.r, self.combined, self.finished, self.seen):
            buffer.fill_(float("nan"))
        self.x.copy_(x)
        cuda.synchronize()
        self.graph.replay()
        cuda.synchronize()
        return self.finished.clone()

    def streams(self) -> dict:
        """Part -> the stream that was current when it was last called."""
        return {name: stream for name, stream, _ in self.calls}

    def _begin(self, name, peek=None):
        self.calls.append((name, cuda.current_stream(), cuda.is_current_stream_capturing()))
        if peek is not None:
            self.seen.copy_(peek)
        self._pause(name)

    def _pause(self, name):
        if name == self.slow and backend == "cuda":
            torch.cuda._sleep(SLEEP_CYCLES)
