"""What an answer to 3.4 does with tensors, so that a temperature without effect can be explained."""

import math
import weakref

from torch import Tensor
from torch.overrides import TorchFunctionMode

from minillm.grading.checks.lesson03.host_waits import on_device, tensors_in
from minillm.graphs import cuda


class Watch(TorchFunctionMode):
    """Sees every call of torch that the answer makes, inside its capture and in its runs.

    recaptured    how many runs captured something
    eager         the name of a function that computed with the logits in a run, outside any capture
    written       whether a run wrote into a tensor in place
    reads_logits  whether the capture used the logits' own memory
    """

    def __init__(self, logits):
        super().__init__()
        self.recaptured, self.eager = 0, None
        self.written = self.reads_logits = False
        self._logits = logits.untyped_storage().data_ptr()
        self._numbers = []  # weak references to one-element tensors that a capture used
        self._made = []  # tensors that the capture made: their values are the graph's own
        self._on_host = self._freed = self._in_run = self._captures = False

    def start_run(self):
        self._in_run, self._captures = True, False

    def end_run(self):
        self._in_run = False
        self.recaptured += self._captures

    def captured(self):
        """The answer has returned: see which of the numbers that its graph reads are held."""
        self._made.clear()
        self._freed = bool(self._numbers) and all(number() is None for number in self._numbers)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name, operands = getattr(func, "__name__", str(func)), tensors_in((args, kwargs))
        if cuda.is_current_stream_capturing():
            self._captures = True
            if not self._in_run:
                self._note(operands, tensors_in(result))
        elif self._in_run:
            self.written |= "out" in kwargs or writes(name)
            reads = any(each.untyped_storage().data_ptr() == self._logits for each in operands)
            makes = [each for each in tensors_in(result) if each.is_floating_point()]
            if reads and any(each.untyped_storage().data_ptr() != self._logits for each in makes):
                self.eager = name
        return result

    def _note(self, operands, results):
        self.reads_logits |= any(each.untyped_storage().data_ptr() == self._logits for each in operands)
        made = {id(each) for each in self._made}
        for each in operands:
            if each.numel() == 1 and id(each) not in made:
                if on_device(each):
                    self._numbers.append(weakref.ref(each))
                else:
                    self._on_host = True
        self._made += [each for each in results if not any(each is operand for operand in operands)]

    def cause(self, scales) -> str:
        """Why the temperature had not the effect it should have; `scales` are those of the runs, in order."""
        if self._numbers:
            if self.written:
                return "written-elsewhere"
            return "dropped-temperature" if self._freed else "rebound"
        if None in scales or not all(math.isclose(each, scales[0], rel_tol=1e-3) for each in scales):
            return "wrong-value"
        return "host-tensor" if self._on_host else "frozen-number"


def writes(name: str) -> bool:
    """Whether a function of this name writes into its first argument: fill_, __setitem__, __imul__."""
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or name == "__setitem__" or (name.startswith("__i") and hasattr(Tensor, "__" + name[3:]))
