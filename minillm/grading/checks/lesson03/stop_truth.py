"""What is known about an answer to 3.5: whether it is right, else which mistake explains it."""

from math import ceil

from minillm.grading.checks.lesson03.stop_script import Case


def judge(case: Case, steps: int, waits: int, rows: list[list[int]]) -> str | None:
    """The mistake, or None. `waits` counts the steps after which the host waited; `rows` was returned."""
    if steps < case.needed and steps < case.max_steps:
        return _stopped_early(case, steps)
    if rows != case.truth:
        return _other_rows(case, steps, rows)
    if steps > min(case.max_steps, case.needed + case.check_every - 1):
        return _stopped_late(case, steps)
    if waits > ceil(steps / case.check_every) + 1:  # one more, for the tokens at the end
        return "waits-each-step"
    return None


def _stopped_early(case: Case, steps: int) -> str:
    last = case.check_every - 1
    without = [end for end, token in zip(case.ends, case.prompt, strict=True) if token != case.end_token]
    if steps <= min(case.ends) + last:
        return "stops-at-first"
    if len(without) < len(case.ends) and max(without) <= steps <= max(without) + last:
        return "prompt-ended"
    return "stops-too-early"


def _stopped_late(case: Case, steps: int) -> str:
    if steps == case.max_steps:
        return "never-stops"
    if case.block and steps >= case.block:
        # Where all ends lie on the checks, who looks only there sees them.
        at_the_checks = all(end % case.check_every == 0 for end in case.ends)
        return "not-accumulated" if at_the_checks else "looked-only-at-checks"
    return "late-stop"


def _other_rows(case: Case, steps: int, rows: list[list[int]]) -> str:
    every = list(zip(rows, case.truth, case.rows, case.prompt, strict=True))
    last = [row[steps - 1] for row in case.rows]
    if steps > 1 and all(row and set(row) == {token} for row, token in zip(rows, last, strict=True)):
        return "aliased-tokens"
    if all(row[: len(right)] == right for row, right, *_ in every):
        return "keeps-after-end"
    ended = [right[-1] == case.end_token for right in case.truth]
    if all(row == right[: len(right) - done] for (row, right, *_), done in zip(every, ended, strict=True)):
        return "lost-end"
    if all(row == right[: None if done else 1] for (row, right, *_), done in zip(every, ended, strict=True)):
        return "no-end-in-the-row"
    if all(row[:2] == [token, *full[:1]][: len(row[:2])] for row, _, full, token in every if row):
        return "prompt-token"
    return "wrong-value"
