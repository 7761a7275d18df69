"""Tell a blank that nobody touched from work that still raises NotImplementedError."""

import ast
import linecache

from minillm.grading.frames import origin
from minillm.grading.registry import Exercise, all_exercises


def is_untouched(error: NotImplementedError, exercise: Exercise) -> bool:
    """Whether `error` comes from a blank as build writes it, and not one of another exercise."""
    return _is_blank(error) and _other_exercise(error, exercise) is None


def what_is_left(error: NotImplementedError, exercise: Exercise) -> str | None:
    """What the learner has to do about `error`; None if it is not a blank's but somebody else's."""
    if error.args or origin(error) is None:  # torch, too, says so of what it has not implemented
        return None
    other = _other_exercise(error, exercise)
    if other and _is_blank(error):
        ask = f'{other.answer} = answer_or_reference("{other.id}", {other.answer})'
        return f"{other.answer} ({other.id}) is still blank. Fill it in, or take the reference: {ask}"
    return (
        f"Line {origin(error)[1]} still raises NotImplementedError: delete it, once your code stands there."
    )


def _is_blank(error: NotImplementedError) -> bool:
    """Whether the function that raised is nothing but a docstring and the raise."""
    if error.args or origin(error) is None:
        return False
    code, line = origin(error)
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return True  # without its source, nothing speaks against it
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _raises_at(node, line):
            return len([each for each in node.body if not _is_text(each)]) == 1
    return not tree.body


def _raises_at(function, line: int) -> bool:
    return any(isinstance(each, ast.Raise) and each.lineno == line for each in function.body)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _other_exercise(error, exercise: Exercise) -> Exercise | None:
    """The exercise, other than this one, whose answer raised; known by its name."""
    code = origin(error)[0]
    name = getattr(code, "co_qualname", code.co_name).split(".")[0]
    if name == exercise.answer:
        return None
    return next((each for each in all_exercises() if each.answer == name), None)
