"""Exercise 1.2: when does each kernel end, if the CPU runs ahead of the GPU?"""

from itertools import accumulate

from minillm.grading.compare import compare, numbers
from minillm.grading.registry import exercise

ARGUMENTS = ("launch_us", "kernel_us")


def ends(launch_us, kernel_us):
    """The truth: a kernel starts when its launch has ended and the kernel before it has."""
    return _run(accumulate(launch_us), kernel_us)


def _run(ready_us, kernel_us):
    """Ends of kernels on one queue, each of which may start from its `ready_us` on."""
    free, found = 0.0, []
    for ready, kernel in zip(ready_us, kernel_us, strict=False):
        free = max(ready, free) + kernel
        found.append(float(free))
    return found


def _ignored_queue(launch_us, kernel_us):
    return [launched + kernel for launched, kernel in zip(accumulate(launch_us), kernel_us, strict=True)]


def _starts(launch_us, kernel_us):
    return [end - kernel for end, kernel in zip(ends(launch_us, kernel_us), kernel_us, strict=True)]


def _waits(launch_us, kernel_us):
    """From launch to end: what somebody computes who starts a new clock for every kernel."""
    return [
        end - launched
        for end, launched in zip(ends(launch_us, kernel_us), accumulate(launch_us), strict=True)
    ]


def _queue_of_one(launch_us, kernel_us):
    """What a CPU would give that launches on only when the kernel before has begun."""
    begun, free, found = 0.0, 0.0, []
    for launch, kernel in zip(launch_us, kernel_us, strict=True):
        begun = max(begun + launch, free)
        free = begun + kernel
        found.append(free)
    return found


def _rounded(digits):
    return lambda launch, kernel: [round(end, digits) for end in ends(launch, kernel)]


FORMULAS = {
    "ignored-queue": _ignored_queue,
    "serialised": lambda launch, kernel: list(accumulate(map(sum, zip(launch, kernel, strict=True)))),
    "ignored-launch": [
        lambda launch, kernel: list(accumulate(kernel)),
        lambda launch, kernel: [launch[0] + end for end in accumulate(kernel)],
    ],
    "launch-off-by-one": [
        lambda launch, kernel: _run([0, *accumulate(launch)], kernel),
        lambda launch, kernel: _run([*list(accumulate(launch))[1:], sum(launch)], kernel),
    ],
    "launches-not-added-up": lambda launch, kernel: _run(launch, kernel),
    "longer-of-the-two": lambda launch, kernel: list(accumulate(map(max, launch, kernel))),
    "start-times": _starts,
    "durations": _waits,
    "queue-of-one": _queue_of_one,
    "swapped-arguments": lambda launch, kernel: ends(kernel, launch),
    "rounded": [
        lambda launch, kernel: [float(int(end)) for end in ends(launch, kernel)],
        *map(_rounded, (0, 1, 2)),
    ],
}


@exercise(
    "1.2",
    answer="finish_times",
    arguments=ARGUMENTS,
    title="When each kernel ends",
    own=("minillm.lab.launch_queue.launch_queue", "minillm.lab.toy_device.ToyDevice"),
    hints=(
        "Two things must have happened before a kernel starts. One is on the CPU, the other on the GPU.",
        "The CPU never waits: launch i ends at launch_us[0] + ... + launch_us[i], whatever the GPU does.",
        "Keep two clocks in one loop: cpu_free and gpu_free. Each launch moves cpu_free on.",
        "A kernel starts at max(cpu_free, gpu_free) and ends kernel_us later; that is the new gpu_free.",
    ),
    mistakes={
        "ignored-queue": "A kernel was started as soon as it was launched; it must also wait until the "
        "kernel before it has ended.",
        "serialised": "The CPU was made to wait for each kernel; it runs ahead and launches the next one "
        "while the GPU works.",
        "ignored-launch": "The launches are missing: a kernel cannot start before the CPU has launched it, "
        "and with short kernels the GPU waits for every one.",
        "launch-off-by-one": "The launch is off by one: kernel i waits for the end of launch i, neither for "
        "its beginning nor for the next launch.",
        "launches-not-added-up": "The launches were not added up: the CPU does one after the other, so "
        "launch i ends at the sum of launch_us[0] to launch_us[i].",
        "longer-of-the-two": "Taking the longer of launch and kernel each time forgets that the CPU can be "
        "several launches ahead; keep two clocks.",
        "start-times": "These are the times at which the kernels start; asked is when they end.",
        "durations": "These are times from each kernel's own launch; asked are times on one clock, which "
        "starts at 0 with the first launch.",
        "queue-of-one": "The CPU was made to wait until the kernel has begun; it launches the next one at "
        "once, however many are in the queue.",
        "swapped-arguments": "The two lists are swapped: launch_us comes first, then kernel_us.",
        "rounded": "The times were rounded; return them as they are.",
    },
)
def check_finish_times(answer, rng):
    # In the fourth, the second launch ends at the very moment at which the first kernel does.
    cases = [
        ([5, 5], [20, 20]),
        ([2, 30, 3], [1, 2, 4]),
        ([7, 2, 9, 4, 5], [3, 30, 1, 6, 2]),
        ([4, 3], [3, 5]),
    ]
    # The GPU sets the pace, then the CPU, then both in turn within one list.
    for count, pace in ((1, 1.0), (5, 3.0), (9, 0.3), (40, 1.0)):
        launch = [rng.uniform(1, 12) for _ in range(count)]
        kernel = [pace * rng.uniform(1, 12) for _ in range(count)]
        cases.append((launch, kernel))
    cases.append(([], []))
    compare(answer, cases, ends, FORMULAS, ARGUMENTS, read=numbers)
