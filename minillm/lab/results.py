"""What an experiment gave, and where that comes from: timed here, recorded on a named GPU, or missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

MISSING = "to be recorded on a GPU"
STALE = "record is stale: to be recorded again on a GPU"


@dataclass(frozen=True)
class Origin:
    """Where numbers come from. ``kind`` is "live", "recorded" or "missing"; ``label`` is what a figure says.

    ``run`` is the provenance (see `provenance.provenance`) as far as it is known: gpu, torch, date, …
    """

    kind: str
    label: str
    run: dict = field(default_factory=dict)

    @classmethod
    def live(cls, run: dict) -> Origin:
        return cls("live", f"live · {run['gpu']} · {run['date']} · torch {plain_version(run['torch'])}", run)

    @classmethod
    def recorded(cls, run: dict) -> Origin:
        return cls(
            "recorded", f"recorded on {run['gpu']} · {run['date']} · torch {plain_version(run['torch'])}", run
        )

    @classmethod
    def missing(cls, stale: bool = False) -> Origin:
        return cls("missing", STALE if stale else MISSING)

    @property
    def gpu(self) -> str:
        """The GPU's name; empty when the result is missing."""
        return self.run.get("gpu", "")


@dataclass(frozen=True)
class Result:
    """The data of one experiment and its origin. ``data`` is None when it is missing.

    ``recorded`` are the records to draw beside it, one a GPU. ``note`` says why a live run was not made
    where a GPU is present (the preset does not fit its memory).
    """

    name: str
    data: dict | None
    origin: Origin
    recorded: list[Result] = field(default_factory=list)
    note: str = ""

    @property
    def missing(self) -> bool:
        return self.data is None

    @property
    def sources(self) -> list[Result]:
        """This result and its ``recorded``, without missing ones: what a figure draws, in this order."""
        return [result for result in (self, *self.recorded) if not result.missing]

    def value(self, path: str | Callable):
        """The value at ``path``: keys joined by dots, applied to each element of a list on the way.

        ``result.value("rows.batch")`` is every row's batch. A function is called with ``data`` instead.
        LookupError when the result is missing or has no such key.
        """
        if self.data is None:
            raise LookupError(f"{self.name}: {self.origin.label}; look at result.missing before its values")
        return path(self.data) if callable(path) else _follow(self.data, path.split("."), self.name)

    def say(self, sentence: str, **computed: Callable) -> str:
        """``sentence`` with its {fields} filled in from ``data``, or what is missing.

        A field is a key of the data (``{wall_us:,.0f}``) or a name in ``computed``, a function of the data:
        ``result.say("{gain:.1f} times shorter", gain=lambda data: data["eager_us"] / data["graph_us"])``.
        """
        if self.data is None:
            return f"{self.name}: {self.origin.label}"
        return sentence.format_map({**self.data, **{name: fn(self.data) for name, fn in computed.items()}})

    def __str__(self) -> str:
        return f"{self.name} · {self.origin.label}" + (f" · {self.note}" if self.note else "")


def plain_version(version: str) -> str:
    """ "2.11.0" of "2.11.0+cu130"."""
    return version.split("+")[0]


def _follow(value, keys: list[str], name: str):
    for at, key in enumerate(keys):
        if isinstance(value, list):
            return [_follow(element, keys[at:], name) for element in value]
        if not isinstance(value, dict) or key not in value:
            there = ", ".join(value) if isinstance(value, dict) else f"a {type(value).__name__}"
            raise LookupError(f"{name} has no {'.'.join(keys)!r}: at {key!r} there is: {there}")
        value = value[key]
    return value
