"""Exercises 2.1 to 2.6: what a capture records and refuses, and what its replays do."""

from . import capturable, capture_and_replay, critical_path, fork_join, graph_runner, seeded_dropout

__all__ = [
    "capturable",
    "capture_and_replay",
    "critical_path",
    "fork_join",
    "graph_runner",
    "seeded_dropout",
]
