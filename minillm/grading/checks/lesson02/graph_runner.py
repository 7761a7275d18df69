"""Exercise 2.2: a captured function behind a call with named values, as a decode engine uses it."""

import torch

from minillm.grading.checks.lesson02.capture_and_replay import REFUSALS, random_tensor
from minillm.grading.checks.lesson02.observed import MISTAKES, Observed
from minillm.grading.checks.lesson02.refused import name_refusal
from minillm.grading.checks.lesson02.runner_judge import judge_calls_of, judge_first_call, make
from minillm.grading.checks.lesson02.runner_refusals import judge_refusals, judge_two
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import Wrong, exercise
from minillm.graphs import device


def make_values(rng, batch: int, width: int = 6) -> dict[str, torch.Tensor]:
    """What a decode step reads: token_ids and positions [batch] int64, hidden [batch, width] float32."""
    ids, positions = (rng.sample(range(1, 1000), batch) for _ in range(2))
    return {
        "token_ids": torch.tensor(ids, device=device),
        "positions": torch.tensor(positions, device=device),
        "hidden": random_tensor(rng, batch, width),
    }


def make_fn(rng, width: int = 6) -> Observed:
    """A function of those three, of several kernels; every input changes every row of the result."""
    basis, frequency = random_tensor(rng, width), random_tensor(rng, width)

    def compute(*, token_ids, positions, hidden):
        embedded = torch.cos(token_ids[:, None] * basis)  # no lookup: ids that are garbage may do no harm
        return torch.softmax(embedded + hidden, -1) + torch.sin(positions[:, None] * frequency)

    return Observed(compute)


@exercise(
    "2.2",
    answer="GraphRunner",
    arguments=("fn", "inputs"),
    title="A runner with named inputs",
    captures=True,
    own=("minillm.engine.runner.GraphRunner",),
    hints=(
        "The constructor is 2.1 with a dict: copies of the inputs, a warm-up, the capture. Keep the graph, "
        "the copies and the output on self.",
        "{name: tensor.clone() for name, tensor in inputs.items()} are the static inputs; "
        "fn(**self.static) calls fn with them.",
        "In __call__ the static tensors stay the same objects: self.static[name].copy_(value). Then replay, "
        "then return the output.",
        "copy_ broadcasts and converts without a word. So go through values once before you copy anything: "
        "is the name known, and do value.shape and value.dtype equal those of the static tensor?",
    ),
    mistakes={
        **MISTAKES,
        "waits-in-capture": "Something inside the capture makes the CPU wait for the device, or copies "
        "between the two. Leave only the call of fn in it.",
        "default-stream": "A capture needs a stream of its own. `with cuda.graph(g):` brings one.",
        "replayed-too-early": "The graph was replayed before its capture had ended.",
        "callers-tensors": "The runner works on the caller's tensors, who goes on to use them and sees them "
        "overwritten. Capture on copies of your own.",
        "dropped-input": "The runner did not keep a tensor that the graph reads. Its address goes to the "
        "next tensor that is made, and the graph reads that.",
        "clone-in-graph": "A copy was made inside the capture, so it is a node of the graph and every replay "
        "pays for it. It protects nothing: the next replay overwrites the copy as well.",
        "rebinds": "The new values did not reach the graph, which reads the addresses that it was captured "
        "with. A name, or a dict entry, that is bound to another tensor changes nothing there: copy_ into "
        "the old one.",
        "stale-input": "Not every value was copied, so the graph ran on an old one. The same tensor may come "
        "again with other values in it.",
        "late-copy": "The graph was replayed before the new values were copied, so each call answers the "
        "one before.",
        "early-clone": "The output was copied before the replay, so each call returns the result of the one "
        "before. Replay first.",
        "not-replayed": "The graph was not replayed, so the output still holds what it held before.",
        "recaptures": "It captures again at a later call. A capture runs all of fn's Python and takes far "
        "longer than fn; the point of a runner is to do it once.",
        "calls-fn": "It calls fn itself when it should replay: eager work, with all its launches.",
        "missing-name": "A name that is left out has to keep its last value. At first that is the one in "
        "`inputs`, and the caller may have put something else into its own tensor since.",
        "unknown-name": "An unknown name was ignored. A misspelt input would then keep its old value, and "
        "nobody would notice.",
        "broadcast": "A value of another shape was accepted: copy_ repeats one row for all of them. "
        "A graph has one shape, in all of its dimensions and in their order.",
        "converted": "A value of another dtype was accepted: copy_ converts, and what does not fit is cut.",
        "half-loaded": "The call was refused, but some of its values had been copied by then. Check all of "
        "them before you copy any.",
        "shared-state": "Two runners share something: what belongs to one graph must be made in __init__ "
        "and stand on self, not on the class.",
    },
)
def check_graph_runner(answer, rng):
    with as_on_a_gpu():
        try:
            runner = make(answer, make_fn(rng), make_values(rng, 4))
            judge_calls_of(runner, [make_values(rng, 4) for _ in range(3)])
            judge_refusals(runner, make_values(rng, 4))
            smaller = make(answer, make_fn(rng), make_values(rng, 3))
            judge_two(runner, make_values(rng, 4), smaller, make_values(rng, 3))
            other = make_fn(rng)
            try:
                alike = make(answer, other, make_values(rng, 4))
            except Wrong as wrong:
                if other.calls:
                    raise
                seen = "Of two runners with like inputs the second never called its fn."
                raise Wrong("shared-state", seen) from wrong
            judge_first_call(alike, make_values(rng, 4))
            judge_two(runner, make_values(rng, 4), alike, make_values(rng, 4))
        except Exception as error:
            name_refusal(error, REFUSALS)
            raise
