"""What the emulator does not imitate, for a reader: the one list stands in the emulator's docstring."""

from __future__ import annotations

import inspect

from . import emulator


class Limits(str):
    """A list that a terminal prints and a notebook shows folded."""

    def _repr_markdown_(self) -> str:
        return f"<details><summary>What the emulator does not imitate</summary>\n\n{self}\n\n</details>"

    __repr__ = str.__str__


def limits() -> Limits:
    """The numbered list of what the emulator does not imitate, as Markdown."""
    _, heading, listed = inspect.cleandoc(emulator.__doc__).partition("Not imitated\n------------\n")
    if not heading:
        raise RuntimeError("the emulator's docstring has no section 'Not imitated'; expected the list there")
    return Limits(listed.replace("``", "`"))
