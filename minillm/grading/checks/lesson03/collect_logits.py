"""Exercise 3.3: keep the logits of several replays, which all end up in one buffer."""

import torch

from minillm.grading.checks.lesson03.collect_judge import judge_call, judge_later, make_case
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import exercise


@exercise(
    "3.3",
    answer="collect_logits",
    arguments=("replay", "logits", "steps"),
    title="Collect the logits of n steps",
    own=("minillm.engine.runner.GraphRunner",),
    captures=True,
    hints=(
        "How many tensors are there after three replays? The graph was captured once, with one output.",
        "A list of `logits` is a list of one and the same tensor. detach(), view() and a slice are other "
        "tensors in the same memory. Which call gives new memory?",
        "In the loop: replay(), then append logits.clone(). After it: torch.stack(list).",
    ),
    mistakes={
        "aliased": "What you collected lies in the static buffer (or in one other, written again and again), "
        "so every replay overwrites all of it. A list entry, detach(), view() or a slice copy nothing.",
        "copied-after-the-loop": "All entries are the last step's: they were views until the loop was over, "
        "and stacked or cloned then. Copy within the loop, after each replay.",
        "copied-before-the-loop": "All entries hold what stood in the buffer before the first replay: the "
        "copy was taken once, before the loop. A clone does not follow the original.",
        "cloned-too-early": "You are one step behind: the clone was taken before the replay, so the first "
        "entry is left over from earlier, and the last step is missing.",
        "never-written": "Your tensor for the results was made, and never written. `row = logits` binds a "
        "name; `rows[i] = logits` or `rows[i].copy_(logits)` writes.",
        "waits": "You wait for the device inside the loop (cpu(), tolist(), item(), a copy to the host, "
        "synchronize()), so it runs dry at every step. Clone on the device, and read once at the end.",
        "unordered": "Your own stream and the graph's work side by side, and nothing makes one wait for the "
        "other: it may come out right, and need not. side.wait_stream(current) comes before what you put on "
        "it, current.wait_stream(side) before who needs that.",
        "on-the-host": "Your results are in host memory; they were to stay on the device. Give the tensor "
        "that you make the logits' device, or leave the copy to the caller.",
        "other-dtype": "The values are right, the dtype is not: torch.empty makes float32 unless told "
        "otherwise, which takes twice the memory of float16 logits. Use dtype=logits.dtype, or new_empty.",
        "concatenated": "torch.cat puts the steps' rows below each other in one dimension; torch.stack makes "
        "a new one, [steps, B, V].",
        "replay-count": "Each step is one replay, no more and no fewer.",
        "moved-logits": "`logits` was given other memory (`.data =`, `set_`); the graph goes on writing to "
        "the old address.",
    },
)
def check_collect_logits(answer, rng):
    with as_on_a_gpu():
        for dtype, counts in ((torch.float32, (4, 3, 4)), (torch.float16, (3, 1))):
            case = make_case(rng, dtype)
            for steps in counts:
                judge_call(case, answer, steps, rng)
                judge_later(case)
