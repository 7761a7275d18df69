"""Exercise 1.4: the truth, and what each mistake answers instead."""

from itertools import product
from statistics import mean, median, quantiles

LAUNCH, GPU, WAITS, NOISY = VERDICTS = ("launch-bound", "GPU-bound", "synchronising", "too noisy to say")


def spread(samples) -> float:
    """Interquartile range over median. Quartiles are defined in several ways; no case lies between them."""
    low, _, high = quantiles(samples, n=4)
    return (high - low) / median(samples)


def verdict(
    submit,
    busy,
    wall,
    middle=median,
    gpu_limit=0.9,
    launch_limit=0.9,
    noise_limit=0.2,
    order=(GPU, LAUNCH),
    otherwise=WAITS,
) -> str:
    """The truth; the keywords turn it into what a mistake gives."""
    if spread(wall) > noise_limit:
        return NOISY
    limits = {GPU: gpu_limit * middle(wall), LAUNCH: launch_limit * middle(wall)}
    explained = {GPU: middle(busy), LAUNCH: middle(submit)}
    return next((name for name in order if explained[name] >= limits[name]), otherwise)


def _changed(**change):
    return lambda *case: verdict(*case, **change)


def _noisy_by(is_noisy):
    """What is answered by somebody who has another idea of noise."""

    def formula(submit, busy, wall):
        calm = [median(wall)] * len(wall)
        return NOISY if is_noisy(submit, busy, wall) else verdict(submit, busy, calm)

    return formula


def _larger_wins(submit, busy, wall):
    larger = LAUNCH if median(submit) > median(busy) else GPU
    return verdict(submit, busy, wall, gpu_limit=0, launch_limit=0, order=(larger,))


# One of each between two parts of the wall time that the cases have, so that every other limit equals one.
LIMITS = (0.6, 0.71, 0.8, 0.9, 0.95, 0.965, 0.975, 0.99)
NOISE_LIMITS = (0.1, 0.4, 0.6)
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
    "noise-of-the-parts": [
        _noisy_by(lambda *case: max(map(spread, case)) > 0.2),
        _noisy_by(lambda submit, busy, wall: spread(busy) > 0.2),
        _noisy_by(lambda submit, busy, wall: spread(submit) > 0.2),
    ],
    "mean-for-median": [
        _changed(middle=mean),
        _changed(middle=mean, order=(LAUNCH, GPU)),
    ],
    "minimum-for-median": _changed(middle=min),
    "single-sample": _changed(middle=lambda samples: samples[0]),
    "swapped": [
        lambda submit, busy, wall: verdict(busy, submit, wall),
        lambda submit, busy, wall: SWAP[verdict(submit, busy, wall)],
    ],
    "larger-one-wins": _larger_wins,
    "half-is-enough": [
        _changed(gpu_limit=0.5, launch_limit=0.5),
        _changed(gpu_limit=0.5, launch_limit=0.5, order=(LAUNCH, GPU)),
    ],
    "launch-first": _changed(order=(LAUNCH, GPU)),
    "never-synchronising": [_changed(otherwise=LAUNCH), _changed(otherwise=GPU)],
    "other-noise-limit": [_changed(noise_limit=limit) for limit in NOISE_LIMITS],
    "other-limit": [_changed(gpu_limit=gpu, launch_limit=launch) for gpu, launch in product(LIMITS, LIMITS)],
}
