"""Exercise 3.1: a captured graph that notes each replay."""

import torch

from minillm.grading.checks.lesson03.stream_order import StreamOrder
from minillm.grading.checks.lesson03.watching import Watch
from minillm.grading.registry import Wrong


class WatchedGraph:
    """A captured graph. Each replay notes what the static input held, and what the output then held."""

    def __init__(self, graph, static_input: torch.Tensor, static_output: torch.Tensor):
        self._graph = graph
        # Views of their own: a `.data = ` on the answer's tensors does not move these.
        self._input, self._output = static_input.detach(), static_output.detach()
        self.fed, self.gave = [], []
        self._watch_anew()

    def _watch_anew(self):
        self.watch = Watch()
        self.order = StreamOrder(self.watch, self._input, self._output)

    def replay(self, *arguments):
        if arguments:
            raise Wrong("graph-arguments", f"replay was called with {len(arguments)} of them.")
        with self.watch.pause():
            self.order.replay()
            self.fed.append(self._input.clone())
            self._graph.replay()
            self.gave.append(self._output.clone())
            self.watch.replays += 1

    def __call__(self, *arguments):
        raise Wrong("graph-arguments", "The graph was called as a function.")

    def capture_begin(self, *arguments, **keywords):
        raise Wrong("captured-again", "It calls capture_begin, or enters `with cuda.graph(...)`.")

    def begin(self, poison: torch.Tensor) -> None:
        """A new call of the answer: something else stands in the static input, and an output of it."""
        self._input.copy_(poison)
        self._graph.replay()
        self.fed, self.gave = [], []
        self._watch_anew()
