"""Exercise 1.4: from three times to the reason why a step takes as long as it does."""

from statistics import mean, median, quantiles

from minillm.grading.compare import compare
from minillm.grading.registry import Wrong, exercise

ARGUMENTS = ("submit_us", "gpu_busy_us", "wall_us")
LAUNCH, GPU, WAITS, NOISY = VERDICTS = ("launch-bound", "GPU-bound", "synchronising", "too noisy to say")


def spread(samples) -> float:
    """Interquartile range over median. Quartiles are defined in several ways; no case lies between them."""
    low, _, high = quantiles(samples, n=4)
    return (high - low) / median(samples)


def verdict(submit, busy, wall, middle=median, limit=0.9, order=(GPU, LAUNCH), otherwise=WAITS) -> str:
    """The truth; the keywords turn it into what a mistake gives."""
    if spread(wall) > 0.2:
        return NOISY
    explained = {GPU: middle(busy), LAUNCH: middle(submit)}
    return next((name for name in order if explained[name] >= limit * middle(wall)), otherwise)


def _changed(**change):
    return lambda *case: verdict(*case, **change)


def _noisy_by(is_noisy):
    """What is answered by somebody who has another idea of noise."""

    def formula(submit, busy, wall):
        calm = [median(wall)] * len(wall)
        return NOISY if is_noisy(submit, busy, wall) else verdict(submit, busy, calm)

    return formula


def _larger_wins(submit, busy, wall):
    return verdict(submit, busy, wall, limit=0, order=(LAUNCH if median(submit) > median(busy) else GPU,))


SWAP = {LAUNCH: GPU, GPU: LAUNCH, WAITS: WAITS, NOISY: NOISY}
FORMULAS = {
    "never-too-noisy": _noisy_by(lambda *case: False),
    "outlier-is-noise": [
        _noisy_by(lambda submit, busy, wall: max(wall) - min(wall) > 0.2 * median(wall)),
        _noisy_by(
            lambda submit, busy, wall: mean((t - mean(wall)) ** 2 for t in wall) ** 0.5 > 0.2 * mean(wall)
        ),
    ],
    "absolute-spread": _noisy_by(lambda submit, busy, wall: spread(wall) * median(wall) > 0.2),
    "noise-of-the-parts": _noisy_by(lambda *case: max(map(spread, case)) > 0.2),
    "mean-for-median": _changed(middle=mean),
    "single-sample": _changed(middle=lambda samples: samples[0]),
    "swapped": [
        lambda submit, busy, wall: verdict(busy, submit, wall),
        lambda submit, busy, wall: SWAP[verdict(submit, busy, wall)],
    ],
    "larger-one-wins": _larger_wins,
    "half-is-enough": [_changed(limit=0.5), _changed(limit=0.5, order=(LAUNCH, GPU))],
    "launch-first": _changed(order=(LAUNCH, GPU)),
    "never-synchronising": [_changed(otherwise=LAUNCH), _changed(otherwise=GPU)],
}


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


def samples(
    rng, middle: float, width: float = 0.02, outlier: int | None = None, count: int = 20
) -> list[float]:
    """`count` times around `middle`, evenly spread over +-`width` of it, in random order; one may be slow."""
    times = [middle * (1 + width * (2 * place / (count - 1) - 1)) for place in range(count)]
    rng.shuffle(times)
    if outlier is not None:
        times[outlier] = middle * 12
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
        "single-sample": "One sample decided; take the median of all of them.",
        "swapped": "The names are swapped: a step is launch-bound when submitting explains the wall time, "
        "and GPU-bound when the GPU's work does.",
        "larger-one-wins": "The larger of the two times got the blame, without asking whether it explains "
        "the wall time. If neither does, the CPU and the GPU waited for each other.",
        "half-is-enough": "Half of the wall time was enough for you; what explains a step must fill at least "
        "90 % of it.",
        "launch-first": "Both fill the wall time here, and you blame the launches. When the GPU's queue is "
        "full, the CPU waits inside the launch, so submitting looks long too: ask about the GPU first.",
        "never-synchronising": "Neither submitting nor the GPU's work fills the wall time here, so the two "
        "waited for each other.",
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
    ):
        wall = rng.uniform(300, 9000)
        parts = {"submit": submit * wall, "busy": busy * wall, "wall": wall}
        cases.append(tuple(samples(rng, middle, **special.get(name, {})) for name, middle in parts.items()))
    compare(answer, cases, verdict, FORMULAS, ARGUMENTS, read=read, describe=describe)
