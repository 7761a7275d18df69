"""Exercise 1.4: from three times to the reason why a step takes as long as it does."""

from statistics import mean, median

from minillm.grading.checks.lesson01.diagnose_truth import FORMULAS, VERDICTS, spread, verdict
from minillm.grading.compare import compare
from minillm.grading.registry import Wrong, exercise

ARGUMENTS = ("submit_us", "gpu_busy_us", "wall_us")


def read(value, _right) -> str:
    """One of the four verdicts, in capitals or not."""
    if value is None:
        raise Wrong("returned-nothing")
    for known in VERDICTS:
        if isinstance(value, str) and value.strip().lower() == known.lower():
            return known
    raise Wrong("unknown-verdict", f"You return {value!r}; the four are: {', '.join(map(repr, VERDICTS))}.")


def describe(submit, busy, wall) -> str:
    return (
        f"medians of submit {median(submit):.0f}, GPU busy {median(busy):.0f} and wall {median(wall):.0f} µs "
        f"({median(submit) / median(wall):.0%} and {median(busy) / median(wall):.0%} of the wall time; means "
        f"{mean(submit):.0f}, {mean(busy):.0f}, {mean(wall):.0f} µs; interquartile range of the wall time "
        f"{spread(wall):.0%})"
    )


def samples(rng, middle: float, width=0.02, outlier=None, early=None, count=20) -> list[float]:
    """`count` times around `middle`, evenly spread over +-`width` of it, in random order.

    The one at place `outlier` is far too slow, the one at `early` far too fast (a clock that was read early).
    """
    times = [middle * (1 + width * (2 * place / (count - 1) - 1)) for place in range(count)]
    rng.shuffle(times)
    if outlier is not None:
        times[outlier] = middle * 12
    if early is not None:
        times[early] = middle / 20
    return times


@exercise(
    "1.4",
    answer="diagnose",
    arguments=ARGUMENTS,
    title="Why does the step take that long?",
    hints=(
        "Take the medians of the three lists first. And first of all ask whether the wall times agree at "
        "all.",
        "statistics.quantiles(wall_us, n=4) gives the three quartiles; the last minus the first is the "
        "interquartile range. Compare it with a fifth of the median.",
        "Then ask in this order: does the GPU's time explain the wall time (at least 90 % of it)? Does the "
        "submit time? If neither does, somebody waited.",
    ),
    mistakes={
        "unknown-verdict": "This is none of the four verdicts.",
        "never-too-noisy": "These wall times do not agree with each other, so no verdict can be trusted: the "
        "interquartile range is over a fifth of the median.",
        "outlier-is-noise": "One slow sample made you call the run noisy; a range or a standard deviation "
        "hangs on a single outlier, the interquartile range does not.",
        "absolute-spread": "The spread was compared with a fixed number of microseconds; compare it with the "
        "median, since a long step may vary by more microseconds than a short one.",
        "noise-of-the-parts": "The wall times agree, so there is something to explain; that the submit or "
        "GPU times vary does not matter for it. Only the spread of wall_us counts.",
        "mean-for-median": "The mean was used; one slow sample moves it far. Use the median.",
        "minimum-for-median": "The minimum was used, and one sample that is far too small decided. Use the "
        "median.",
        "single-sample": "One sample decided; take the median of all of them.",
        "swapped": "The names are swapped: a step is launch-bound when submitting explains the wall time, "
        "and GPU-bound when the GPU's work does.",
        "larger-one-wins": "The larger of the two times got the blame, without asking whether it explains "
        "the wall time. If neither does, the CPU and the GPU waited for each other.",
        "other-limit": "You have another limit: what explains a step fills at least 90 % of its wall time.",
        "other-noise-limit": "You have another limit for noise: the whole interquartile range (the third "
        "quartile less the first) is compared with a fifth of the median.",
        "half-is-enough": "Half of the wall time was enough for you; what explains a step must fill at least "
        "90 % of it.",
        "launch-first": "Both fill the wall time here, and you blame the launches. When the GPU's queue is "
        "full, the CPU waits inside the launch, so submitting looks long too: ask about the GPU first.",
        "never-synchronising": "Neither submitting nor the GPU's work fills the wall time here: mostly, the "
        "two waited for each other.",
    },
)
def check_diagnose(answer, rng):
    cases = []
    # Parts of the wall time: submit, busy. Then what is special about the samples.
    for submit, busy, special in (
        (0.97, 0.30, {}),
        (0.25, 0.97, {}),
        (0.98, 0.96, {}),
        (0.40, 0.45, {}),
        (0.70, 0.25, {}),
        (0.30, 0.72, {}),
        (0.20, 0.97, {"wall": {"width": 0.6}}),
        (0.96, 0.30, {"wall": {"width": 0.5}}),
        (0.15, 0.97, {"wall": {"outlier": 0}}),
        (0.97, 0.35, {"wall": {"outlier": 7}}),
        (0.20, 0.97, {"submit": {"width": 0.7}}),
        (0.98, 0.40, {"busy": {"width": 0.7}}),
        # On both sides of the limits: 90 % of the wall time, and a fifth of its median.
        (0.86, 0.30, {}),
        (0.30, 0.86, {}),
        (0.93, 0.30, {}),
        (0.30, 0.93, {}),
        (0.20, 0.97, {"wall": {"width": 0.16}}),
        (0.20, 0.97, {"wall": {"width": 0.24, "outlier": 3}}),
        (0.30, 0.96, {"busy": {"early": 5}}),
        (0.40, 0.45, {"wall": {"early": 11}}),
    ):
        wall = rng.uniform(300, 9000)
        parts = {"submit": submit * wall, "busy": busy * wall, "wall": wall}
        cases.append(tuple(samples(rng, middle, **special.get(name, {})) for name, middle in parts.items()))
    compare(answer, cases, verdict, FORMULAS, ARGUMENTS, read=read, describe=describe)
