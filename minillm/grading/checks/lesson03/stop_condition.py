"""Exercise 3.5: find out that every row has ended, without a wait in each step."""

from collections import Counter

import torch

from minillm.grading.checks.lesson03.host_waits import HostWaits
from minillm.grading.checks.lesson03.stop_script import Case, ScriptedStep, make_cases
from minillm.grading.checks.lesson03.stop_truth import judge
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import Wrong, exercise

# What still passes: a synchronize() beside the read, and the last check and lengths beside the tokens.
MOST_AT_A_CHECK, MOST_AT_THE_END = 2, 4


@exercise(
    "3.5",
    answer="decode_until_done",
    arguments=("step", "tokens", "end_token", "max_steps", "check_every"),
    title="Stop without a wait in each step",
    hints=(
        "Two things are wanted from the device: the tokens, at the very end, and now and then one bit: is "
        "every row done?",
        "Keep `finished`, a bool tensor [B] on the device. After each step, finished |= tokens == end_token "
        "waits for nothing. Keep tokens.clone() of each step in a list.",
        "Only after every check_every-th step ask bool(finished.all()), and leave the loop if it is True.",
        "At the end torch.stack(history, dim=1).tolist() waits once and gives a list a row. Cut each with "
        "row[: row.index(end_token) + 1] if end_token is in it.",
    ),
    mistakes={
        "waits-each-step": "The host waits for the device more than once in check_every steps: .item(), "
        "bool(), .tolist() and .cpu() of a device tensor all wait, and so does synchronize(). Between checks "
        "the CPU has to run ahead, or each step pays the launch again.",
        "read-too-early": "You read host memory to which a non_blocking copy was under way, and nothing had "
        "waited for it: the value may be an old one. Record an event after the copy, and ask that event.",
        "waits-each-row": "It waits anew for each row, or token: Python's all(), and int() or .tolist() "
        "in a loop over a device tensor, ask the device once an element. Reduce or stack on the device, and "
        "read once.",
        "never-stops": "All rows had ended, and it went on to max_steps.",
        "stops-at-first": "It stops when the first row ends; the others have tokens to come. Ask .all(), not "
        ".any().",
        "prompt-ended": "A row counts as ended because its prompt ends in the end token. Only tokens that a "
        "step has chosen count.",
        "stops-too-early": "It stops before every row has ended. A row that has ended may show the end token "
        "again, which is not the end of another row.",
        "not-accumulated": "It stops only when all rows show the end token in one and the same step. Rows "
        "end at different steps: remember in a tensor which have ended (finished |= ...).",
        "looked-only-at-checks": "An end token that comes between two checks is missed. Accumulate "
        "`finished` on the device after every step; it is looking at it that should be rare.",
        "late-stop": "It stops more than check_every - 1 steps after the last row has ended.",
        "beyond-max": "step was called more than max_steps times; max_steps need not be a multiple of "
        "check_every.",
        "keeps-after-end": "A row has tokens after its end token; the graph goes on computing rows that have "
        "ended, and what it chooses there is no part of the answer.",
        "no-end-in-the-row": "A row without an end token is cut after its first token: argmax gives 0 where "
        "nothing matches. Such a row keeps all its tokens.",
        "lost-end": "The end token itself is missing; a row that ended keeps it as its last token.",
        "prompt-token": "A row begins with what was in `tokens` before the first step; keep the tokens after "
        "each step.",
        "aliased-tokens": "All tokens of a row are the same one: every entry that you kept is the one buffer "
        "which each step overwrites. Keep tokens.clone().",
        "not-by-row": "You return one list a step; asked is one list a row.",
    },
)
def check_decode_until_done(answer, rng):
    for case in make_cases(rng):
        with as_on_a_gpu(), torch.no_grad():
            _check(answer, case)


def _check(answer, case: Case) -> None:
    step, waited_at = ScriptedStep(case), Counter()  # step -> waits after it
    with HostWaits(lambda: waited_at.update([step.calls])) as waits:
        returned = answer(step, step.tokens, case.end_token, case.max_steps, case.check_every)
    if waits.too_early:
        raise Wrong("read-too-early", f"It was called with {case}.")
    rows = read_rows(returned, case, step.calls)
    if key := judge(case, step.calls, len(waited_at.keys() - {0}), rows):
        seen = f"{step.calls} steps ran, {case.needed} were needed, the host waited after {len(waited_at)}."
        raise Wrong(key, f"With {case}, {seen}{_first_difference(case, rows)}")
    for number, count in waited_at.items():
        if count > (MOST_AT_THE_END if number == step.calls else MOST_AT_A_CHECK):
            raise Wrong("waits-each-row", f"With {case}, the host waited {count} times after step {number}.")


def read_rows(returned, case: Case, steps: int) -> list[list[int]]:
    """What was returned as a list of lists of ints; raises Wrong."""
    if returned is None:
        raise Wrong("returned-nothing", f"Asked is one list a row. It was called with {case}.")
    wanted = "It has to be a list with one list of token ids a row"
    try:
        rows = [[int(token) for token in row] for row in returned]
    except (TypeError, ValueError, RuntimeError):
        raise Wrong("wrong-type", f"{wanted}; yours returns a {type(returned).__name__}.") from None
    batch = len(case.rows)
    if len(rows) != batch:
        by_step = len(rows) == steps and {len(each) for each in rows} == {batch}
        key = "not-by-row" if by_step else "wrong-length"
        raise Wrong(key, f"There are {batch} rows and {steps} steps; yours has {len(rows)} lists.")
    return rows


def _first_difference(case: Case, rows) -> str:
    for number, (row, right) in enumerate(zip(rows, case.truth, strict=True)):
        if row != right:
            found = f"ends with {row[-4:]} and has {len(row)} tokens"
            return f" Row {number} {found}; right are {right[-4:]} and {len(right)}."
    return ""
