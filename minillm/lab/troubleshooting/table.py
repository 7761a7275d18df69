"""The whole index at a glance."""

from __future__ import annotations

from . import THEMES
from .places import place
from .wording import as_code, prose, title_of, wrapped


class Table:
    """Every entry, by theme: what an error says, what it is, what to do, the cell that shows it."""

    def _repr_markdown_(self) -> str:
        rows = ["| it says | what it is | what to do | see |", "|---|---|---|---|"]
        for theme, entries in THEMES.items():
            rows.append(f"| **{theme}** | | | |")
            for entry in entries:
                cells = [f"`{as_code(entry.says[0])}`", title_of(entry), prose(entry.cure)]
                cells = [cell.replace("|", "\\|") for cell in cells]
                rows.append(f"| {' | '.join(cells)} | {place(entry.cell).markdown()} |")
        return "\n".join(rows)

    def __repr__(self) -> str:
        parts = []
        for theme, entries in THEMES.items():
            parts.append(theme.upper())
            for entry in entries:
                lines = [
                    title_of(entry),
                    wrapped("  it says: ", entry.says[0]),
                    wrapped("  to do:   ", entry.cure),
                ]
                parts.append("\n".join([*lines, wrapped("  see:     ", place(entry.cell).words())]))
        return "\n\n".join(parts)
