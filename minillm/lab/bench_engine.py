"""``python -m minillm bench engine``: the engine with graphs against the same engine without, as tables."""

from __future__ import annotations

from .live_or_recorded import run
from .results import Result

COST_PRESETS = ("llama-1b", "llama3-8b")
BATCH = 32
ROWS = (64, 32)  # requests at a time
MiB = 2**20


def bench_engine(preset: str = "llama-1b", cost_presets: tuple[str, ...] = COST_PRESETS) -> str:
    """Runs the experiments where there is a GPU, else reads their records. The tables, with their origin."""
    served = [run(f"engine/throughput/{preset}/rows={rows}") for rows in ROWS]
    costs = [run(f"engine/step-cost/{name}/B={BATCH}") for name in cost_presets]
    return "\n\n".join([*(throughput_table(result) for result in served), cost_table(costs)])


def throughput_table(result: Result) -> str:
    """One row a measure: eager, with graphs, and their ratio within this run."""
    if result.missing:
        return f"{result.name}: {result.origin.label}"
    eager, graph = result.data["eager"], result.data["graph"]
    lines = [
        f"{result.name.split('/')[2]}: {result.data['requests']} requests that arrive together, "
        f"{result.data['rows']} at a time · {result.origin.label}",
        f"{'':34}{'eager':>12}{'graphs':>12}{'ratio':>8}",
    ]
    for name, value, better in (
        ("decode, tokens/s", lambda it: it["decode_tokens_per_second"], "more"),
        ("end to end, tokens/s", lambda it: it["tokens_per_second"], "more"),
        ("time to first token, median, ms", lambda it: it["first_token_ms"]["p50"], "less"),
        ("time to first token, 99th %, ms", lambda it: it["first_token_ms"]["p99"], "less"),
        ("time per output token, median, ms", lambda it: it["per_token_ms"]["p50"], "less"),
        ("time per output token, 99th %, ms", lambda it: it["per_token_ms"]["p99"], "less"),
        ("prefill, ms", lambda it: it["prefill_seconds"] * 1e3, "less"),
        ("all, s", lambda it: it["seconds"], "less"),
    ):
        before, after = value(eager), value(graph)
        ratio = after / before if better == "more" else before / after
        lines.append(f"{name:34}{before:>12,.2f}{after:>12,.2f}{ratio:>8.2f}")
    lines.append(
        f"{graph['captured']} graphs captured in {graph['capture_seconds']:.1f} s, pool of "
        f"{graph['pool_bytes'] / MiB:,.0f} MiB, {graph['device_bytes'] / MiB:,.0f} MiB of the device in all"
    )
    lines.append("graph (rows × blocks)        steps  padded rows")
    for row in graph["buckets"]:
        size = f"{row['rows']} × {row['blocks']}"
        lines.append(f"{size:>21} {row['hits']:>12,} {row['padded_rows']:>12,}")
    lines += [f"eager, {reason}: {steps} steps" for reason, steps in graph["fallbacks"].items()]
    return "\n".join(lines)


def cost_table(results: list[Result]) -> str:
    """One row a preset: the step, what of it is outside the graph, what the host does beside it."""
    lines = [
        f"a steady decode step of {BATCH} sequences, µs",
        f"{'':12}{'step':>8}{'in graph':>10}{'outside':>9}{'host':>8}{'12 add_':>9}{'host in add_':>14}"
        f"{'replay call':>13}",
    ]
    for result in results:
        preset = result.name.split("/")[2]
        if result.missing:
            lines.append(f"{preset:12}{result.origin.label}")
            continue
        it = result.data
        outside = 1 - it["replay_us"] / it["step_us"]
        lines.append(
            f"{preset:12}{it['step_us']:>8,.0f}{it['replay_us']:>10,.0f}{outside:>9.1%}{it['host_us']:>8.1f}"
            f"{it['adds_us']:>9.1f}{it['host_adds']:>14.1f}{it['replay_call_us']:>13.1f}"
        )
    return "\n".join([*lines, *dict.fromkeys(result.origin.label for result in results)])
