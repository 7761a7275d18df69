"""What a replay of the emulator costs on this CPU, against the same step run eagerly.

    python benchmarks/replay_cost.py

The emulator is for seeing, not for speed: the ratio only shows that replaying is no burden.  Nothing
here says anything about a GPU.
"""

import os
import pathlib
import statistics
import sys
import time

os.environ["MINILLM_BACKEND"] = "emulated"
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "graphs")]

import torch  # noqa: E402
from toy import Toy, inputs  # noqa: E402

from minillm.graphs import cuda, device, warm_up  # noqa: E402


def median_us(fns, repeats):
    """Median microseconds of each, taken in turn so that a busy machine slows all of them."""
    times = [[] for _ in fns]
    for _ in range(repeats):
        for fn, mine in zip(fns, times, strict=True):
            start = time.perf_counter()
            fn()
            mine.append((time.perf_counter() - start) * 1e6)
    return [statistics.median(mine) for mine in times]


def main():
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, the toy decode step of tests/graphs/toy.py")
    x, start = torch.ones(4, device=device), time.perf_counter()
    with cuda.graph(cuda.CUDAGraph()):
        x.add_(1)
    print(f"first capture of the process, for which torch loads modules: {time.perf_counter() - start:.2f} s")
    print(f"{'hidden':>6} {'batch':>5} {'nodes':>5} {'out=':>5} {'capture ms':>10}", end=" ")
    print(f"{'eager us':>9} {'replay us':>9} {'ratio':>6}")
    for hidden, batch, repeats in [(64, 1, 200), (64, 8, 200), (512, 1, 60), (512, 32, 20)]:
        with torch.inference_mode():
            model = Toy(dim=hidden)
            static = inputs(batch, model, device)

            def step(model=model, static=static):
                return model(*static)

            warm_up(step)
            g, start = cuda.CUDAGraph(), time.perf_counter()
            with cuda.graph(g):
                kept = step()
            capture_ms = (time.perf_counter() - start) * 1e3
            eager, replay = median_us([step, g.replay], repeats)
            direct = sum(not node.outs for node in g.nodes)
        print(f"{hidden:6} {batch:5} {len(g.nodes):5} {direct:5} {capture_ms:10.0f}", end=" ")
        print(f"{eager:9.0f} {replay:9.0f} {replay / eager:6.2f}")
        del kept


if __name__ == "__main__":
    main()
