"""Spans of CPU and GPU time on one clock, and what can be read off them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

LANES = ("launches", "kernels", "waits", "ops")


class Span(NamedTuple):
    """Something that ran from ``start_us`` to ``end_us``, in microseconds from the timeline's start."""

    name: str
    start_us: float
    end_us: float

    @property
    def duration_us(self) -> float:
        return self.end_us - self.start_us

    @property
    def kind(self) -> str:
        """ "memcpy", "memset", or "kernel"; for GPU work."""
        return {"Memcpy": "memcpy", "Memset": "memset"}.get(self.name[:6], "kernel")


@dataclass(frozen=True)
class Timeline:
    """One call: the CPU's launches and the GPU's kernels, each a list of `Span` in order of their start.

    ``kernels`` holds all of the GPU's work; copies and fills have ``span.kind`` "memcpy" and "memset".
    ``waits`` are calls in which the CPU waited for the GPU, ``ops`` PyTorch's operators (they nest).
    ``wall_us`` runs from the first span's start to the last one's end.
    """

    launches: list[Span]
    kernels: list[Span]
    wall_us: float
    waits: list[Span] = field(default_factory=list)
    ops: list[Span] = field(default_factory=list)

    @classmethod
    def starting_at_zero(cls, **lanes: list[Span]) -> Timeline:
        """A timeline of ``lanes`` (launches, kernels, waits, ops), sorted, its first span moved to 0 µs."""
        spans = [span for lane in lanes.values() for span in lane]
        zero = min((span.start_us for span in spans), default=0.0)
        moved = {
            name: sorted(
                (Span(s.name, s.start_us - zero, s.end_us - zero) for s in lane), key=lambda s: s[1:]
            )
            for name, lane in lanes.items()
        }
        wall = max((span.end_us for span in spans), default=zero) - zero
        return cls(**{"launches": [], "kernels": [], **moved}, wall_us=wall)

    @property
    def busy_us(self) -> float:
        """Microseconds in which at least one kernel or copy ran; overlaps on two streams count once."""
        busy, reached = 0.0, float("-inf")
        for _, start, end in self.kernels:
            busy += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        return busy

    @property
    def busy_fraction(self) -> float:
        """``busy_us`` as a share of ``wall_us``; 0 for an empty timeline."""
        return self.busy_us / self.wall_us if self.wall_us else 0.0

    @property
    def durations_us(self) -> list[float]:
        """Each kernel's microseconds, in order, copies and fills left out."""
        return [span.duration_us for span in self.kernels if span.kind == "kernel"]

    def census(self) -> list[tuple[str, int, float]]:
        """(name, how many, µs together) for each kind of GPU work, the costliest first."""
        count, total = Counter(), Counter()
        for span in self.kernels:
            count[span.name] += 1
            total[span.name] += span.duration_us
        return [(name, count[name], us) for name, us in total.most_common()]

    def between(self, start_us: float, end_us: float) -> Timeline:
        """The spans that begin in [start_us, end_us), on a clock that starts with the first of them."""
        return Timeline.starting_at_zero(
            **{lane: [s for s in getattr(self, lane) if start_us <= s.start_us < end_us] for lane in LANES}
        )

    def to_json(self, ops: bool = False) -> dict:
        """A compact JSON-able dict: each name once, numbers to 0.01 µs, columns start and duration.

        The operators are left out unless ``ops`` is true: there are several to a kernel.
        """
        names: dict[str, int] = {}
        lanes = {
            lane: {
                "name": [names.setdefault(span.name, len(names)) for span in getattr(self, lane)],
                "start_us": [round(span.start_us, 2) for span in getattr(self, lane)],
                "duration_us": [round(span.duration_us, 2) for span in getattr(self, lane)],
            }
            for lane in LANES
            if lane != "ops" or ops
        }
        return {"wall_us": round(self.wall_us, 2), "names": list(names), **lanes}

    @classmethod
    def from_json(cls, data: dict) -> Timeline:
        """The timeline that ``to_json`` wrote."""
        lanes = {}
        for lane in LANES:
            if lane in data:
                columns = (data[lane][column] for column in ("name", "start_us", "duration_us"))
                rows = zip(*columns, strict=True)
                lanes[lane] = [
                    Span(data["names"][name], start, start + lasting) for name, start, lasting in rows
                ]
        return cls(**lanes, wall_us=data["wall_us"])
