"""Answers to 2.3."""

import torch
import torch.nn.functional as F

from minillm.grading.corpus import right, wrong
from minillm.graphs import cuda

NEVER = float("-inf")


def penalised(logits, seen, penalty):
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


@right("2.3")
def with_powers_of_the_penalty(logits, seen, banned, penalty):
    sign = torch.where(logits > 0, -1.0, 1.0)
    factor = penalty ** (sign * seen)
    scores = (logits * factor).masked_fill(banned[None, :], NEVER)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    weights = scores.exp()
    return weights / weights.sum(dim=-1, keepdim=True)


@right("2.3")
def on_a_clone_in_place(logits, seen, banned, penalty):
    scores = logits.clone()
    scores.copy_(torch.where(seen & (scores > 0), scores / penalty, scores))
    scores.copy_(torch.where(seen & (scores < 0), scores * penalty, scores))
    scores[banned.expand_as(scores)] = -1e9  # a number through a mask is a fill
    return F.softmax(scores, dim=1)


@right("2.3")
def rows_and_renormalise(logits, seen, banned, penalty):
    rows = []
    for row, known in zip(logits.unbind(0), seen.unbind(0)):
        p = torch.where(known, penalty, torch.ones_like(penalty))
        score = torch.minimum(row / p, row * p)
        rows.append(torch.where(banned, torch.zeros_like(score), (score - score.max()).exp()))
    weights = torch.stack(rows)
    return weights / weights.sum(-1, keepdim=True)


@right("2.3")
def a_constant_made_on_the_device(logits, seen, banned, penalty):
    never = torch.full_like(logits, NEVER)
    return torch.where(banned, never, penalised(logits, seen, penalty)).log_softmax(-1).exp()


@wrong("2.3", "still-waits")
def as_given(logits, seen, banned, penalty):
    scores = logits.clone()
    p = penalty.item()
    old = scores[seen]
    scores[seen] = torch.where(old > 0, old / p, old * p)
    never = torch.tensor(NEVER, device=logits.device)
    scores[:, banned] = never
    return torch.softmax(scores, dim=-1)


@wrong("2.3", "still-waits")
def float_is_item(logits, seen, banned, penalty):
    return penalised(logits, seen, float(penalty)).masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "still-waits")
def asks_whether_anything_was_seen(logits, seen, banned, penalty):
    scores = logits
    if seen.any():
        scores = penalised(logits, seen, penalty)
    return scores.masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "still-waits")
def fills_with_a_tensor(logits, seen, banned, penalty):
    never = torch.full((), NEVER, device=logits.device)
    return penalised(logits, seen, penalty).masked_fill(banned, never).softmax(-1)


@wrong("2.3", "shape-from-data")
def still_a_mask(logits, seen, banned, penalty):
    scores = logits.clone()
    old = scores[seen]
    scores[seen] = torch.where(old > 0, old / penalty, old * penalty)
    return scores.masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "shape-from-data")
def indices_of_the_banned(logits, seen, banned, penalty):
    scores = penalised(logits, seen, penalty)
    scores[:, banned.nonzero().squeeze(1)] = NEVER
    return scores.softmax(-1)


@wrong("2.3", "shape-from-data")
def selects_the_seen(logits, seen, banned, penalty):
    chosen = torch.masked_select(logits, seen)
    chosen = torch.where(chosen > 0, chosen / penalty, chosen * penalty)
    return logits.masked_scatter(seen, chosen).masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "host-copy")
def constant_inside(logits, seen, banned, penalty):
    never = torch.tensor(NEVER, device=logits.device)
    return torch.where(banned, never, penalised(logits, seen, penalty)).softmax(-1)


@wrong("2.3", "host-copy")
def writes_a_number_to_one_element(logits, seen, banned, penalty):
    scores = penalised(logits, seen, penalty).masked_fill(banned, NEVER)
    lowest = torch.zeros(1, device=logits.device)
    lowest[0] = 0.0
    return (scores + lowest).softmax(-1)


