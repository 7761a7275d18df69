"""The content of progress.json, and what in it can be relied on.

{"version": 1, "exercises": {"1.2": {"status": "FAIL", "attempts": 3, "first_pass": null, "hints": 1,
                                     "revealed": false, "misconceptions": {"ignored-queue": 2}}}}
"""

import json

from minillm.grading.outcome import NOT_ATTEMPTED

VERSION = 1
FRESH = {"status": NOT_ATTEMPTED, "attempts": 0, "first_pass": None, "hints": 0, "revealed": False}


def parse(text: str) -> tuple[dict[str, dict], str | None]:
    """Exercise id -> its entry, for all entries that are whole; and what is damaged, or None."""
    try:
        content = json.loads(text)
        if content["version"] != VERSION:
            raise ValueError(f"its version is {content['version']!r}, this minillm writes {VERSION}")
        entries = content["exercises"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return {}, f"{type(error).__name__}: {error}"
    good, damage = {}, None
    for id, entry in entries:
        try:
            good[id] = _checked({**FRESH, **entry})
        except TypeError as error:
            damage = f"{id}: {error}"
    return good, damage


def _checked(entry: dict) -> dict:
    """The entry; TypeError if a later count or the board would fail on it."""
    kinds = {"attempts": int, "hints": int, "revealed": bool, "status": str, "first_pass": (str, type(None))}
    for name, kind in {**kinds, "misconceptions": dict}.items():
        if not isinstance(entry.get(name, {}), kind):
            raise TypeError(f"{name} is {entry[name]!r}")
    if not all(isinstance(count, int) for count in entry.get("misconceptions", {}).values()):
        raise TypeError(f"misconceptions is {entry['misconceptions']!r}")
    return entry
