"""From an answer cell of solutions/ to the blank that a learner gets."""

import ast
import re

from minillm.grading.registry import UnknownExercise, find

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
MARKER = re.compile(r"#+\s*(BEGIN|END)[\s_-]*SOLUTION", re.IGNORECASE)  # also those that are misspelt
BLANK = ("# YOUR CODE HERE", "raise NotImplementedError")


class BuildError(ValueError):
    """A solution notebook breaks a rule of the build; the text says which and what to do."""


def has_markers(source: str) -> bool:
    """Whether a solution marker, or something that was meant as one, stands anywhere in the text."""
    return MARKER.search(source) is not None


def blank(source: str) -> str:
    """The cell with each marked solution replaced by a stub. Raises BuildError.

    The stub has to lie in a function: a bare raise at the top of a cell, or in a class body, would break
    Run All for everybody who leaves the exercise out.
    """
    lines, stubs, begun = [], [], None
    for number, line in enumerate(_lines(source), start=1):
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
            raise BuildError(f"line {number}: {marker} must be {BEGIN} or {END}, alone on its line")
        elif begun is None:
            lines.append(line)
    if begun is not None:
        raise BuildError(f"line {begun}: {BEGIN} without {END}")
    blanked = "\n".join(lines)
    parse(source, "the cell")
    inside = _lines_in_functions(parse(blanked, "the cell without its solution"))
    for stub in stubs:
        if stub not in inside:
            raise BuildError("the markers lie outside a function body; put them around code inside a def")
    return blanked


def without_markers(source: str) -> str:
    """The cell with its solution, for the reference module."""
    return "\n".join(line for line in _lines(source) if line.strip() not in (BEGIN, END))


def checked_ids(source: str) -> list[str]:
    """The exercise ids of every check("...", ...) call in a cell. Raises BuildError for an unknown one."""
    tree = parse(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source), "the cell")  # magics are not Python
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node.func) == "check"
    ]
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


def _lines(source: str) -> list[str]:
    """As Python counts them; splitlines() would also split at a form feed."""
    return source.replace("\r\n", "\n").removesuffix("\n").split("\n")


def called_name(function: ast.expr) -> str:
    """The last name of what is called: "check" for `check(...)` and `grading.check(...)`; "" for others."""
    return getattr(function, "id", getattr(function, "attr", ""))


def parse(source: str, what: str) -> ast.Module:
    """The syntax tree of `source`; BuildError names the line that is no Python in `what`."""
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
