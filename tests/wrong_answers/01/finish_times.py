"""Answers to 1.2."""

import numpy

from minillm import lab
from minillm.grading.corpus import right, wrong


@right("1.2")
def longest_path(launch_us, kernel_us):
    """The end of kernel i: the latest of all ways that launch up to some j and then run j..i on the GPU."""
    return [
        max((sum(launch_us[: j + 1]) + sum(kernel_us[j : i + 1])) for j in range(i + 1))
        for i in range(len(launch_us))
    ]


@right("1.2")
def with_numpy(launch_us, kernel_us):
    launched, worked = numpy.cumsum(launch_us), numpy.cumsum(kernel_us)
    before = worked - numpy.asarray(kernel_us)
    return numpy.maximum.accumulate(launched - before) + worked if len(launched) else numpy.zeros(0)


@wrong("1.2", "ignored-queue")
def starts_when_launched(launch_us, kernel_us):
    clock, found = 0, []
    for launch, kernel in zip(launch_us, kernel_us):
        clock += launch
        found.append(clock + kernel)
    return found


@wrong("1.2", "serialised")
def waits_for_every_kernel(launch_us, kernel_us):
    clock, found = 0, []
    for launch, kernel in zip(launch_us, kernel_us):
        clock += launch
        clock += kernel
        found.append(clock)
    return found


@wrong("1.2", "ignored-launch")
def only_kernels(launch_us, kernel_us):
    return list(numpy.cumsum(kernel_us))


@wrong("1.2", "ignored-launch")
def only_the_first_launch(launch_us, kernel_us):
    clock, found = launch_us[0] if launch_us else 0, []
    for kernel in kernel_us:
        clock += kernel
        found.append(clock)
    return found


@wrong("1.2", "launch-off-by-one")
def starts_at_the_beginning_of_its_launch(launch_us, kernel_us):
    cpu = gpu = 0
    found = []
    for launch, kernel in zip(launch_us, kernel_us):
        gpu = max(cpu, gpu) + kernel
        cpu += launch
        found.append(gpu)
    return found


@wrong("1.2", "launch-off-by-one")
def waits_for_the_next_launch(launch_us, kernel_us):
    gpu, found = 0, []
    for i, kernel in enumerate(kernel_us):
        gpu = max(gpu, sum(launch_us[: i + 2])) + kernel
        found.append(gpu)
    return found


@wrong("1.2", "launches-not-added-up")
def forgets_earlier_launches(launch_us, kernel_us):
    gpu, found = 0, []
    for launch, kernel in zip(launch_us, kernel_us):
        gpu = max(gpu, launch) + kernel
        found.append(gpu)
    return found


@wrong("1.2", "longer-of-the-two")
def longer_of_launch_and_kernel(launch_us, kernel_us):
    clock, found = 0, []
    for launch, kernel in zip(launch_us, kernel_us):
        clock += max(launch, kernel)
        found.append(clock)
    return found


@wrong("1.2", "start-times")
def when_they_start(launch_us, kernel_us):
    cpu = gpu = 0
    found = []
    for launch, kernel in zip(launch_us, kernel_us):
        cpu += launch
        start = max(cpu, gpu)
        found.append(start)
        gpu = start + kernel
    return found


@wrong("1.2", "durations")
def from_launch_to_end(launch_us, kernel_us):
    cpu = gpu = 0
    found = []
    for launch, kernel in zip(launch_us, kernel_us):
        cpu += launch
        gpu = max(cpu, gpu) + kernel
        found.append(gpu - cpu)
    return found


@wrong("1.2", "wrong-type")
def only_the_last_end(launch_us, kernel_us):
    cpu = gpu = 0
    for launch, kernel in zip(launch_us, kernel_us):
        cpu += launch
        gpu = max(cpu, gpu) + kernel
    return gpu


@wrong("1.2", "wrong-length")
def with_the_start_in_front(launch_us, kernel_us):
    cpu = gpu = 0
    found = [0]
    for launch, kernel in zip(launch_us, kernel_us):
        cpu += launch
        gpu = max(cpu, gpu) + kernel
        found.append(gpu)
    return found


@wrong("1.2", "changed-input")
def adds_up_in_place(launch_us, kernel_us):
    gpu, found = 0, []
    for i in range(len(launch_us)):
        if i:
            launch_us[i] += launch_us[i - 1]
        gpu = max(gpu, launch_us[i]) + kernel_us[i]
        found.append(gpu)
    return found


@wrong("1.2", "reexport")
def asks_the_simulator(launch_us, kernel_us):
    return [end for _, end in lab.launch_queue(launch_us, kernel_us).gpu]


@wrong("1.2", "another-exercise")
def speedup_bound(launch_us, kernel_us, node_us=0):
    return 1.0


wrong("1.2", "reexport")(lab.launch_queue)


@wrong("1.2", "swapped-arguments")
def other_order(kernel_us, launch_us):
    return longest_path(launch_us, kernel_us)


@wrong("1.2", "rounded")
def whole_microseconds(launch_us, kernel_us):
    return [int(end) for end in longest_path(launch_us, kernel_us)]


@wrong("1.2", "rounded")
def one_digit(launch_us, kernel_us):
    return [round(end, 1) for end in longest_path(launch_us, kernel_us)]


@wrong("1.2", "wrong-value")
def forgets_the_tie(launch_us, kernel_us):
    cpu = gpu = 0
    found = []
    for launch, kernel in zip(launch_us, kernel_us):
        cpu += launch
        if cpu > gpu:
            gpu = cpu + kernel
        elif cpu < gpu:
            gpu = gpu + kernel
        found.append(gpu)
    return found


@wrong("1.2", "returned-nothing")
def nothing_for_nothing(launch_us, kernel_us):
    return longest_path(launch_us, kernel_us) or None


@wrong("1.2", "wrong-type")
def raw_bytes(launch_us, kernel_us):
    return bytes(int(end) % 256 for end in longest_path(launch_us, kernel_us))


@wrong("1.2", "reexport")
def asks_the_toy_device(launch_us, kernel_us):
    toy = lab.toy_device()
    for launch, kernel in zip(launch_us, kernel_us):
        toy.launch(kernel, launch)
    return [end for _, end in toy.executed]
