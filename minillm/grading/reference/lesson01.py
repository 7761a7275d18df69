# ruff: noqa: E402, F811, I001
"""Reference solutions of lesson 01. Generated, do not edit: `python -m minillm build` makes them."""

# --- exercise 1.1 ---
from statistics import median


def time_gpu(fn, cuda, warmup=3, repeats=20):
    """Median GPU microseconds of one call of fn, over `repeats` calls after `warmup` untimed ones."""
    for _ in range(warmup):
        fn()
    samples = []
    for _ in range(repeats):
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        fn()
        end.record()
        samples.append((start, end))
    cuda.synchronize()  # one wait for all: while the CPU stays ahead, no launch falls between two events
    return 1000 * median(start.elapsed_time(end) for start, end in samples)


# --- exercise 1.2 ---
def finish_times(launch_us, kernel_us):
    """When each kernel ends, in microseconds from the start; both arguments are lists of one length."""
    cpu_free = gpu_free = 0
    ends = []
    for launch, kernel in zip(launch_us, kernel_us, strict=True):
        cpu_free += launch
        gpu_free = max(cpu_free, gpu_free) + kernel
        ends.append(gpu_free)
    return ends


# --- exercise 1.3 ---
import torch


def bandwidth_floor_us(config, batch, context, gb_per_s):
    """Microseconds to read what one bfloat16 decode step needs, at gb_per_s times 1e9 bytes a second."""
    weights = config.weight_count(include_embedding=False) * torch.bfloat16.itemsize
    kv = batch * context * config.kv_bytes_per_token(torch.bfloat16)
    return (weights + kv) / (gb_per_s * 1e9) * 1e6


# --- exercise 1.4 ---
from statistics import median, quantiles


def diagnose(submit_us, gpu_busy_us, wall_us):
    """One of "too noisy to say", "GPU-bound", "launch-bound", "synchronising"; lists of microseconds."""
    wall = median(wall_us)
    first_quartile, _, third_quartile = quantiles(wall_us, n=4)
    if third_quartile - first_quartile > wall / 5:
        return "too noisy to say"
    if median(gpu_busy_us) >= 0.9 * wall:  # first: when the queue is full, submitting takes long as well
        return "GPU-bound"
    if median(submit_us) >= 0.9 * wall:
        return "launch-bound"
    return "synchronising"


# --- exercise 1.5 ---
def speedup_bound(launch_us, kernel_us, node_us):
    """Eager time divided by graph time; two lists and one number, in microseconds."""
    cpu_free = eager_us = 0
    for launch, kernel in zip(launch_us, kernel_us, strict=True):
        cpu_free += launch
        eager_us = max(cpu_free, eager_us) + kernel + node_us
    graph_us = sum(kernel + node_us for kernel in kernel_us)
    return eager_us / graph_us
