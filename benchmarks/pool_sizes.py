"""What the pools of twelve decode graphs take under four strategies: emulated, and on a GPU.

    python benchmarks/pool_sizes.py [PRESET]

With a GPU in use the experiments run there (set MINILLM_RECORD to a folder to keep what they measured);
without one the emulator's sizes stand beside those of the record.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from minillm import graphs, lab  # noqa: E402
from minillm.lab.experiments.pools import emulated_pool_sizes  # noqa: E402
from minillm.lab.pool_sizes import STRATEGIES  # noqa: E402

MiB = 1 << 20


def main(preset="llama-1b"):
    print(f"{preset}, 12 buckets of 1 to 128 sequences, MiB")
    print(f"{'strategy':18} {'emulated':>9} {'GPU':>7} {'its cuBLAS':>10} {'the rest':>8}")
    for strategy in STRATEGIES:
        result, start = lab.run(f"pools/{preset}/{strategy}"), time.perf_counter()
        emulated = None if graphs.backend == "cuda" else emulated_pool_sizes(preset, strategy).reserved / MiB
        row = f"{strategy:18} {'-' if emulated is None else format(emulated, '.0f'):>9}"
        if result.data:
            reserved, workspaces = (result.data[key] / MiB for key in ("reserved", "workspaces"))
            row += f" {reserved:7.0f} {workspaces:10.1f} {reserved - workspaces:8.1f}"
            if emulated is not None:
                difference = emulated - (reserved - workspaces)
                row += f"  emulated {difference:+.1f} ({difference / (reserved - workspaces):+.1%})"
        seconds = f"  emulated in {time.perf_counter() - start:.1f} s" if emulated is not None else ""
        print(row + seconds)
        for capture in (result.data or {}).get("captures", []):
            print(
                f"    batch {capture['batch']:3}: pool grew {capture['pool_growth'] / MiB:5.0f}, free memory "
                f"fell {capture['graph_bytes'] / MiB:5.0f}, {capture['ms']:4.0f} ms"
            )
    print(result.origin)


if __name__ == "__main__":
    main(*sys.argv[1:])
