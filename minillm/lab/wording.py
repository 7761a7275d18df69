"""Numbers as the course writes them."""

from __future__ import annotations


def short(number: float) -> str:
    """Three digits that matter, thousands apart: 2.17, 14.5, 50, 5,591."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def percent(fraction: float) -> str:
    """ "72 %" of 0.72; the blank does not break over a line's end."""
    return f"{100 * fraction:.0f}\N{NO-BREAK SPACE}%"
