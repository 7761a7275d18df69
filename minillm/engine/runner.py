"""One captured function: static inputs by name, a replay, an output that the next replay overwrites."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from .. import graphs
from .addresses import Addresses


class GraphRunner:
    """``fn(**inputs)`` captured as a CUDA graph, for calling it again and again on new values.

    The tensors of ``inputs`` become the static inputs: the runner keeps them, and each call copies new
    values into them. ``output`` is what ``fn`` returned at capture. Every replay overwrites it, so it is
    the same tensor after each call: ``clone()`` what has to outlive the next one. Before the first replay
    it holds garbage, since a capture computes nothing.

    ``fn`` runs ``warm_ups`` times on a side stream first, on the real inputs: what it writes elsewhere must
    bear that. ``watch()`` returns tensors by name that ``fn`` uses besides its inputs (weights, a KV cache):
    `check_addresses` finds out whether one of them was replaced since. ``pool`` and ``stream`` are those of
    ``cuda.graph``; ``generators`` are what ``fn`` draws random numbers from, besides the default one.

    Raises whatever the capture raises: call ``minillm.graphs.recover()`` before you go on.
    """

    def __init__(
        self,
        fn: Callable,
        inputs: Mapping[str, torch.Tensor],
        *,
        watch: Callable[[], Mapping[str, torch.Tensor]] | None = None,
        pool=None,
        stream=None,
        warm_ups: int = 2,
        generators: tuple = (),
    ):
        self.inputs = dict(inputs)
        self.graph = graphs.cuda.CUDAGraph()
        for generator in generators:
            self.graph.register_generator_state(generator)
        if warm_ups:
            graphs.warm_up(lambda: fn(**self.inputs), warm_ups, stream)
        with graphs.cuda.graph(self.graph, pool=pool, stream=stream):
            self.output = fn(**self.inputs)
        self._addresses = Addresses(lambda: {**self.inputs, **(watch() if watch else {})})

    def load(self, **values: torch.Tensor) -> None:
        """Copy ``values`` into the static inputs of those names; the others keep what they hold.

        Raises TypeError for an unknown name or another dtype, ValueError for another shape, and then copies
        nothing: ``copy_`` alone would broadcast and convert without a word.
        """
        for name, value in values.items():
            if name not in self.inputs:
                known = ", ".join(self.inputs)
                raise TypeError(f"no static input is called {name!r}; this graph has: {known}")
            static = self.inputs[name]
            if value.dtype != static.dtype:
                raise TypeError(f"{name} is {value.dtype}; it was captured as {static.dtype}: convert it")
            if value.shape != static.shape:
                raise ValueError(
                    f"{name} has shape {list(value.shape)}; it was captured as {list(static.shape)}, and a "
                    "graph has one shape: pad it, or capture a graph for this shape"
                )
        for name, value in values.items():
            self.inputs[name].copy_(value, non_blocking=True)

    def replay(self):
        """Run the graph on what the static inputs hold now; returns ``output``, which it overwrites."""
        self.graph.replay()
        return self.output

    def __call__(self, **values: torch.Tensor):
        """`load`, then `replay`."""
        self.load(**values)
        return self.replay()

    def check_addresses(self) -> None:
        """RuntimeError, naming the tensors, if an input or a watched tensor is not where it was captured.

        The graph would go on reading the old memory. Reads no values, so it does not wait for the device.
        """
        self._addresses.check()
