"""From an answer cell of solutions/ to the blank that a learner gets."""

import ast
import re

from minillm.grading.registry import UnknownExercise, find

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
BLANK = ("# YOUR CODE HERE", "raise NotImplementedError")


class BuildError(ValueError):
    """A solution notebook breaks a rule of the build; the text says which and what to do."""


def has_markers(source: str) -> bool:
    """Whether a solution marker stands anywhere in the text."""
    return BEGIN in source or END in source


def blank(source: str) -> str:
    """The cell with each marked solution replaced by a stub. Raises BuildError.

    The stub has to lie in a function: a bare raise at the top of a cell, or in a class body, would break
    Run All for everybody who leaves the exercise out.
    """
    lines, stubs, begun = [], [], None
    for number, line in enumerate(source.splitlines(), start=1):
        marker, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        if marker == BEGIN:
            if begun is not None:
                raise BuildError(f"line {number}: {BEGIN} inside the one of line {begun}; end that first")
            begun = number
            lines += [indent + text for text in BLANK]
            stubs.append(len(lines))
        elif marker == END:
            if begun is None:
                raise BuildError(f"line {number}: {END} without {BEGIN}")
            begun = None
        elif has_markers(line):
            raise BuildError(f"line {number}: a marker must stand alone on its line: {marker}")
        elif begun is None:
            lines.append(line)
    if begun is not None:
        raise BuildError(f"line {begun}: {BEGIN} without {END}")
    blanked = "\n".join(lines)
    _parse(source, "the cell")
    inside = _lines_in_functions(_parse(blanked, "the cell without its solution"))
    for stub in stubs:
        if stub not in inside:
            raise BuildError("the markers lie outside a function body; put them around code inside a def")
    return blanked


def without_markers(source: str) -> str:
    """The cell with its solution, for the reference module."""
    return "\n".join(line for line in source.splitlines() if line.strip() not in (BEGIN, END))


def checked_ids(source: str) -> list[str]:
    """The exercise ids of every check("...", ...) call in a cell. Raises BuildError for an unknown one."""
    tree = _parse(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source), "the cell")  # magics are not Python
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == "check"]
    ids = [getattr(call.args[0], "value", None) if call.args else None for call in calls]
    for id in ids:
        known(id)
    return ids


def known(id):
    """The registered exercise `id`; BuildError lists the ids there are."""
    try:
        return find(id)
    except UnknownExercise as error:
        raise BuildError(str(error)) from None


def check_answer_cell(source: str, answer: str) -> None:
    """Raise BuildError unless the cell defines `answer` and, at its top, does nothing else than define."""
    statements = _parse(source, "the cell").body
    allowed = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    for statement in statements:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not isinstance(statement, allowed) and not is_text:
            raise BuildError(
                f"line {statement.lineno}: an answer cell only imports and defines; move this to another cell"
            )
    if answer not in {getattr(statement, "name", None) for statement in statements}:
        raise BuildError(f"the cell does not define {answer}, the name that its exercise is registered with")


def _name(function: ast.expr) -> str:
    return getattr(function, "id", getattr(function, "attr", ""))


def _parse(source: str, what: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise BuildError(f"line {error.lineno}: {what} is not valid Python: {error.msg}") from None


def _lines_in_functions(tree: ast.Module) -> set[int]:
    """Lines of statements that only run when a function is called."""
    found = set()

    def visit(node, in_function):
        for child in ast.iter_child_nodes(node):
            if in_function and isinstance(child, ast.stmt):
                found.add(child.lineno)
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                visit(child, True)
            else:
                visit(child, in_function and not isinstance(child, ast.ClassDef))

    visit(tree, False)
    return found
