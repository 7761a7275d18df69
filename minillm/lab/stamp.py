"""What a cell's output was made by, as one hash: the cell, its experiments, figures, and listed code."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import re
from collections.abc import Iterator, Sequence

FIGURES, LIMITS = "minillm.lab.figures.", "minillm.graphs.limits"


def cell_stamp(cell: dict, before: Sequence[dict] = ()) -> str:
    """sha256 over a cell's source, trailing blanks left out, and what its output depends on besides:

    - the experiments whose names stand in it, or in its metadata under ``minillm.draws`` (a list of names,
      for a cell that draws what an earlier one measured),
    - the functions of `minillm.lab.figures` that it calls,
    - the code that it lists with ``lab.source(…)``, and the list that ``graphs.limits()`` shows.

    ``before`` are the notebook's cells above it: their imports say what the names in this one mean.
    """
    source = source_of(cell)
    lines = "\n".join(line.rstrip() for line in source.strip().splitlines())
    named = experiments_named(source)
    for name in cell["metadata"].get("minillm", {}).get("draws", ()):
        named |= experiments_named(repr(name))
    code = [source_of(one) for one in before if one["cell_type"] == "code"]
    digest = hashlib.sha256(lines.encode())
    for key, value in sorted({**named, **_code_used(source, code)}.items()):
        digest.update(f"\0{key}\0{value}".encode())
    return digest.hexdigest()


def experiments_named(source: str) -> dict[str, str]:
    """Template -> source hash of each registered experiment that a string literal of the cell names.

    An f-string names it too: each {expression} in it stands for some parameter.
    """
    from .experiments import find, source_hash

    found = {}
    for literal in _literals(source):
        if re.fullmatch(r"[a-z]\w*(/[^/\s]+)+", literal):
            try:
                template = find(literal)[0].template
            except LookupError:
                continue
            found[template] = source_hash(literal)
    return found


def source_of(cell: dict) -> str:
    """A cell's source as one string, however the file keeps it."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _code_used(source: str, before: Sequence[str]) -> dict[str, str]:
    """Dotted name -> source of the figures that a cell calls and of the code that it lists."""
    from .experiments import source_text

    names = dict(pair for text in (*before, source) for pair in _imports(text))
    used = {}
    for node in _nodes(source) or ():
        if not isinstance(node, ast.Call):
            continue
        called = _dotted(node.func, names)
        if called == LIMITS:
            from ..graphs import limits

            used[called] = str(limits())
        listed = [_dotted(part, names) for part in node.args] if called == "minillm.lab.source" else []
        for path, keep_words in [(called, False), *((one, True) for one in listed)]:
            if path and (keep_words or path.startswith(FIGURES)):
                thing = _resolve(path)
                if thing is not None:
                    used[path] = inspect.getsource(thing) if keep_words else source_text(thing)
    return used


def _imports(source: str) -> Iterator[tuple[str, str]]:
    """(name, dotted path) for what a cell's ``from minillm… import …`` lines bring."""
    for node in _nodes(source) or ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "minillm":
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.AST, names: dict[str, str]) -> str | None:
    """ "minillm.lab.figures.step.floor" of ``draw_step.floor``; None for what no import explains."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    return ".".join([names[node.id], *reversed(parts)])


def _resolve(path: str):
    """The function, class or module at a dotted path; None where there is none with a source."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for name in parts[cut:]:
            thing = getattr(thing, name, None)
        has_source = inspect.isfunction(thing) or inspect.isclass(thing) or inspect.ismodule(thing)
        return thing if has_source else None
    return None


def _nodes(source: str) -> list[ast.AST] | None:
    """The cell's syntax, notebook magics left out; None if it does not parse."""
    plain = re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source)
    try:
        return list(ast.walk(ast.parse(plain)))
    except SyntaxError:
        return None


def _literals(source: str) -> list[str]:
    """The string literals of a cell; an f-string with a placeholder for each of its expressions."""
    nodes = _nodes(source)
    if nodes is None:  # looked for as text
        return re.findall(r"""["']([^"'\n]+)["']""", source)
    literals = [
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            literals.append("".join(map(str, parts)))
    return literals
