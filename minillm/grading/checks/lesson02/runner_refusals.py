"""Exercise 2.2: what a runner must refuse, and that two of them leave each other alone."""

from minillm.grading.checks.lesson02.occupancy import same
from minillm.grading.checks.lesson02.runner_judge import Subject, Values
from minillm.grading.registry import Wrong


def judge_refusals(subject: Subject, new: Values) -> None:
    """Calls that must be refused, and must leave everything as it was."""
    row, wide, narrow = new["hidden"][:1], new["hidden"].double(), new["token_ids"].int()
    bad = {
        "temperature": ("unknown-name", {"hidden": new["hidden"], "temperature": new["hidden"]}),
        "token_id": ("unknown-name", {"token_id": new["token_ids"]}),
        "one row": ("broadcast", {"token_ids": new["token_ids"], "hidden": row}),
        "one column": ("broadcast", {"token_ids": new["token_ids"], "hidden": new["hidden"][:, :1]}),
        "transposed": ("broadcast", {"token_ids": new["token_ids"], "hidden": new["hidden"].t().clone()}),
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
    sizes = [len(each["token_ids"]) for each in (values, others)]
    those = f"With two runners, of batch {sizes[0]} and {sizes[1]}"
    for each, given in ((other, others), (subject, values)):
        try:
            each.run(given)
        except Wrong as wrong:
            raise Wrong("shared-state", f"{those}. {wrong.seen}") from None
        except Exception as error:
            seen = f"{those}, one raised {type(error).__name__}: {error}"
            raise Wrong("shared-state", seen) from error
