"""Counters that an operator can read: which captured sizes were used, what padding cost, what ran eagerly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

OVER_THE_TOP = "over the largest bucket"
NOT_CAPTURED = "graphs are off"


@dataclass
class Tally:
    """Decode steps so far. ``hits`` counts replays by (rows, blocks) of the graph, ``wanted`` the real rows
    in them by the same key, ``fallbacks`` the eager steps by their reason."""

    hits: Counter = field(default_factory=Counter)
    wanted: Counter = field(default_factory=Counter)
    fallbacks: Counter = field(default_factory=Counter)

    def replayed(self, size: tuple[int, int], rows: int) -> None:
        """A graph of ``size`` ran for ``rows`` real rows."""
        self.hits[size] += 1
        self.wanted[size] += rows

    @property
    def padded_rows(self) -> int:
        """Rows that were computed for nobody."""
        return sum(size[0] * hits - self.wanted[size] for size, hits in self.hits.items())

    def table(self) -> list[dict]:
        """One row a captured size that was used: rows, blocks, hits, padded rows and their share of 1."""
        return [
            {
                "rows": size[0],
                "blocks": size[1],
                "hits": hits,
                "padded_rows": size[0] * hits - self.wanted[size],
                "padded_share": 1 - self.wanted[size] / (size[0] * hits),
            }
            for size, hits in sorted(self.hits.items())
        ]
