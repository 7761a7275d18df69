"""Compare an answer with the truth, and find the mistake that explains the difference.

A mistake that can be put as a formula is kept as one: a function which computes what somebody with that
misconception would answer. An answer is then recognised by what it returns, however it is written.
"""

import copy
from collections.abc import Callable, Sequence
from math import isclose  # by name, since an answer may put something else into the module

from minillm.grading.registry import Wrong


def compare(
    answer: Callable,
    cases: Sequence[tuple],
    truth: Callable,
    mistakes: dict[str, Callable | Sequence[Callable]],
    arguments: Sequence[str],
    read: Callable | None = None,
    relative: float = 1e-5,
    describe: Callable | None = None,
) -> None:
    """Call `answer` on each case; raise Wrong with the mistake that explains what it returned.

    cases      argument tuples; they are copied, so that an answer cannot spoil them
    mistakes   key -> what an answer with this mistake returns (one formula, or several variants of it)
    read       (returned, truth) -> value to compare, or raises Wrong; `number` if left out
    relative   how far from the truth still counts as right
    describe   a case in words; the arguments by name if left out

    A mistake is named only if it explains what was returned on every case.
    """
    read = read or number
    describe = describe or (lambda *case: _named(arguments, case))
    returned, first_wrong = [], None
    for case in cases:
        right, given = truth(*case), copy.deepcopy(case)
        try:
            value = read(answer(*given), right)
        except Exception as error:
            if first_wrong is not None:
                continue  # it is wrong already; what it returned elsewhere is enough to tell why
            called_with = f"It was called with {describe(*case)}."
            if isinstance(error, Wrong):
                raise Wrong(error.key, f"{error.seen} {called_with}".strip()) from None
            error.called_with = [called_with]
            raise
        if any(isinstance(each, list) and each != before for each, before in zip(given, case, strict=True)):
            raise Wrong("changed-input", f"It was called with {describe(*case)}.")
        returned.append((case, value))
        if first_wrong is None and not same(value, right, relative):
            first_wrong = f"For {describe(*case)} you return {short(value)}; right is {short(right)}."
    if first_wrong is None:
        return
    for key, formulas in mistakes.items():
        for formula in formulas if isinstance(formulas, (list, tuple)) else [formulas]:
            if _explains(formula, returned, min(relative, 1e-3)):
                raise Wrong(key, first_wrong)
    raise Wrong("wrong-value", first_wrong)


def number(value, _right=None) -> float:
    """`value` as a float; takes Python's, numpy's and 0-dim torch numbers, raises Wrong for anything else."""
    if value is None:
        raise Wrong("returned-nothing")
    try:
        if isinstance(value, (bool, str, bytes, bytearray)) or getattr(value, "ndim", 0):
            raise TypeError
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):
        raise Wrong("wrong-type", f"It has to be a number; you return {_kind(value)}.") from None
    except OverflowError:
        raise Wrong("wrong-type", "Your number is too large for a float.") from None


def numbers(value, right: Sequence) -> list[float]:
    """`value` as a list of floats, as long as `right`; takes lists, tuples, 1-D arrays and tensors."""
    if value is None:
        raise Wrong("returned-nothing")
    is_list = hasattr(value, "__len__") and hasattr(value, "__getitem__") and getattr(value, "ndim", 1) == 1
    if not is_list or isinstance(value, (str, bytes, bytearray, dict)):
        raise Wrong("wrong-type", f"It has to be a list of numbers; you return {_kind(value)}.")
    if len(value) != len(right):
        raise Wrong("wrong-length", f"There should be {len(right)} values; you return {len(value)}.")
    return [number(each) for each in value]


def same(left, right, relative: float = 1e-5) -> bool:
    """Equal up to rounding; lists are compared value by value, words as they are."""
    if isinstance(left, str):
        return left == right
    if isinstance(left, list):
        return len(left) == len(right) and all(same(a, b, relative) for a, b in zip(left, right, strict=True))
    return isclose(left, right, rel_tol=relative, abs_tol=1e-9)


def short(value) -> str:
    """`value` for a message: numbers with at most six digits, long lists cut."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([short(each) for each in value[:8]] + ['...'] * (len(value) > 8))}]"
    if isinstance(value, float):
        return f"{value:.6g}"
    name = getattr(value, "name", None)
    try:
        text = name if isinstance(name, str) else repr(value)
    except Exception:  # its own __repr__ fails
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def _explains(formula: Callable, returned: list, relative: float) -> bool:
    try:
        return all(same(value, formula(*case), relative) for case, value in returned)
    except ArithmeticError:  # this formula has no result there, so it is not what was computed
        return False


def _kind(value) -> str:
    name = type(value).__name__
    return f"{short(value)}, {'an' if name[0] in 'aeiou' else 'a'} {name}"


def _named(arguments, case) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in zip(arguments, case, strict=True))
