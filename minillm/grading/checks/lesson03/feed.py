"""Exercise 3.1: run a captured graph on one batch after the other."""

from minillm.grading.checks.lesson03.feed_judge import judge_call, judge_later, make_case
from minillm.grading.checks.lesson03.watching import random_tensor
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import Wrong, exercise


@exercise(
    "3.1",
    answer="feed",
    arguments=("graph", "static_input", "static_output", "batches"),
    title="Feed a graph",
    own=("minillm.engine.runner.GraphRunner",),
    captures=True,
    hints=(
        "The graph reads the memory that static_input had at capture. A name in your function that is bound "
        "to another tensor does not change that memory.",
        "static_input.copy_(batch) writes into it. When must that happen, before the replay or after it?",
        "After a replay the values stand in static_output, until the next replay writes there. Take a copy "
        "that is your own: static_output.clone().",
        "copy_ repeats a batch of shape [1, D] for every row without a word. Compare batch.shape with "
        "static_input.shape first, and raise a ValueError.",
    ),
    mistakes={
        "rebound": "The static input was never written. `static_input = batch` binds the name in your "
        "function to another tensor; the graph goes on reading the memory it was captured with.",
        "copied-elsewhere": "You copied the batch, but into another tensor than the static input: clone(), "
        "contiguous() of a transposed tensor, to() and indexing with a list give new memory.",
        "moved-static": "The static input was given other memory (`.data =`, `set_`): it looks right from "
        "Python, and the graph goes on reading the old address. Write into it with copy_.",
        "copied-backwards": "The batch was overwritten: target.copy_(source) writes into what stands before "
        "the dot.",
        "graph-arguments": "A graph takes no arguments and returns nothing: graph.replay() runs what was "
        "captured on the memory it was captured with. Copy the batch into static_input before.",
        "captured-again": "The graph is captured already. To capture for each batch costs many times a "
        "replay: copy the batch into static_input, and replay.",
        "no-replay": "The graph was never replayed, so nothing was computed.",
        "replay-count": "Each batch needs one replay, no more and no fewer.",
        "replayed-too-early": "The graph was replayed before the batch was copied, so each replay worked on "
        "the batch before. Copy first.",
        "read-ahead": "Replays saw a batch that was not their turn yet. Either batches were copied before "
        "the replay of an earlier one, or they were collected first, and this iterator puts each batch into "
        "the same tensor. Take one, replay, then take the next.",
        "part-only": "Only a part of the batch got into the static input, and the rest is left over from "
        "before: copy all rows and columns.",
        "other-shape": "A batch of another shape was taken without a word: copy_ and `[:] =` repeat a single "
        "row or column, and view_as and reshape rearrange the values. Compare the shapes, and raise a "
        "ValueError.",
        "aliased": "Your results lie in one and the same memory: the output is one buffer, every replay "
        "overwrites it, and a view of it is overwritten, too. Clone it after each replay.",
        "last-aliased": "Your last result is the static output itself. It is right for now, and the next "
        "replay, whoever calls it, overwrites it. Clone it as the others.",
        "copied-after-the-loop": "All your results hold what the last replay gave: the output was copied "
        "after the loop, when the earlier values were overwritten. Clone it after each replay.",
        "unordered": "Your own stream and the graph's work side by side, and nothing makes one wait for the "
        "other: it may come out right, and need not. side.wait_stream(current) comes before what you put on "
        "it, current.wait_stream(side) before who needs that.",
        "cloned-too-early": "Your results are one replay behind: the output was cloned before the replay, "
        "so the first one is what stood there before, and the last one is missing.",
    },
)
def check_feed(answer, rng):
    with as_on_a_gpu():
        case = make_case(rng)
        shape = case.static_input.shape
        for count, one_tensor in ((4, False), (3, True), (1, False), (2, False)):
            batches = [random_tensor(rng, *shape) for _ in range(count)]
            judge_call(case, answer, batches, random_tensor(rng, *shape), one_tensor)
            judge_later(case)
        _check_other_shape(case, answer, rng)


def _check_other_shape(case, answer, rng) -> None:
    height, width = case.static_input.shape
    for rows, columns in ((1, width), (height, 1), (width, height)):
        case.graph.begin(random_tensor(rng, *case.static_input.shape))
        try:
            answer(case.graph, case.static_input, case.static_output, [random_tensor(rng, rows, columns)])
        except Exception:  # whichever kind: the caller hears of it
            continue
        seen = f"The static input is [{height}, {width}], the batch was [{rows}, {columns}]."
        raise Wrong("other-shape", seen)
