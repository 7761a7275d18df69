"""``python -m minillm bench``: the course's larger measurements, by themselves."""

from __future__ import annotations

import argparse
import os


def main(arguments: list[str]) -> int:
    """Measure on this GPU what the lessons speak of; without one, show what was recorded."""
    from ..config import PRESETS
    from . import records
    from .bench_engine import bench_engine

    parser = argparse.ArgumentParser("python -m minillm bench", description=main.__doc__)
    parser.add_argument("what", choices=["engine"], help="engine: serving, eagerly and with graphs")
    parser.add_argument("--preset", default="llama-1b", help="the model that serves (default: llama-1b)")
    parser.add_argument("--record", action="store_true", help="keep the measurements in the course's records")
    options = parser.parse_args(arguments)
    if options.preset not in PRESETS:
        parser.error(f"no preset is called {options.preset!r}; choose one of {', '.join(PRESETS)}")
    if options.record:
        os.environ.setdefault("MINILLM_RECORD", str(records.FOLDER))
    print(bench_engine(options.preset))
    return 0
