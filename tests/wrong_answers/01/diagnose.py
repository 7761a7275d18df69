"""Answers to 1.4."""

from statistics import fmean, median, quantiles, stdev

import numpy

from minillm.grading.corpus import right, wrong

NOISY, GPU, LAUNCH, WAITS = "too noisy to say", "GPU-bound", "launch-bound", "synchronising"


def noisy(samples):
    low, _, high = quantiles(samples, n=4)
    return high - low > median(samples) / 5


def decide(submit, busy, wall):
    if busy >= 0.9 * wall:
        return GPU
    return LAUNCH if submit >= 0.9 * wall else WAITS


def decide_from_medians(submit_us, gpu_busy_us, wall_us):
    return decide(median(submit_us), median(gpu_busy_us), median(wall_us))


@right("1.4")
def with_numpy(submit_us, gpu_busy_us, wall_us):
    low, wall, high = numpy.percentile(wall_us, [25, 50, 75])
    verdicts = {
        NOISY: (high - low) / wall > 0.2,
        GPU: numpy.median(gpu_busy_us) / wall >= 0.9,
        LAUNCH: numpy.median(submit_us) / wall >= 0.9,
        WAITS: True,
    }
    return next(name for name, holds in verdicts.items() if holds)


@right("1.4")
def lower_case_and_sorted_halves(submit_us, gpu_busy_us, wall_us):
    ordered = sorted(wall_us)
    quarter = len(ordered) // 4
    if ordered[-quarter - 1] - ordered[quarter] > 0.2 * ordered[len(ordered) // 2]:
        return NOISY
    return decide_from_medians(submit_us, gpu_busy_us, wall_us).lower()


@wrong("1.4", "never-too-noisy")
def trusts_everything(submit_us, gpu_busy_us, wall_us):
    return decide_from_medians(submit_us, gpu_busy_us, wall_us)


@wrong("1.4", "outlier-is-noise")
def range_for_spread(submit_us, gpu_busy_us, wall_us):
    if max(wall_us) - min(wall_us) > 0.2 * median(wall_us):
        return NOISY
    return decide_from_medians(submit_us, gpu_busy_us, wall_us)


@wrong("1.4", "outlier-is-noise")
def standard_deviation(submit_us, gpu_busy_us, wall_us):
    if stdev(wall_us) > 0.2 * median(wall_us):
        return NOISY
    return decide_from_medians(submit_us, gpu_busy_us, wall_us)


@wrong("1.4", "absolute-spread")
def spread_in_microseconds(submit_us, gpu_busy_us, wall_us):
    low, _, high = quantiles(wall_us, n=4)
    if high - low > 0.2:
        return NOISY
    return decide_from_medians(submit_us, gpu_busy_us, wall_us)


@wrong("1.4", "noise-of-the-parts")
def any_list_may_be_noisy(submit_us, gpu_busy_us, wall_us):
    if any(map(noisy, (submit_us, gpu_busy_us, wall_us))):
        return NOISY
    return decide_from_medians(submit_us, gpu_busy_us, wall_us)


@wrong("1.4", "mean-for-median")
def means(submit_us, gpu_busy_us, wall_us):
    if noisy(wall_us):
        return NOISY
    return decide(fmean(submit_us), fmean(gpu_busy_us), fmean(wall_us))


@wrong("1.4", "single-sample")
def first_samples(submit_us, gpu_busy_us, wall_us):
    return NOISY if noisy(wall_us) else decide(submit_us[0], gpu_busy_us[0], wall_us[0])


@wrong("1.4", "swapped")
def names_swapped(submit_us, gpu_busy_us, wall_us):
    if noisy(wall_us):
        return NOISY
    if median(gpu_busy_us) >= 0.9 * median(wall_us):
        return LAUNCH
    return GPU if median(submit_us) >= 0.9 * median(wall_us) else WAITS


@wrong("1.4", "swapped")
def times_swapped(submit_us, gpu_busy_us, wall_us):
    return NOISY if noisy(wall_us) else decide_from_medians(gpu_busy_us, submit_us, wall_us)


@wrong("1.4", "larger-one-wins")
def larger_one(submit_us, gpu_busy_us, wall_us):
    if noisy(wall_us):
        return NOISY
    return GPU if median(gpu_busy_us) > median(submit_us) else LAUNCH


@wrong("1.4", "half-is-enough")
def more_than_half(submit_us, gpu_busy_us, wall_us):
    if noisy(wall_us):
        return NOISY
    half = median(wall_us) / 2
    if median(gpu_busy_us) > half:
        return GPU
    return LAUNCH if median(submit_us) > half else WAITS


@wrong("1.4", "launch-first")
def asks_about_launches_first(submit_us, gpu_busy_us, wall_us):
    if noisy(wall_us):
        return NOISY
    if median(submit_us) >= 0.9 * median(wall_us):
        return LAUNCH
    return GPU if median(gpu_busy_us) >= 0.9 * median(wall_us) else WAITS


@wrong("1.4", "never-synchronising")
def either_gpu_or_launches(submit_us, gpu_busy_us, wall_us):
    if noisy(wall_us):
        return NOISY
    return GPU if median(gpu_busy_us) >= 0.9 * median(wall_us) else LAUNCH


@wrong("1.4", "unknown-verdict")
def other_words(submit_us, gpu_busy_us, wall_us):
    if noisy(wall_us):
        return "noisy"
    return {GPU: "gpu", LAUNCH: "cpu"}.get(decide_from_medians(submit_us, gpu_busy_us, wall_us), "sync")


@wrong("1.4", "changed-input")
def sorts_in_place(submit_us, gpu_busy_us, wall_us):
    wall_us.sort()
    quarter = len(wall_us) // 4
    if wall_us[-quarter - 1] - wall_us[quarter] > 0.2 * wall_us[len(wall_us) // 2]:
        return NOISY
    return decide_from_medians(submit_us, gpu_busy_us, wall_us)


def decided_by(middle=median, gpu=0.9, launch=0.9, noisy=noisy, launch_first=False):
    def diagnose(submit_us, gpu_busy_us, wall_us):
        submit, busy, wall = map(middle, (submit_us, gpu_busy_us, wall_us))
        if noisy(wall_us):
            return NOISY
        verdicts = [(LAUNCH, submit >= launch * wall), (GPU, busy >= gpu * wall)]
        return next((name for name, holds in sorted(verdicts, reverse=launch_first) if holds), WAITS)

    return diagnose


def at_noise_limit(limit):
    def noisy(samples):
        low, _, high = quantiles(samples, n=4)
        return high - low > limit * median(samples)

    return noisy


for limits in ((0.75, 0.75), (0.8, 0.8), (0.95, 0.95), (0.9, 0.75), (0.73, 0.9), (0.87, 0.95), (1, 1)):
    wrong("1.4", "other-limit")(decided_by(gpu=limits[0], launch=limits[1]))
for limit in (0.05, 0.1, 0.15, 0.3, 0.5, 0.6):
    wrong("1.4", "other-noise-limit")(decided_by(noisy=at_noise_limit(limit)))
wrong("1.4", "minimum-for-median")(decided_by(min))
wrong("1.4", "mean-for-median")(decided_by(fmean, launch_first=True))


@wrong("1.4", "other-noise-limit")
def half_of_the_range(submit_us, gpu_busy_us, wall_us):
    _, middle, high = quantiles(wall_us, n=4)
    return decided_by(noisy=lambda _: high - middle > 0.2 * middle)(submit_us, gpu_busy_us, wall_us)


@wrong("1.4", "other-noise-limit")
def tenths_for_quartiles(submit_us, gpu_busy_us, wall_us):
    low, *_, high = quantiles(wall_us, n=10)
    return decided_by(noisy=lambda wall: high - low > 0.2 * median(wall))(submit_us, gpu_busy_us, wall_us)


@wrong("1.4", "other-noise-limit")
def range_over_mean(submit_us, gpu_busy_us, wall_us):
    low, _, high = quantiles(wall_us, n=4)
    return decided_by(noisy=lambda wall: high - low > 0.2 * fmean(wall))(submit_us, gpu_busy_us, wall_us)


@wrong("1.4", "noise-of-the-parts")
def noise_of_the_gpu_times(submit_us, gpu_busy_us, wall_us):
    return decided_by(noisy=lambda _: noisy(gpu_busy_us))(submit_us, gpu_busy_us, wall_us)


right("1.4")(decided_by(lambda samples: sorted(samples)[len(samples) // 2]))
