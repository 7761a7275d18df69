"""Random and explicit traces on whatever backend is active, without pytest.

    python tests/engine/run_traces.py --traces 200 --seed 0

Prints what was done, and exits with 1 at the first failure, saying how to repeat it.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import torch  # noqa: E402
from checked_engine import Engines  # noqa: E402
from traces import RandomDraw, draw_trace, explicit_traces, long_traces  # noqa: E402

from minillm import graphs  # noqa: E402


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--traces", type=int, default=200, help="how many random ones (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the random ones (0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first random one (0)")
    parser.add_argument("--random-only", action="store_true", help="leave out the explicit ones")
    choices = parser.parse_args()
    torch.set_num_threads(1)  # more would only wait for each other at this size
    traces = {} if choices.random_only else {**explicit_traces(), **long_traces()}
    for number in range(choices.first, choices.first + choices.traces):
        traces[f"number {number}"] = draw_trace(RandomDraw(f"{choices.seed} {number}"))
    seen, start = Counter(), time.perf_counter()
    engines = Engines()
    for name, trace in traces.items():
        try:
            engines.run(trace, seen)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            print(f"\nFAILED, {name}, on the backend {graphs.backend}:\n{trace}")
            if name.startswith("number"):
                print(f"again: --random-only --traces 1 --seed {choices.seed} --first {name.split()[1]}")
            return 1
    where = torch.cuda.get_device_name() if graphs.backend == "cuda" else "a CPU"
    print(f"{graphs.backend} on {where}, torch {torch.__version__}, {engines.model.head.weight.dtype}")
    for what, count in sorted(seen.items()):
        print(f"{count:>8,}  {what}")
    print(f"{seen['traces']:,} traces passed in {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
