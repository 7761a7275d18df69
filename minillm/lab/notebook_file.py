"""Notebook files: reading one that may be damaged, writing the copies of one that ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .html_copy import html_page


class Failed(Exception):
    """Why a notebook has failed, in one line."""


def read_notebook(path: Path):
    """The notebook at ``path`` in format 4, or Failed with what is wrong with the file."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        return notebook
    except OSError as problem:
        raise Failed(f"cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, KeyError, AttributeError, TypeError, nbformat.ValidationError) as problem:
        # nbformat's own message may quote the whole file; its first line says what is wrong.
        reason = (str(problem).splitlines() or [""])[0][:120]
        raise Failed(
            f"is not a notebook that Jupyter can read: {reason or type(problem).__name__}"
        ) from problem


def write_copies(notebook, path: Path, out: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Writes the executed notebook to ``path`` and, where nbconvert is installed, as .html beside it.

    Returns {"copy": …, "page": …}, each relative to ``out``; raises Failed where they cannot be written. An
    nbconvert that does not work is said, and no failure: the .ipynb holds everything.
    """
    import nbformat

    written = {}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        written["copy"] = path.relative_to(out).as_posix()
        try:
            page = html_page(notebook)
        except Exception as problem:
            say(f"{path.name}  no HTML page: {type(problem).__name__}: {problem}")
            page = None
        if page is not None:
            path.with_suffix(".html").write_text(page, encoding="utf-8")
            written["page"] = path.with_suffix(".html").relative_to(out).as_posix()
    except OSError as problem:
        raise Failed(f"its executed copy cannot be written: {problem.strerror or problem}") from problem
    return written
