"""More answers to 1.1 to 1.5: other ways to write them, and mistakes that no formula knows."""

import time
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from statistics import median, quantiles

import numpy as np
import torch

from minillm.grading.corpus import right, wrong


@right("1.1")
def one_event_between_two_calls(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    marks = [cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        fn()
        mark.record()
    marks[-1].synchronize()
    return median(1000 * before.elapsed_time(after) for before, after in zip(marks, marks[1:], strict=False))


@right("1.1")
def drops_the_samples_of_the_warm_up(fn, cuda, *, warmup=3, repeats=20):
    start, end = cuda.Event(True), cuda.Event(True)  # one pair, read before it is used again
    samples, stream = [], cuda.current_stream()
    for _ in range(warmup + repeats):
        stream.record_event(start)
        fn()
        stream.record_event(end)
        stream.synchronize()
        samples.append(start.elapsed_time(end))
    return torch.tensor(samples[warmup:]).quantile(0.5) * 1000


@right("1.1")
def lower_median_of_a_tensor(fn, cuda, warmup=3, repeats=20):
    pairs = []
    for call in range(warmup + repeats):
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        if call >= warmup:
            start.record()
            pairs.append((start, end))
        fn()
        end.record()
    cuda.synchronize()
    return 1000 * torch.tensor([start.elapsed_time(end) for start, end in pairs]).median().item()


@wrong("1.1", "timed-the-submit")
def waits_before_but_not_after(fn, cuda, warmup=3, repeats=20):
    for _ in range(warmup):
        fn()
    samples = []
    for _ in range(repeats):
        cuda.synchronize()
        begun = time.perf_counter()
        fn()
        samples.append((time.perf_counter() - begun) * 1e6)
    return median(samples)


@wrong("1.1", "ignored-arguments")
def warms_up_before_each_sample(fn, cuda, warmup=3, repeats=20):
    samples = []
    for _ in range(repeats):
        for _ in range(warmup):
            fn()
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        fn()
        end.record()
        end.synchronize()
        samples.append(1000 * start.elapsed_time(end))
    return median(samples)


@right("1.2")
def by_recursion(launch_us, kernel_us):
    if not launch_us:
        return []
    before = by_recursion(launch_us[:-1], kernel_us[:-1])
    return [*before, max(sum(launch_us), *before[-1:], 0) + kernel_us[-1]]


@right("1.2")
def by_accumulation(launch_us, kernel_us):
    kernels = zip(accumulate(launch_us), kernel_us, strict=True)
    return tuple(accumulate(kernels, lambda free, each: max(free, each[0]) + each[1], initial=0))[1:]


@right("1.2")
def from_its_closed_form_in_float32(launch_us, kernel_us):
    if not launch_us:
        return torch.zeros(0)
    launched, worked = torch.tensor(launch_us).cumsum(0), torch.tensor(kernel_us).cumsum(0)
    return (launched - worked + torch.tensor(kernel_us)).cummax(0).values + worked


@wrong("1.2", "wrong-type")
def yields_them(launch_us, kernel_us):
    yield from by_recursion(launch_us, kernel_us)


@wrong("1.2", "wrong-length")
def list_lives_on_between_calls(launch_us, kernel_us, ends=[]):  # noqa: B006  that is the mistake
    ends.extend(by_recursion(launch_us, kernel_us))
    return ends


@wrong("1.2", "queue-of-one")
def a_queue_of_one(launch_us, kernel_us):
    cpu = gpu = 0
    ends = []
    for launch, kernel in zip(launch_us, kernel_us, strict=True):
        cpu = max(cpu + launch, gpu)  # the next launch begins only when this kernel begins
        gpu = cpu + kernel
        ends.append(gpu)
    return ends


@right("1.3")
def with_a_fraction(config, batch, context, gb_per_s):
    weights = 2 * config.weight_count() - (0 if config.tied_head else 2 * config.vocab * config.hidden)
    kv = config.kv_bytes_per_token(torch.bfloat16) * batch * context
    return Fraction(weights + kv) / Fraction(gb_per_s) / 1000


@wrong("1.3", "per-token")
def microseconds_for_each_token(config, batch, context, gb_per_s):
    return with_a_fraction(config, batch, context, gb_per_s) / batch


@wrong("1.3", "kv-counted-twice")
def counts_the_layers_twice(config, batch, context, gb_per_s):
    kv = config.layers * config.kv_bytes_per_token(torch.bfloat16) * batch * context
    return (2 * config.weight_count(include_embedding=False) + kv) / (gb_per_s * 1e3)


@right("1.4")
def by_table_and_inclusive_quartiles(submit_us, gpu_busy_us, wall_us):
    submit, busy, wall = map(np.median, (submit_us, gpu_busy_us, wall_us))
    low, _, high = quantiles(wall_us, n=4, method="inclusive")
    table = {"too noisy to say": 5 * (high - low) > wall, "GPU-bound": busy >= 0.9 * wall}
    table |= {"launch-bound": submit >= 0.9 * wall, "synchronising": True}
    return next(name for name, holds in table.items() if holds)


@wrong("1.4", "unknown-verdict")
def american_spelling(submit_us, gpu_busy_us, wall_us):
    return by_table_and_inclusive_quartiles(submit_us, gpu_busy_us, wall_us).replace("ising", "izing")


@right("1.5")
def by_reduction(launch_us, kernel_us, node_us):
    def step(clocks, kernel):
        cpu = clocks[0] + kernel[0]
        return cpu, max(cpu, clocks[1]) + kernel[1] + node_us

    eager = reduce(step, zip(launch_us, kernel_us, strict=True), (0, 0))[1]
    return eager / (sum(kernel_us) + len(kernel_us) * node_us)


@right("1.5")
def longest_tail_in_float32(launch_us, kernel_us, node_us):
    kernels = np.array(kernel_us, np.float32) + np.float32(node_us)
    tails = np.cumsum(kernels[::-1])[::-1]
    return (np.cumsum(launch_us) + tails).max() / kernels.sum()


@wrong("1.5", "node-cost-misplaced")
def nodes_after_the_eager_step(launch_us, kernel_us, node_us):
    nodes = node_us * len(kernel_us)
    return (by_recursion(launch_us, kernel_us)[-1] + nodes) / (sum(kernel_us) + nodes)


@wrong("1.5", "changed-input")
def adds_the_nodes_in_place(launch_us, kernel_us, node_us):
    for i in range(len(kernel_us)):
        kernel_us[i] += node_us
    return by_recursion(launch_us, kernel_us)[-1] / sum(kernel_us)
