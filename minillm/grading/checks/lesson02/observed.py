"""A function that notes how an answer calls it, and counts how often the device really runs it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import torch

from minillm.grading.registry import Wrong
from minillm.graphs import cuda, device
from minillm.graphs.anatomy.report import count_of


@dataclass(frozen=True)
class Call:
    """One call. Addresses and shapes only: to keep the tensors would hide that an answer let go of them."""

    captured: bool
    on_default_stream: bool
    inputs: dict[str, int]  # name of each argument -> its address
    shapes: dict[str, tuple]  # the same -> shape and dtype
    output: int


class Observed:
    """``compute`` with a notebook: `calls` has every call, `runs` what the device has executed.

    A call during a capture runs nothing. So `replays` is what the device ran more than it was called
    outside of captures, and tells a replay from a capture without a look at the values, which can be right
    by accident: an address may still hold what a warm-up left there.
    """

    def __init__(self, compute: Callable):
        self.compute, self.calls, self._signature = compute, [], inspect.signature(compute)
        self._runs = torch.zeros((), dtype=torch.int64, device=device)
        cuda.synchronize()  # an answer may call it first on a stream that waits for nothing

    def __call__(self, *args, **named):
        captured = cuda.is_current_stream_capturing()
        self._runs.add_(1)
        out = self.compute(*args, **named)
        given = self._signature.bind(*args, **named).arguments  # by name, however it was called
        self.calls.append(
            Call(
                captured,
                cuda.current_stream() == cuda.default_stream(),
                {name: each.data_ptr() for name, each in given.items()},
                {name: (tuple(each.shape), each.dtype) for name, each in given.items()},
                out.data_ptr(),
            )
        )
        return out

    @property
    def captured(self) -> list[Call]:
        """The calls that were recorded into a graph."""
        return [call for call in self.calls if call.captured]

    @property
    def eager(self) -> list[Call]:
        """The calls that ran at once."""
        return [call for call in self.calls if not call.captured]

    @property
    def replays(self) -> int:
        """How often a graph ran it. Waits for the device."""
        cuda.synchronize()
        return int(self._runs) - len(self.eager)


# What every exercise with an Observed can find out, and says in the same words.
MISTAKES = {
    "not-captured": "fn was not called while a capture was underway, so it is in no graph. Call it inside "
    "`with cuda.graph(g):`.",
    "no-warm-up": "fn was captured without a warm-up. What libraries do at their first call (handles, "
    "workspaces, loading a kernel) is refused in a capture or ends up in the graph. A replay warms nothing "
    "up: it comes too late.",
    "warm-up-after": "The warm-up came after the capture, when everything that a warm-up prepares had to be "
    "there already. Call fn on a side stream first, then capture it.",
    "warm-up-on-default-stream": "The warm-up ran on the default stream. PyTorch asks for a side stream, as "
    "the capture will run on one, and libraries prepare themselves stream by stream.",
    "captured-twice": "fn is more than once in the graph, so every replay does all of that work. Warm-up "
    "calls belong before the capture.",
}


def judge_calls(fn: Observed) -> Call:
    """The one captured call; raises Wrong if fn was not warmed up and then captured once."""
    if not fn.captured:
        raise Wrong("not-captured", f"fn had {count_of(len(fn.eager), 'call')}, none in a capture.")
    first = fn.calls.index(fn.captured[0])
    alike = [call for call in fn.calls[:first] if call.shapes == fn.calls[first].shapes]
    if not alike:
        after = [call for call in fn.calls[first:] if not call.captured]
        before = count_of(first, "call") + " before the capture" + (", with other shapes" if first else "")
        inside = ""
        if len(fn.captured) > 1:
            inside = f" In it were {len(fn.captured)}: a warm-up inside the `with` block is recorded too."
        raise Wrong(
            "warm-up-after" if after else "no-warm-up",
            f"{before}; {count_of(len(after), 'call')} after it began.{inside}",
        )
    if all(call.on_default_stream for call in alike):
        raise Wrong(
            "warm-up-on-default-stream",
            f"{count_of(len(alike), 'call')} before the capture, all of them there.",
        )
    if len(fn.captured) > 1:
        raise Wrong("captured-twice", f"In the capture: {count_of(len(fn.captured), 'call')}.")
    return fn.captured[0]
