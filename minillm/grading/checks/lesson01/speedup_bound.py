"""Exercise 1.5: what can a graph gain at most?"""

from minillm.grading.checks.lesson01.finish_times import ends
from minillm.grading.compare import compare
from minillm.grading.registry import exercise

ARGUMENTS = ("launch_us", "kernel_us", "node_us")


def eager(launch_us, kernel_us, node_us):
    """The queue of exercise 1.2, each kernel longer by what the GPU needs between two of them."""
    return ends(launch_us, _plus(kernel_us, node_us))[-1]


def graph(launch_us, kernel_us, node_us):
    return sum(kernel_us) + len(kernel_us) * node_us


def bound(launch_us, kernel_us, node_us):
    return eager(launch_us, kernel_us, node_us) / graph(launch_us, kernel_us, node_us)


def _ratio(before, after):
    """A formula from two times, each a function of the three lists' sums and of the case itself."""

    def formula(launch_us, kernel_us, node_us):
        case = launch_us, kernel_us, node_us
        return before(*case) / after(*case)

    return formula


def _kernels(launch_us, kernel_us, node_us):
    return sum(kernel_us)


def _launches(launch_us, kernel_us, node_us):
    return sum(launch_us)


def _without_nodes(launch_us, kernel_us, node_us):
    return eager(launch_us, kernel_us, 0)


def _one_node(launch_us, kernel_us, node_us):
    return sum(kernel_us) + node_us


def _plus(times, node_us):
    return [each + node_us for each in times]


def _longer_sum(*case):
    return max(_launches(*case), _kernels(*case))


FORMULAS = {
    "inverted-ratio": _ratio(graph, eager),
    "gain-not-ratio": [
        lambda *case: bound(*case) - 1,
        lambda *case: 100 * (bound(*case) - 1),
        lambda *case: 1 - 1 / bound(*case),
    ],
    "microseconds-saved": lambda *case: eager(*case) - graph(*case),
    "forgot-node-cost": [_ratio(_without_nodes, _kernels), _ratio(eager, _kernels)],
    "node-cost-once": [
        _ratio(eager, _one_node),
        _ratio(_without_nodes, _one_node),
        lambda launch, kernel, node: (eager(launch, kernel, 0) + node) / (sum(kernel) + node),
    ],
    "node-cost-in-graph-only": _ratio(_without_nodes, graph),
    "node-cost-misplaced": [
        _ratio(lambda launch, kernel, node: eager(launch, kernel, 0) + len(kernel) * node, graph),
        _ratio(lambda launch, kernel, node: eager(_plus(launch, node), kernel, 0), graph),
        _ratio(lambda launch, kernel, node: eager(_plus(launch, node), kernel, node), graph),
    ],
    "longer-of-each-pair": [
        _ratio(lambda launch, kernel, node: sum(map(max, launch, _plus(kernel, node))), graph),
        _ratio(lambda launch, kernel, node: sum(_plus(map(max, launch, kernel), node)), graph),
    ],
    "graph-with-a-launch": _ratio(
        eager, lambda launch, kernel, node: launch[0] + graph(launch, kernel, node)
    ),
    "ignored-overlap": [
        _ratio(lambda *case: _launches(*case) + graph(*case), graph),
        _ratio(lambda *case: _launches(*case) + _kernels(*case), graph),
        _ratio(lambda *case: _launches(*case) + _kernels(*case), _kernels),
    ],
    "compared-the-sums": [
        _ratio(lambda *case: max(_launches(*case), graph(*case)), graph),
        _ratio(_launches, graph),
        _ratio(_launches, _kernels),
        _ratio(_longer_sum, graph),
        _ratio(_longer_sum, _kernels),
    ],
}


@exercise(
    "1.5",
    answer="speedup_bound",
    arguments=ARGUMENTS,
    title="What a graph can gain at most",
    hints=(
        "Compute two times, in microseconds: the eager step and the step as a graph. Then divide.",
        "The graph has no launches left: each kernel takes kernel_us + node_us, one after the other.",
        "The eager step is exercise 1.2 with kernels that take kernel_us + node_us; its time is the end of "
        "the last one.",
        "With your finish_times the eager time is finish_times(launch_us, [k + node_us for k in "
        "kernel_us])[-1]; divide it by the sum of all k + node_us.",
    ),
    mistakes={
        "inverted-ratio": "The ratio is upside down: a speed-up is the old time divided by the new one, so "
        "it is above 1 when the graph is faster.",
        "gain-not-ratio": "This is the part that is gained; asked is the ratio of the times: 1 means no "
        "gain.",
        "microseconds-saved": "These are the microseconds saved; asked is the ratio of the two times.",
        "forgot-node-cost": "The cost of a node is missing: for each kernel the GPU needs node_us besides, "
        "in a graph too. Without it the bound promises too much.",
        "node-cost-once": "node_us was counted once; every kernel pays it.",
        "node-cost-in-graph-only": "node_us was charged to the graph alone; the GPU needs it for each "
        "kernel, however that was launched. Else a graph would seem to slow a GPU-bound step down.",
        "node-cost-misplaced": "In the eager step node_us lengthens each kernel on the GPU. It is no part of "
        "a launch, and adding it at the end forgets that some of it hides behind the launches.",
        "longer-of-each-pair": "Taking the longer of launch and kernel each time forgets that the CPU can be "
        "several launches ahead; follow the queue as in 1.2.",
        "graph-with-a-launch": "A launch was charged to the graph; here it costs nothing.",
        "ignored-overlap": "Launches and kernels were added up; in the eager step the CPU launches the next "
        "kernel while the GPU runs this one, so part of the launch time is hidden already.",
        "compared-the-sums": "The sum of the launches was compared with that of the kernels; a step that is "
        "launch-bound at one place and GPU-bound at another loses time at both. Follow the queue.",
    },
)
def check_speedup_bound(answer, rng):
    # Short kernels, then long ones: the order in which nothing of the launches can be hidden.
    cases = [([6.5, 5.5, 7.5, 4.5, 6.0], [1.5, 2.5, 2.0, 40.0, 31.0], 1.25)]
    for count, longest in ((6, 30), (25, 12), (40, 4), (12, 80), (1, 5)):
        launch = [rng.uniform(3, 12) for _ in range(count)]
        kernel = [rng.uniform(1, longest) for _ in range(count)]
        cases.append((launch, kernel, rng.uniform(0.5, 2.0)))
    compare(answer, cases, bound, FORMULAS, ARGUMENTS)
