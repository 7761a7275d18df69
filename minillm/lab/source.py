"""Showing the course's own code in a lesson, so that what is longer than a cell is still read."""

from __future__ import annotations

import html
import inspect
from pathlib import Path


def source(obj) -> None:
    """Display the source of a function, method, class or module, with its file and line.

    Highlighted in a notebook, printed elsewhere. TypeError for what has no Python source.
    """
    obj = inspect.unwrap(obj) if callable(obj) else obj
    try:
        lines, first = inspect.getsourcelines(obj)
        file = inspect.getsourcefile(obj)
    except (TypeError, OSError) as error:
        raise TypeError(
            f"{obj!r} has no Python source to show; expected a function, method, class or module in Python"
        ) from error
    # Python counts a module from line 0.
    where, text = f"{_place(file)}, line {max(first, 1)}", "".join(lines).rstrip()
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        get_ipython = lambda: None  # noqa: E731
    if get_ipython() is None:
        print(f"# {where}\n{text}")
    else:
        display({"text/plain": f"# {where}\n{text}", "text/html": _html(where, text)}, raw=True)


def _place(file: str | None) -> str:
    """The file as a reader knows it: inside the package from "minillm/" on, else by its name."""
    package = Path(__file__).resolve().parents[1]
    path = Path(file or "?")
    if path.resolve().is_relative_to(package):
        return path.resolve().relative_to(package.parent).as_posix()
    return "this notebook" if "ipykernel" in path.as_posix() else path.name


def _html(where: str, text: str) -> str:
    return f"<p><code>{html.escape(where)}</code></p>{highlighted(text)}"


def highlighted(text: str) -> str:
    """Colours inside the tags, on white: the same in a light theme, a dark one and an HTML page."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    # On the <pre> itself: JupyterLab's own style for it follows the theme.
    style = "background:#ffffff;color:#1b1b1b;margin:0;padding:8px 12px;overflow-x:auto;"
    style += "white-space:pre;word-break:normal;overflow-wrap:normal;"
    style += "font-family:var(--jp-code-font-family,monospace)"
    formatter = HtmlFormatter(noclasses=True, nobackground=True, prestyles=style)
    return highlight(text, PythonLexer(), formatter)
