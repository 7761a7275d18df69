"""What the reciter knows by heart: old verses in the public domain, and lists that are generated.

A text begins with its title, and titles differ early, so that a short beginning says which text it is.
"Numbers to ninety" takes 1024 characters, so that its last one fills the longest context of the preset.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

# Each verse stands behind a line with '#' that says where it comes from; characters outside of ASCII and
# accents were left out.
VERSES = Path(__file__).with_name("verses.txt")

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(number: int) -> str:
    """0 … 99 in English words, with a hyphen."""
    if number < 20:
        return SMALL[number]
    return TENS[number // 10] + (f"-{SMALL[number % 10]}" if number % 10 else "")


def generated() -> dict[str, str]:
    """The lists, title → text."""
    bodies = {
        "Count up": " ".join(map(str, range(1, 101))),
        "Count down": " ".join(map(str, range(100, 0, -1))),
        "Numbers to ninety": ", ".join(map(in_words, range(1, 91))) + ".",
        "Seven times table": "\n".join(f"{n} x 7 = {n * 7}" for n in range(1, 13)),
    }
    return {title: f"{title}\n{body}" for title, body in bodies.items()}


def verses() -> dict[str, str]:
    """The verses, title → text."""
    found = {}
    for part in VERSES.read_text(encoding="ascii").split("# ")[1:]:
        _, text = part.rstrip("\n").split("\n", 1)  # without the line that names the source
        found[text.split("\n")[0]] = text
    return found


@cache
def all_texts() -> dict[str, str]:
    """Title → the whole text, the title's line included; in alphabetical order. Not to be changed."""
    return dict(sorted((verses() | generated()).items()))


def unambiguous(text: str) -> int:
    """How many of its first characters it takes to tell a text from all others."""
    shared = [len(os.path.commonprefix([text, other])) for other in all_texts().values() if other != text]
    return 1 + max(shared)
