"""Does something enforce the order of what an answer does on several streams? Told by its calls alone.

A race between streams need not show on a GPU, and cannot on the emulator, which runs everything at once. So
work is numbered on its stream, and each stream, event and the host remember what comes before them.
"""

from collections import Counter
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from minillm.grading.checks.lesson03.host_waits import tensors_in
from minillm.grading.checks.lesson03.reads import READS
from minillm.grading.checks.lesson03.temperature_watch import writes
from minillm.grading.checks.lesson03.watching import Watch, memory
from minillm.grading.device_memory import on_device
from minillm.graphs import cuda


class StreamOrder(TorchFunctionMode):
    """Watches kernels that touch `static` tensors, and the replays of the graph that uses them.

    loose   what nothing orders, in words; None if everything waits as it must
    """

    def __init__(self, watch: Watch, *static: torch.Tensor):
        super().__init__()
        self.loose, self._watch, self._memory = None, watch, {memory(each) for each in static}
        self._host, self._streams, self._events = Counter(), {}, {}  # stream -> number of work that is before
        self._replay, self._since, self._all = None, [], []

    @contextmanager
    def on(self):
        """Within it an answer runs, whose caller has replayed the graph before, and goes on afterwards."""
        callers = cuda.current_stream()
        self.replay()
        with ExitStack() as stack:
            for owner in (cuda, cuda.Stream, cuda.Event):
                self._after(stack, owner, "synchronize", self._host_waits)
            for owner in (cuda.Stream, cuda.Event):
                self._after(
                    stack, owner, "query", lambda done, *which: done and self._host_waits(done, *which)
                )
            self._after(stack, cuda.Event, "record", self._record)
            self._after(stack, cuda.Event, "wait", self._wait)
            stack.enter_context(self)
            yield
        self._expect(self._all, callers, "the caller's stream")

    def replay(self) -> None:
        """The graph is replayed on the current stream."""
        self._expect(self._since, cuda.current_stream(), "the replay")
        self._replay, self._since = self._work("the replay"), []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result, name = func(*args, **(kwargs or {})), getattr(func, "__name__", "")
        if self._watch.paused:
            return result
        with self._watch.pause():
            stream = cuda.current_stream()
            if self._touches(name, tensors_in((args, kwargs)), tensors_in(result)):
                self._expect([self._replay], stream, f"`{name}`")
                self._since.append(self._work(f"`{name}`"))
                self._all.append(self._since[-1])
            if name in READS or name == "to" or (name == "copy_" and not on_device(result)):
                self._host |= self._before(stream)
        return result

    def _touches(self, name, operands, results) -> bool:
        """Whether a kernel reads or writes the static tensors; a view and a look at the shape do not."""
        if not any(memory(each) in self._memory for each in operands):
            return False
        return writes(name) or any(memory(each) not in self._memory for each in results)

    def _before(self, stream) -> Counter:
        self._streams[stream] = self._streams.get(stream, Counter()) | self._host
        return self._streams[stream]

    def _work(self, what) -> tuple:
        stream = cuda.current_stream()
        before = self._before(stream)
        before[stream] += 1
        return stream, before[stream], what

    def _expect(self, works, stream, whose) -> None:
        for other, number, what in works:
            if self._before(stream)[other] < number and self.loose is None:
                self.loose = f"Nothing made {whose} wait for {what}, which was put on another stream."

    def _record(self, _result, event, stream=None):
        self._events[id(event)] = event, self._before(stream or cuda.current_stream()).copy()

    def _wait(self, _result, event, stream=None):
        stream = stream or cuda.current_stream()
        self._streams[stream] = self._before(stream) | self._marked(event)

    def _host_waits(self, _result, which=None):
        if isinstance(which, cuda.Event):
            self._host |= self._marked(which)
        elif isinstance(which, cuda.Stream):
            self._host |= self._before(which)
        else:
            for before in self._streams.values():
                self._host |= before

    def _marked(self, event) -> Counter:
        return self._events.get(id(event), (event, Counter()))[1]

    def _after(self, stack, owner, name, note):
        original = getattr(owner, name)

        def watched(*args, **kwargs):
            result = original(*args, **kwargs)
            note(result, *args, **kwargs)
            return result

        stack.enter_context(patch.object(owner, name, watched))
