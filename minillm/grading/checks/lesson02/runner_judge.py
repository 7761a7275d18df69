"""What a runner does: where its inputs lie, and what its calls answer."""

from dataclasses import dataclass
from itertools import combinations

import torch

from minillm.grading.checks.lesson02.device_memory import in_use, on_device, same, squat
from minillm.grading.checks.lesson02.observed import Observed, judge_calls
from minillm.grading.registry import Wrong
from minillm.graphs.anatomy.report import count_of

Values = dict[str, torch.Tensor]


@dataclass
class Subject:
    """A runner, its function, and the values that its static inputs should hold."""

    runner: object
    fn: Observed
    held: Values

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
        out = self.call({name: tensor.clone() for name, tensor in values.items()})
        if not same(out, self.fn.compute(**self.held)):
            self._explain(out, before)
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
            raise Wrong("rebinds", "The result is that of the values before.")
        raise Wrong("wrong-value", f"The output, of shape {list(out.shape)}, is not fn's of these values.")

    def _is_right_by_now(self) -> bool:
        try:
            return same(self.call({}), self.fn.compute(**self.held))
        except Exception:
            return False


def make(answer, fn: Observed, examples: Values) -> Subject:
    """A runner of `fn`; raises Wrong if it was captured on the wrong tensors. Empties `examples`."""
    held = {name: tensor.clone() for name, tensor in examples.items()}
    runner = answer(fn, dict(examples))
    call = judge_calls(fn)
    for name in held:
        if examples[name].data_ptr() == call.inputs[name] or not same(examples[name], held[name]):
            raise Wrong("callers-tensors", f"{name} was captured at the address of the caller's tensor.")
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
        out.fill_(float("nan"))  # what a replay does not write stays visible
        del squatters
    for names in (("hidden",), ("positions", "token_ids")):
        given = " and ".join(names)
        try:
            subject.run({name: news[2][name] for name in names})
        except Wrong as wrong:
            raise Wrong("missing-name", f"Called with {given} only. {wrong.seen}") from None
        except Exception as error:
            raise Wrong("missing-name", f"With {given} only it raised {type(error).__name__}.") from error


def judge_refusals(subject: Subject, new: Values) -> None:
    """Calls that must be refused, and must leave everything as it was."""
    row, wide, narrow = new["hidden"][:1], new["hidden"].double(), new["token_ids"].int()
    bad = {
        "temperature": ("unknown-name", {"hidden": new["hidden"], "temperature": new["hidden"]}),
        "token_id": ("unknown-name", {"token_id": new["token_ids"]}),
        "one row": ("broadcast", {"token_ids": new["token_ids"], "hidden": row}),
        "one position": ("broadcast", {"positions": new["positions"][:1]}),
        "float64": ("converted", {"positions": new["positions"], "hidden": wide}),
        "int32": ("converted", {"hidden": new["hidden"], "token_ids": narrow}),
    }
    for what, (key, values) in bad.items():
        kinds = [f"{name} {t.dtype} {list(t.shape)}" for name, t in values.items()]
        seen = f"The runner was made for {_described(subject.held)}; it was called with {', '.join(kinds)}."
        try:
            subject.runner(**values)
        except Exception:
            refused = True
        else:
            refused = False
        if not refused:
            raise Wrong(key, seen.replace("torch.", ""))
        if len(values) > 1 and not same(subject.call({}), subject.fn.compute(**subject.held)):
            raise Wrong("half-loaded", f"After a call that it refused ({what}) the next result was another.")


def _described(values: Values) -> str:
    return ", ".join(f"{name} {t.dtype} {list(t.shape)}" for name, t in values.items())


def judge_two(subject: Subject, values: Values, other: Subject, others: Values) -> None:
    """Two runners, the second made after the first: neither may disturb the other."""
    if gone := subject.dropped():  # so no replay: that address may be nobody's by now
        raise Wrong("shared-state", f"When a second runner was made, the first one's {gone[0]} was dropped.")
    for each, given in ((other, others), (subject, values)):
        try:
            each.run(given)
        except Wrong as wrong:
            raise Wrong("shared-state", f"With two runners, of batch 4 and 3. {wrong.seen}") from None
        except Exception as error:
            seen = f"With two runners, of batch 4 and 3, one raised {type(error).__name__}: {error}"
            raise Wrong("shared-state", seen) from error
