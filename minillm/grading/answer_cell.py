"""What an answer cell may do: it imports and defines, so that a blank one breaks nothing."""

import ast

from minillm.grading.solution_cells import BuildError, called_name, parse


def check_answer_cell(source: str, answer: str) -> None:
    """Raise BuildError unless the cell defines `answer` and, at its top, does nothing else than define.

    What it defines may not be called there, either: it is blank, so it would raise and break Run All.
    """
    statements = parse(source, "the cell").body
    allowed = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    for statement in statements:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not isinstance(statement, allowed) and not is_text:
            raise BuildError(
                f"line {statement.lineno}: an answer cell only imports and defines; move this to another cell"
            )
    defined = {getattr(statement, "name", None) for statement in statements}
    for used in (node for statement in statements for node in _uses_at_once(statement)):
        if called_name(used) in defined:
            raise BuildError(
                f"line {used.lineno}: {called_name(used)} is called while the cell runs, and it may be "
                "blank; move the call to another cell"
            )
    if answer not in defined:
        raise BuildError(f"the cell does not define {answer}, the name that its exercise is registered with")


def _uses_at_once(node: ast.AST):
    """What is called when the statement `node` is run, and not only when a function in it is called."""
    if isinstance(node, ast.Call):
        yield node.func
    yield from getattr(node, "decorator_list", [])
    later = getattr(node, "body", []) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    if isinstance(node, ast.Lambda):
        later = [node.body]
    for child in ast.iter_child_nodes(node):
        if child not in later:
            yield from _uses_at_once(child)
