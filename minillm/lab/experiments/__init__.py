"""The registry of experiments: measurements with a name, run live on a GPU and shown from a record elsewhere.

A topic is a module of this package and is imported when a name of it is first asked for. The smallest one,
``minillm/lab/experiments/launch.py``::

    import torch

    from ..timing import measure
    from . import experiment


    @experiment("launch/add/n={n}", claim="C1")
    def add(n: int) -> dict:
        x = torch.zeros(n, device="cuda")
        return {"submit_us": measure(lambda: x.add_(1)).submit_us.median}

A lesson then says ``lab.run("launch/add/n=1024")``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass


class CannotMeasure(Exception):
    """The reason why a measurement could not be made here: the record is shown instead, and says so."""


class DoesNotFit(CannotMeasure):
    """An experiment raises this, with the reason, when the GPU cannot hold its shape."""


@dataclass(frozen=True)
class Experiment:
    """A function under its name's ``template``, the ``claim`` of the articles that it tests, what it uses."""

    template: str
    function: Callable
    claim: str | None
    uses: tuple
    own_process: bool = False

    def parameters(self, name: str) -> dict | None:
        """The values of the {parameters} in ``name``, whole numbers as int; None for the name of another."""
        parts = re.split(r"\{(\w+)\}", self.template)
        pattern = "".join(
            f"(?P<{part}>[^/]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts)
        )
        match = re.fullmatch(pattern, name)
        return match and {k: int(v) if re.fullmatch(r"-?\d+", v) else v for k, v in match.groupdict().items()}


_registered: dict[str, Experiment] = {}


def experiment(
    template: str, claim: str | None = None, uses: Iterable = (), own_process: bool = False
) -> Callable:
    """Registers a function as an experiment. Its names are "topic/…" with {parameters}: one segment each.

    The function takes the template's parameters and returns a dict of what JSON can hold; it is called on
    a GPU only. ``uses`` lists what else makes its records stale when it changes: functions and classes
    (their source), and constants such as a tuple of batch sizes (their value). ``own_process`` runs it in a
    new process: for those that use the profiler, which slows down every later launch of its process.

    ValueError when the parameters do not match, or another function has the template.
    """

    def register(function: Callable) -> Callable:
        wanted, takes = set(re.findall(r"\{(\w+)\}", template)), set(inspect.signature(function).parameters)
        if wanted != takes:
            raise ValueError(
                f"{template!r} has the parameters {sorted(wanted)}, {function.__name__} {sorted(takes)}"
            )
        other = _registered.get(template)
        if other and _home(other.function) != _home(function):
            raise ValueError(
                f"{template!r} is taken by {'.'.join(_home(other.function))}; choose another name"
            )
        _registered[template] = Experiment(template, function, claim, tuple(uses), own_process)
        return function

    return register


def _home(function: Callable) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def registered(topic: str | None = None) -> dict[str, Experiment]:
    """The experiments by template: those loaded so far, or all of ``topic``, loaded if it exists."""
    if topic is None:
        return dict(_registered)
    if topic.isidentifier() and importlib.util.find_spec(f"{__name__}.{topic}"):
        importlib.import_module(f"{__name__}.{topic}")
    return {template: it for template, it in _registered.items() if template.split("/")[0] == topic}


def find(name: str) -> tuple[Experiment, dict]:
    """The experiment that ``name`` names, and its parameters. LookupError when there is none, or several."""
    topic = registered(name.split("/")[0])
    matches = [(it, parameters) for it in topic.values() if (parameters := it.parameters(name)) is not None]
    if len(matches) != 1:
        known = ", ".join(sorted(topic)) or "none in this topic"
        raise LookupError(f"{len(matches)} experiments answer to {name!r}; expected one of: {known}")
    return matches[0]


def source_hash(name: str) -> str:
    """sha256 over the experiment's function and what it ``uses``: over what runs.

    Decorators, docstrings, remarks and blanks are left out, so that better words make no record stale.
    """
    found, _ = find(name)
    digest = hashlib.sha256()
    for used in (found.function, *found.uses):
        digest.update(source_text(used).encode() + b"\0")
    return digest.hexdigest()


def source_text(used) -> str:
    """What runs of a function, class or module: its text without docstrings and remarks; else ``repr``."""
    if not (inspect.isroutine(used) or inspect.isclass(used) or inspect.ismodule(used)):
        return repr(used)
    try:
        text = textwrap.dedent(inspect.getsource(used))
    except (OSError, TypeError) as error:
        raise ValueError(
            f"{used!r} has no source to hash; expected a function or class of a file or cell"
        ) from error
    tree = ast.parse(text)
    first = 0 if inspect.ismodule(used) else tree.body[0].lineno - 1
    words = {line for node in ast.walk(tree) for line in _docstring_lines(node)}
    lines = [line.rstrip() for at, line in enumerate(text.splitlines(), 1) if at > first and at not in words]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def _docstring_lines(node: ast.AST) -> range:
    """The numbers of the lines on which a module's, class's or function's docstring stands."""
    documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    if not documented or ast.get_docstring(node, clean=False) is None:
        return range(0)
    return range(node.body[0].lineno, node.body[0].end_lineno + 1)
