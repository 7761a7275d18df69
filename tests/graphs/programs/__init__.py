"""Small programs such as learners write, each run on a GPU once; the emulator is held to what came out.

A program is a function ``(cuda, device) -> outcome``, an outcome being what JSON can hold.  ``program``
registers one as it stands; ``case`` and ``table`` make them from a template and the part that differs.
``record_programs.py`` runs them all on a GPU and writes ``recorded/*.json``; ``test_programs.py`` compares.
"""

import ast
import dataclasses
import functools
import hashlib
import importlib
import pathlib
import pkgutil
import textwrap
import warnings

REGISTRY = {}


@dataclasses.dataclass
class Program:
    """``unfaithful``: "item N: why" of what the emulator does not imitate, so the outcomes must differ.
    ``known_fault`` and ``fault_in_a_heap``: why the emulator is wrong for now (see ``known_faults``).
    ``alone``: on a GPU it needs a process of its own."""

    name: str
    function: object
    source: str
    unfaithful: str = None
    known_fault: str = None
    fault_in_a_heap: str = None
    alone: bool = False

    def digest(self):
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


def register(name, function, source, **marks):
    if name in REGISTRY:
        raise ValueError(f"two programs are called {name!r}: rename one")
    REGISTRY[name] = Program(name, function, source, **marks)


def program(name, **marks):
    """Decorator: ``@program("life: replay twice")`` registers the function below it."""

    def decorate(function):
        register(name, function, source_of(function), **marks)
        return function

    return decorate


def case(theme, template, **marks):
    """Decorator: one program, ``template(function)``, called after the function below it."""

    def decorate(function):
        name = f"{theme}: {function.__name__.replace('_', ' ')}"
        register(name, template(function), source_of(template) + source_of(function), **marks)
        return function

    return decorate


def table(theme, template, entries, unfaithful=None, alone=()):
    """One program for each entry: ``template(entry)`` must be the function ``(cuda, device) -> outcome``."""
    for key, entry in entries.items():
        source = source_of(template) + (entry if isinstance(entry, str) else source_of(entry))
        marks = {"unfaithful": (unfaithful or {}).get(key), "alone": key in alone}
        register(f"{theme}: {key}", template(entry), source, **marks)
    for marked in [*(unfaithful or {}), *alone]:
        if marked not in entries:
            raise ValueError(f"{marked!r} is marked, but {theme!r} has no such program")


@functools.cache
def parsed(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.FunctionDef, ast.Lambda))]
    return text, nodes


def source_of(function):
    """The text of a function without its decorators, or of the lambdas that begin on its line."""
    code = function.__code__
    text, nodes = parsed(code.co_filename)

    def begins(node):
        return min(n.lineno for n in [node, *getattr(node, "decorator_list", [])])

    found = [n for n in nodes if begins(n) == code.co_firstlineno]
    return "\n".join(textwrap.dedent(ast.get_source_segment(text, n, padded=True)) for n in found)


def load():
    """Import every theme; name -> Program, in a fixed order."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    from .known_faults import FAULTS, IN_A_HEAP

    for field, faults in (("known_fault", FAULTS), ("fault_in_a_heap", IN_A_HEAP)):
        for why, names in faults.items():
            for name in names:
                setattr(REGISTRY[name], field, why)
    return dict(sorted(REGISTRY.items(), key=lambda item: item[1].alone))


def run(chosen, surface, clean_up):
    """The outcome of one program: its result or error, warnings about graphs, whether another stream was
    left current, and what is wrong with the next capture, if anything.  Leaves things as it found them."""
    import torch

    from .helpers import attempt, error_text, plain

    cuda, device, before = surface.cuda, surface.device, surface.cuda.current_stream()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = {"result": attempt(lambda: plain(chosen.function(cuda, device)))}
    said = sorted({error_text(w.message) for w in caught if "CUDA Graph" in str(w.message)})
    outcome |= {"warnings": said} if said else {}
    outcome |= {"stream": "another one is current"} if cuda.current_stream() != before else {}

    def next_capture():
        x, g = torch.ones(2, device=device), cuda.CUDAGraph()
        with cuda.graph(g):
            y = x + 1
        g.replay()
        return y.tolist()

    with warnings.catch_warnings(record=True):
        attempt(clean_up, surface, before)
        after = attempt(next_capture)
    return outcome if after == [2, 2] else outcome | {"next capture": after}
