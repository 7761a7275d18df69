"""Which entries of the index a text matches, causes before consequences; and which come near it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from . import INDEX
from .entry import Entry, pattern

# where the emulator, in error 901, repeats what broke the capture
BROKEN_BY = re.compile(r"(?:what broke it was|after the first error): ([^\n]*)")
WORD = re.compile(r"[A-Za-z_]{4,}")
EVERYWHERE = {
    "error",
    "cuda",
    "torch",
    "runtimeerror",
    "must",
    "have",
    "been",
    "this",
    "that",
    "with",
    "from",
}
EVERYWHERE |= {"when", "called", "before", "after", "only", "cannot", "file", "line", "last", "call", "most"}
EVERYWHERE |= {"traceback", "recent", "there", "them", "which", "expected", "tensor", "captured", "capture"}


@dataclass
class Finding:
    """An entry that matched, the line that it was found in, and where in the text."""

    entry: Entry
    line: str
    start: int
    end: int


def find(text: str, index: tuple[Entry, ...] = INDEX) -> list[Finding]:
    """The entries that match, each once: causes in the order of the text, then consequences.

    Of matches within one another the longest counts: "watchdog … not permitted when stream is capturing" is
    the watchdog's, and no wait in general.
    """
    found = [
        Finding(entry, _line(text, match.start()), match.start(), match.end())
        for entry in index
        for words in entry.says
        for match in pattern(words).finditer(text)
    ]
    found += [
        Finding(entry, match[1].rstrip(")"), match.start(1), match.end(1))
        for match in BROKEN_BY.finditer(text)
        for entry in index
        if any(words in match[1] for words in entry.emulated)
    ]
    widest = [f for f in found if not any(_within(f, other) for other in found)]
    widest.sort(key=lambda f: (f.entry.consequence, f.start))
    first = {}
    for finding in widest:
        first.setdefault(finding.entry.name, finding)
    return list(first.values())


def nearest(text: str, count: int = 3, index: tuple[Entry, ...] = INDEX) -> list[Entry]:
    """The entries that share the most telling words with the text: two at least, rare ones weigh more."""
    every = {entry.name: _words(" ".join([entry.name, *entry.says])) for entry in index}
    spread = Counter(word for words in every.values() for word in words)
    here = _words(text)
    scores = {}
    for entry in index:
        common = here & every[entry.name]
        if len(common) > 1:
            scores[entry.name] = sum(1 / spread[word] for word in common)
    return sorted((e for e in index if e.name in scores), key=lambda e: -scores[e.name])[:count]


def _words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)} - EVERYWHERE


def _within(inner: Finding, outer: Finding) -> bool:
    """Whether a match of another entry covers this one and more."""
    covers = outer.start <= inner.start and inner.end <= outer.end
    return covers and outer.end - outer.start > inner.end - inner.start and outer.entry is not inner.entry


def _line(text: str, position: int) -> str:
    return text[text.rfind("\n", 0, position) + 1 :].partition("\n")[0].strip()