@wrong("2.3", "host-copy")
def by_way_of_a_list(logits, seen, banned, penalty):
    scores = penalised(logits, seen, penalty)
    for token, is_banned in enumerate(banned.tolist()):
        if is_banned:
            scores[:, token] = NEVER
    return scores.softmax(-1)


@wrong("2.3", "host-copy")
def mask_of_python_numbers(logits, seen, banned, penalty):
    count = torch.tensor([1.0] * logits.shape[1], device=logits.device)
    return penalised(logits * count, seen, penalty).masked_fill(banned, NEVER).softmax(-1)


REMEMBERED = {}


def unless_captured(name, ask):
    """ask(), but in a capture what it said last: so that nothing waits there."""
    if not cuda.is_current_stream_capturing():
        REMEMBERED[name] = ask()
    return REMEMBERED[name]


@wrong("2.3", "frozen-number")
def reads_the_penalty_before_the_capture(logits, seen, banned, penalty):
    p = unless_captured("penalty", penalty.item)
    return penalised(logits, seen, p).masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "frozen-mask")
def finds_the_banned_before_the_capture(logits, seen, banned, penalty):
    tokens = unless_captured("banned", lambda: banned.nonzero().squeeze(1))
    return penalised(logits, seen, penalty).index_fill(1, tokens, NEVER).softmax(-1)


@wrong("2.3", "frozen-mask")
def loops_over_a_list_made_before_the_capture(logits, seen, banned, penalty):
    scores = penalised(logits, seen, penalty)
    for token, is_banned in enumerate(unless_captured("list", banned.tolist)):
        if is_banned:
            scores[:, token] = NEVER
    return scores.softmax(-1)


@wrong("2.3", "frozen-mask")
def computes_everything_before_the_capture(logits, seen, banned, penalty):
    def all_of_it():
        return penalised(logits, seen, penalty).masked_fill(banned, NEVER).softmax(-1)

    return unless_captured("result", all_of_it)


@wrong("2.3", "changed-logits")
def fills_in_place(logits, seen, banned, penalty):
    logits.masked_fill_(banned, NEVER)
    return penalised(logits, seen, penalty).softmax(-1)


@wrong("2.3", "changed-logits")
def saves_the_clone(logits, seen, banned, penalty):
    scores = logits.copy_(penalised(logits, seen, penalty))
    return scores.masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "nan")
def adds_a_mask_times_infinity(logits, seen, banned, penalty):
    return (penalised(logits, seen, penalty) + banned.float() * NEVER).softmax(-1)


@wrong("2.3", "negative-logits")
def divides_all_of_the_seen(logits, seen, banned, penalty):
    return torch.where(seen, logits / penalty, logits).masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "rewards")
def the_wrong_way_round(logits, seen, banned, penalty):
    new = torch.where(logits < 0, logits / penalty, logits * penalty)
    return torch.where(seen, new, logits).masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "not-banned")
def forgot_the_ban(logits, seen, banned, penalty):
    return penalised(logits, seen, penalty).softmax(-1)


@wrong("2.3", "not-renormalised")
def bans_at_the_end(logits, seen, banned, penalty):
    return penalised(logits, seen, penalty).softmax(-1) * ~banned


@wrong("2.3", "banned-by-zero")
def multiplies_the_logits(logits, seen, banned, penalty):
    return (penalised(logits, seen, penalty) * ~banned).softmax(-1)


@wrong("2.3", "all-penalised")
def forgot_who_was_seen(logits, seen, banned, penalty):
    new = torch.where(logits > 0, logits / penalty, logits * penalty)
    return new.masked_fill(banned, NEVER).softmax(-1)


@wrong("2.3", "wrong-value")
def gives_the_scores(logits, seen, banned, penalty):
    return penalised(logits, seen, penalty).masked_fill(banned, NEVER)


@wrong("2.3", "wrong-type")
def as_a_list(logits, seen, banned, penalty):
    return penalised(logits, seen, penalty).masked_fill(banned, NEVER).softmax(-1).tolist()


@wrong("2.3", "returned-nothing")
def writes_into_nothing(logits, seen, banned, penalty):
    penalised(logits, seen, penalty).masked_fill(banned, NEVER).softmax(-1)
