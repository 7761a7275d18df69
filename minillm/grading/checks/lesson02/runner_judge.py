"""What a runner does: where its inputs lie, and what its calls answer."""

from dataclasses import dataclass, field
from itertools import combinations

import torch

from minillm.grading.checks.lesson02.observed import Observed, judge_calls
from minillm.grading.checks.lesson02.occupancy import in_use, poison, same, squat
from minillm.grading.device_memory import on_device
from minillm.grading.registry import Wrong
from minillm.graphs.anatomy.report import count_of

Values = dict[str, torch.Tensor]


@dataclass
class Subject:
    """A runner, its function, and the values that its static inputs should hold."""

    runner: object
    fn: Observed
    held: Values
    callers: Values = field(default_factory=dict)
    passed: int = 0  # calls that were right

    def call(self, values: Values) -> torch.Tensor:
        """What the runner returns; raises Wrong if it did anything else than replay, or gave no tensor."""
        calls, runs = len(self.fn.calls), self.fn.replays
        out = self.runner(**values)
        new = self.fn.calls[calls:]
        if any(each.captured for each in new):
            raise Wrong(
                "recaptures", f"A call of the runner led to {count_of(len(new), 'call')} of fn, captured."
            )
        if new:
            raise Wrong("calls-fn", f"A call of the runner led to {count_of(len(new), 'call')} of fn.")
        if self.fn.replays == runs:
            raise Wrong("not-replayed", "Counted on the device: fn did not run at this call.")
        if out is None:
            raise Wrong("returned-nothing")
        if not isinstance(out, torch.Tensor) or not on_device(out):
            kind = "a tensor in host memory" if isinstance(out, torch.Tensor) else f"a {type(out).__name__}"
            raise Wrong("wrong-type", f"A call returns fn's output, a tensor on the device; this is {kind}.")
        return out

    def run(self, values: Values) -> torch.Tensor:
        """The same, for values that are right: raises Wrong if the output is not fn's of them."""
        before, self.held = self.held, {**self.held, **values}
        for name, value in values.items():  # a caller that goes on to use its own tensors, and the same ones
            self.callers.setdefault(name, torch.empty_like(value)).copy_(value)
        out = self.call({name: self.callers[name] for name in values})
        for tensor in self.callers.values():
            tensor.fill_(77)
        if not same(out, self.fn.compute(**self.held)):
            self._explain(out, before)
        self.passed += 1
        return out

    def dropped(self) -> list[str]:
        """The captured inputs whose memory nobody holds any more."""
        return [name for name, address in self.fn.captured[0].inputs.items() if not in_use(address)]

    def _explain(self, out: torch.Tensor, before: Values) -> None:
        if gone := self.dropped():
            raise Wrong("rebinds", f"After a call, nobody held the tensor captured as {gone[0]}.")
        names = list(self.held)
        for stale in (each for n in range(1, len(names)) for each in combinations(names, n)):
            if same(out, self.fn.compute(**{**self.held, **{name: before[name] for name in stale}})):
                raise Wrong("stale-input", f"The result is that of the old {' and '.join(stale)}.")
        if same(out, self.fn.compute(**before)):
            if self._is_right_by_now():
                raise Wrong("late-copy", "A further call without any values gave the right result.")
            if self.passed:
                raise Wrong("stale-input", "The tensors were those of the call before, with new values.")
            raise Wrong("rebinds", "The result is that of the values before.")
        if self._is_right_by_now():
            raise Wrong("early-clone", "The next call, without any values, gave this call's result.")
        raise Wrong("wrong-value", f"The output, of shape {list(out.shape)}, is not fn's of these values.")

    def _is_right_by_now(self) -> bool:
        try:
            return same(self.call({}), self.fn.compute(**self.held))
        except Exception:
            return False


def make(answer, fn: Observed, examples: Values) -> Subject:
    """A runner of `fn`; raises Wrong if it was captured on the wrong tensors. Empties `examples`."""
    held, given = {name: tensor.clone() for name, tensor in examples.items()}, dict(examples)
    runner = answer(fn, given)
    call = judge_calls(fn)
    for name in held:
        if examples[name].data_ptr() == call.inputs[name] or not same(examples[name], held[name]):
            raise Wrong("callers-tensors", f"{name} was captured at the address of the caller's tensor.")
        if given.get(name) is not examples[name]:
            raise Wrong("callers-tensors", f"The caller's dict has another tensor under {name} than before.")
    for tensor in examples.values():
        tensor.fill_(77)
    given.clear()
    examples.clear()
    for name, address in call.inputs.items():
        alive = in_use(address)
        if alive is None:  # it lies in the graph's own pool
            raise Wrong("clone-in-graph", f"What fn got as {name} was made during the capture.")
        if not alive:
            raise Wrong("dropped-input", f"Nobody held the tensor captured as {name} any more.")
    return Subject(runner, fn, held)


def judge_calls_of(subject: Subject, news: list[Values]) -> None:
    """Three calls: with all values, again with all, and with only some of them, twice."""
    for values in news[:2]:
        squatters = squat(values["hidden"])  # they take over addresses that the runner let go of
        out = subject.run(values)
        if out.data_ptr() != subject.fn.captured[0].output and in_use(out.data_ptr()) is None:
            raise Wrong("clone-in-graph", "A call returns a copy of fn's output that was made in the graph.")
        poison(out)
        del squatters
    for names in (("hidden",), ("positions", "token_ids")):
        _judge_without(subject, {name: news[2][name] for name in names})


def judge_first_call(subject: Subject, new: Values) -> None:
    """The first call of all leaves names out, so it needs the values that the runner was made with."""
    _judge_without(subject, {"hidden": new["hidden"]})


def _judge_without(subject: Subject, values: Values) -> None:
    given = " and ".join(values)
    try:
        subject.run(values)
    except Wrong as wrong:
        raise Wrong("missing-name", f"Called with {given} only. {wrong.seen}") from None
    except Exception as error:
        raise Wrong("missing-name", f"With {given} only it raised {type(error).__name__}.") from error
