"""Exercise 2.6: what an answer does besides replaying: draws, work and memory outside of the graph."""

import torch

from minillm.grading.registry import Wrong


def judge_draws(run):
    if run.overwrote:
        raise Wrong("overwrote-x", "After replay() other values stood in x than before.")
    if run.in_reseed.captured or run.in_replay.captured:
        raise Wrong("recaptured", "A capture was seen within it.")
    if "copy from the host" in run.in_replay.eager:
        raise Wrong("drew-eagerly", "replay() copies something from the CPU to the device.")
    if drawn := run.in_replay.eager or run.in_reseed.eager:
        where = "replay()" if run.in_replay.eager else "reseed(seed)"
        raise Wrong("drew-eagerly", f"In {where} torch was asked for {drawn[0]}.")
    if run.in_replay.work:
        raise Wrong("work-outside", f"In replay() torch was asked for {run.in_replay.work[0]}.")


def judge_memory(run):
    """New tensors stand wherever the answer let go of one: nothing may be written there, nor read."""
    seen = "Memory that nobody held any more was "
    if run.trespassed:
        raise Wrong("dropped-tensor", seen + "written by a replay.")
    again, more, refilled = (
        [out for _, out in run.outs[part]] for part in ("again", "once more", "refilled")
    )
    same = [all(map(torch.equal, again, others)) for others in (more, refilled)]
    if same == [True, False]:
        raise Wrong("dropped-tensor", seen + "read by a replay.")
