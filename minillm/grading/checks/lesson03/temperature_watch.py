"""What an answer to 3.4 does with tensors, so that a temperature without effect can be explained."""

import math
import weakref

from torch import Tensor
from torch.overrides import TorchFunctionMode

from minillm.grading.checks.lesson03.host_waits import tensors_in
from minillm.grading.device_memory import on_device
from minillm.graphs import cuda


class Watch(TorchFunctionMode):
    """Sees every call of torch that the answer makes, inside its capture and in its runs.

    recaptured    how many runs captured something
    eager         the name of a function that computed with the logits in a run, outside any capture
    overwrites    the name of a function that a run, outside any capture, wrote into the logits with
    written       whether a run wrote into a tensor in place
    reads_logits  whether the capture used the logits' own memory
    """

    def __init__(self, logits):
        super().__init__()
        self.recaptured, self.eager, self.overwrites = 0, None, None
        self.written = self.reads_logits = False
        self._logits = logits.untyped_storage().data_ptr()
        self._read = []  # weak references to tensors that a capture read, besides the logits
        self._made = []  # tensors that the capture made: their values are the graph's own
        self._on_host = self._freed = self._in_run = self._captures = False
        self._reaches_graph = False  # whether a run wrote into something that the capture read

    def start_run(self):
        self._in_run, self._captures = True, False

    def end_run(self):
        self._in_run = False
        self.recaptured += self._captures

    def captured(self):
        """The answer has returned: see whether all that its graph reads is held."""
        self._made.clear()
        self._freed = any(tensor() is None for tensor in self._read)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name, operands = getattr(func, "__name__", str(func)), tensors_in((args, kwargs))
        if cuda.is_current_stream_capturing():
            self._captures = True
            if not self._in_run:
                written = tensors_in(kwargs.get("out")) + [each for each in operands[:1] if writes(name)]
                self._note([each for each in operands if not is_in(each, written)], tensors_in(result))
        elif self._in_run:
            if "out" in kwargs or writes(name):
                self.written = True
                targets = tensors_in(kwargs["out"]) if "out" in kwargs else operands[:1]
                self._reaches_graph |= any(map(self._is_read, targets))
            reads = [each.untyped_storage().data_ptr() == self._logits for each in operands]
            if reads[:1] == [True] and writes(name):
                self.overwrites = name
            makes = [each for each in tensors_in(result) if each.is_floating_point()]
            if name == "copy_" or not any(reads):  # the graph may read a copy that each run makes
                return result
            if any(each.untyped_storage().data_ptr() != self._logits for each in makes):
                self.eager = name
        return result

    def _note(self, operands, results):
        self.reads_logits |= any(each.untyped_storage().data_ptr() == self._logits for each in operands)
        for each in operands:
            if is_in(each, self._made) or each.untyped_storage().data_ptr() == self._logits:
                continue
            if on_device(each):
                self._read.append(weakref.ref(each))
            else:
                self._on_host = True
        self._made += [each for each in results if not is_in(each, operands)]

    def cause(self, scales) -> str:
        """Why the temperature had not the effect it should have; `scales` are those of the runs, in order."""
        softmax = None not in scales  # of the logits, times some number
        constant = softmax and all(math.isclose(each, scales[0], rel_tol=1e-3) for each in scales)
        if self._read and self.written and not self._reaches_graph:
            return "written-elsewhere"
        if self._freed:
            return "dropped-temperature"
        if self._read and not self.written and softmax:
            return "rebound"
        if not constant:
            return "wrong-value"
        return "host-tensor" if self._on_host else "frozen-number"

    def _is_read(self, tensor) -> bool:
        """Whether the capture read this memory, by a tensor that is still there."""
        place = tensor.untyped_storage().data_ptr()
        alive = [each() for each in self._read]
        return any(each is not None and each.untyped_storage().data_ptr() == place for each in alive)


def is_in(tensor, tensors) -> bool:
    """Whether this very tensor is among `tensors`."""
    return any(tensor is each for each in tensors)


def writes(name: str) -> bool:
    """Whether a function of this name writes into its first argument: fill_, __setitem__, __imul__."""
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or name == "__setitem__" or (name.startswith("__i") and hasattr(Tensor, "__" + name[3:]))
