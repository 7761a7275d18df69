"""Numbers as the course writes them."""

from __future__ import annotations


def short(number: float) -> str:
    """Three digits that matter, at most two of them behind the point: 0.03, 2.17, 14.5, 50, 5,591."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}" if abs(number) >= 1 else f"{number:.2f}".rstrip("0").rstrip(".") or "0"


def percent(fraction: float) -> str:
    """ "72 %" of 0.72; the blank does not break over a line's end."""
    return f"{100 * fraction:.0f}\N{NO-BREAK SPACE}%"
