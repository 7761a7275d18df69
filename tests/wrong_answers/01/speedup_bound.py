"""Answers to 1.5."""

import numpy

from minillm import lab
from minillm.grading.corpus import right, wrong


def last_end(launch_us, kernel_us):
    cpu = gpu = 0
    for launch, kernel in zip(launch_us, kernel_us):
        cpu += launch
        gpu = max(gpu, cpu) + kernel
    return gpu


def with_nodes(kernel_us, node_us):
    return [kernel + node_us for kernel in kernel_us]


def eager(launch_us, kernel_us, node_us):
    return last_end(launch_us, with_nodes(kernel_us, node_us))


def as_graph(kernel_us, node_us):
    return sum(with_nodes(kernel_us, node_us))


@right("1.5")
def idle_time_over_graph_time(launch_us, kernel_us, node_us):
    """What the GPU waits is what a graph saves: one plus idle over busy."""
    cpu = gpu = idle = 0
    for launch, kernel in zip(launch_us, kernel_us):
        cpu += launch
        if cpu > gpu:
            idle += cpu - gpu
            gpu = cpu
        gpu += kernel + node_us
    return numpy.float64(1 + idle / (gpu - idle))


@right("1.5")
def with_the_simulator(launch_us, kernel_us, node_us):
    """The exercise is about the two times; the lab's launch queue may compute one of them."""
    schedule = lab.launch_queue(launch_us, with_nodes(kernel_us, node_us))
    return schedule.total_us / schedule.busy_us


@wrong("1.5", "inverted-ratio")
def upside_down(launch_us, kernel_us, node_us):
    return as_graph(kernel_us, node_us) / eager(launch_us, kernel_us, node_us)


@wrong("1.5", "gain-not-ratio")
def gain(launch_us, kernel_us, node_us):
    graph = as_graph(kernel_us, node_us)
    return (eager(launch_us, kernel_us, node_us) - graph) / graph


@wrong("1.5", "gain-not-ratio")
def part_of_the_eager_time(launch_us, kernel_us, node_us):
    before = eager(launch_us, kernel_us, node_us)
    return (before - as_graph(kernel_us, node_us)) / before


@wrong("1.5", "microseconds-saved")
def saved(launch_us, kernel_us, node_us):
    return eager(launch_us, kernel_us, node_us) - as_graph(kernel_us, node_us)


@wrong("1.5", "forgot-node-cost")
def no_nodes_at_all(launch_us, kernel_us, node_us):
    return last_end(launch_us, kernel_us) / sum(kernel_us)


@wrong("1.5", "forgot-node-cost")
def no_nodes_in_the_graph(launch_us, kernel_us, node_us):
    return eager(launch_us, kernel_us, node_us) / sum(kernel_us)


@wrong("1.5", "node-cost-once")
def one_node_for_the_graph(launch_us, kernel_us, node_us):
    return eager(launch_us, kernel_us, node_us) / (sum(kernel_us) + node_us)


@wrong("1.5", "node-cost-once")
def one_node_for_both(launch_us, kernel_us, node_us):
    return (last_end(launch_us, kernel_us) + node_us) / (sum(kernel_us) + node_us)


@wrong("1.5", "node-cost-in-graph-only")
def eager_without_nodes(launch_us, kernel_us, node_us):
    return last_end(launch_us, kernel_us) / as_graph(kernel_us, node_us)


@wrong("1.5", "ignored-overlap")
def adds_everything(launch_us, kernel_us, node_us):
    graph = as_graph(kernel_us, node_us)
    return (sum(launch_us) + graph) / graph


@wrong("1.5", "ignored-overlap")
def adds_launches_and_kernels(launch_us, kernel_us, node_us):
    return (sum(launch_us) + sum(kernel_us)) / as_graph(kernel_us, node_us)


@wrong("1.5", "compared-the-sums")
def longer_sum(launch_us, kernel_us, node_us):
    graph = as_graph(kernel_us, node_us)
    return max(sum(launch_us), graph) / graph


@wrong("1.5", "compared-the-sums")
def launches_over_kernels(launch_us, kernel_us, node_us):
    return sum(launch_us) / sum(kernel_us)


@wrong("1.5", "wrong-type")
def both_times(launch_us, kernel_us, node_us):
    return eager(launch_us, kernel_us, node_us), as_graph(kernel_us, node_us)


@wrong("1.5", "wrong-value")
def mean_of_ratios(launch_us, kernel_us, node_us):
    return numpy.mean([(l + k) / (k + node_us) for l, k in zip(launch_us, kernel_us)])


@wrong("1.5", "node-cost-misplaced")
def nodes_in_the_launches(launch_us, kernel_us, node_us):
    return last_end(with_nodes(launch_us, node_us), kernel_us) / as_graph(kernel_us, node_us)


@wrong("1.5", "node-cost-misplaced")
def nodes_in_both(launch_us, kernel_us, node_us):
    return eager(with_nodes(launch_us, node_us), kernel_us, node_us) / as_graph(kernel_us, node_us)


@wrong("1.5", "longer-of-each-pair")
def longer_of_launch_and_kernel(launch_us, kernel_us, node_us):
    before = sum(map(max, launch_us, with_nodes(kernel_us, node_us)))
    return before / as_graph(kernel_us, node_us)


@wrong("1.5", "longer-of-each-pair")
def longer_of_the_two_and_a_node(launch_us, kernel_us, node_us):
    before = sum(with_nodes(map(max, launch_us, kernel_us), node_us))
    return before / as_graph(kernel_us, node_us)


@wrong("1.5", "graph-with-a-launch")
def the_graph_is_launched(launch_us, kernel_us, node_us):
    return eager(launch_us, kernel_us, node_us) / (launch_us[0] + as_graph(kernel_us, node_us))
