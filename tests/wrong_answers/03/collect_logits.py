"""Answers to 3.3."""

import torch

from minillm.grading.corpus import right, wrong


@right("3.3")
def list_of_clones(replay, logits, steps):
    def step():
        replay()
        return logits.detach().clone()

    return [step() for _ in range(steps)]


@right("3.3")
def preallocated(replay, logits, steps):
    rows = logits.new_empty((steps, *logits.shape))
    for row in rows:
        replay()
        row.copy_(logits, non_blocking=True)
    return rows


@right("3.3")
def grows_by_cat(replay, logits, steps):
    from minillm.graphs import cuda

    kept = logits[None][:0]
    for _ in range(steps):
        replay()
        kept = torch.cat([kept, logits[None]])
    cuda.synchronize()  # once, at the end
    return kept


@right("3.3")
def computes_a_copy(replay, logits, steps):
    kept = []
    while len(kept) < steps:
        replay()
        kept.append(logits * 1)
    return tuple(kept)


@wrong("3.3", "aliased")
def the_buffer_itself(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits)
    return kept


@wrong("3.3", "aliased")
def detached(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.detach())
    return kept


@wrong("3.3", "aliased")
def sliced(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits[:, :].contiguous())  # it is contiguous, so nothing is copied
    return kept


@wrong("3.3", "aliased")
def to_where_it_is(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.to(logits.device))
    return kept


@wrong("3.3", "aliased")
def one_copy_for_all(replay, logits, steps):
    own, kept = torch.empty_like(logits), []
    for _ in range(steps):
        replay()
        kept.append(own.copy_(logits))
    return kept


@wrong("3.3", "aliased")
def rows_kept_for_the_next_call(replay, logits, steps):
    if not hasattr(logits, "rows"):
        logits.rows = logits.new_empty((4, *logits.shape))
    for row in logits.rows[:steps]:
        replay()
        row.copy_(logits)
    return logits.rows[:steps]


@wrong("3.3", "copied-after-the-loop")
def stacked_at_the_end(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits)
    return torch.stack(kept)


@wrong("3.3", "copied-after-the-loop")
def cloned_at_the_end(replay, logits, steps):
    kept = [(replay(), logits.view_as(logits))[1] for _ in range(steps)]
    return [each.clone() for each in kept]


@wrong("3.3", "copied-before-the-loop")
def cloned_once(replay, logits, steps):
    own, kept = logits.clone(), []
    for _ in range(steps):
        replay()
        kept.append(own.clone())
    return kept


@wrong("3.3", "cloned-too-early")
def clone_then_replay(replay, logits, steps):
    kept = []
    for _ in range(steps):
        kept.append(logits.clone())
        replay()
    return torch.stack(kept)


@wrong("3.3", "never-written")
def binds_the_row(replay, logits, steps):
    rows = torch.zeros(steps, *logits.shape, dtype=logits.dtype, device=logits.device)
    for row in rows:
        replay()
        row = logits.clone()  # noqa: F841, PLW2901
    return rows


@wrong("3.3", "never-written")
def writes_into_a_copy(replay, logits, steps):
    rows = logits.new_zeros((steps, *logits.shape))
    for step in range(steps):
        replay()
        rows[[step]].copy_(logits)
    return rows


@wrong("3.3", "waits")
def to_the_host_each_step(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.cpu())
    return torch.stack(kept).to(logits.device)


@wrong("3.3", "waits")
def through_a_list(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.tolist())
    return torch.tensor(kept, device=logits.device, dtype=logits.dtype)


@wrong("3.3", "waits")
def into_host_memory(replay, logits, steps):
    rows = torch.empty(steps, *logits.shape)
    for step in range(steps):
        replay()
        rows[step] = logits
    return rows


@wrong("3.3", "waits")
def synchronizes_each_step(replay, logits, steps):
    from minillm.graphs import cuda

    kept = []
    for _ in range(steps):
        replay()
        cuda.synchronize()
        kept.append(logits.clone())
    return kept


@wrong("3.3", "on-the-host")
def all_to_the_host_at_the_end(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.clone())
    return torch.stack(kept).cpu()


@wrong("3.3", "other-dtype")
def in_single_precision(replay, logits, steps):
    rows = torch.empty(steps, *logits.shape, device=logits.device)
    for step in range(steps):
        replay()
        rows[step] = logits
    return rows


@wrong("3.3", "concatenated")
def below_each_other(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.clone())
    return torch.cat(kept)


@wrong("3.3", "replay-count")
def one_for_warming_up(replay, logits, steps):
    replay()
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.clone())
    return kept


@wrong("3.3", "replay-count")
def one_replay_is_enough(replay, logits, steps):
    replay()
    return [logits.clone() for _ in range(steps)]


@wrong("3.3", "moved-logits")
def hands_it_fresh_memory(replay, logits, steps):
    kept = []
    for _ in range(steps):
        replay()
        kept.append(logits.detach())
        logits.data = torch.empty_like(logits)
    return kept
