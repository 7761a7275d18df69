"""How the index writes: code marked in Markdown, lines wrapped in a terminal."""

from __future__ import annotations

import re
import textwrap

from .entry import Entry

CODE = re.compile(
    r"`[^`]+`"
    r"|\w+\[(?:[^][]|\[[^][]*\])+\](?:\.\w+\([^()]*\)| = [\d.]+)?"  # x[mask], y[0] = 7.0, s[:n].copy_(b)
    r"|(?:\w+ = )?\.?[A-Za-z_][\w.]*\((?:[^()]|\([^()]*\))*\)(?:\.\w+\([^()]*\))*"  # .item(), g = f(g())
    r"|\b[A-Za-z_]\w*=(?:'[^']*'|[\w.]*\w)?"  # keep_graph=True, device=
    r"|\b[A-Za-z_]\w*(?:\.[A-Za-z]\w*)+|(?<!')\b\w+_\w*"  # torch.where, keep_graph
)


def title_of(entry: Entry) -> str:
    """The name as a heading: a capital, unless it begins with a function's name."""
    code = CODE.match(entry.name) or entry.name.startswith("torch")
    return entry.name if code else entry.name[0].upper() + entry.name[1:]


def wrapped(head: str, text: str) -> str:
    """``text`` after ``head``, in lines of at most 100 characters."""
    return textwrap.fill(
        text,
        100,
        initial_indent=head,
        subsequent_indent=" " * min(len(head), 11),
        break_long_words=False,
        break_on_hyphens=False,
    )


def short(line: str, limit: int = 200) -> str:
    """The line, cut where it is too long to be read."""
    return line if len(line) <= limit else line[: limit - 1] + "…"


def as_code(text: str) -> str:
    """Text between code marks: Markdown has no way to escape them there."""
    return text.replace("`", "'")


def prose(text: str) -> str:
    """Text for Markdown: what looks like Python is marked as code."""
    return CODE.sub(lambda match: match[0] if match[0][0] == "`" else f"`{match[0]}`", text)
