"""Exercise 2.3: the probabilities after repetition penalty and ban, and what known mistakes make of them."""

import torch

NEVER = float("-inf")


def probabilities(logits, seen, banned, penalty) -> torch.Tensor:
    """logits [batch, vocab], seen [batch, vocab] bool, banned [vocab] bool, penalty 0-dim -> [batch, vocab].

    The penalty is that of https://arxiv.org/abs/1909.05858, section 4.1, in the form that is in use since:
    positive logits are divided by it and negative ones multiplied, so that both become less likely.
    """
    return torch.softmax(_penalised(logits, seen, penalty).masked_fill(banned, NEVER), -1)


def _penalised(logits, seen, penalty):
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def _divided(logits, seen, banned, penalty):
    scores = torch.where(seen, logits / penalty, logits)
    return torch.softmax(scores.masked_fill(banned, NEVER), -1)


def _rewarded(logits, seen, banned, penalty):
    scores = torch.where(seen, torch.where(logits > 0, logits * penalty, logits / penalty), logits)
    return torch.softmax(scores.masked_fill(banned, NEVER), -1)


def _not_banned(logits, seen, banned, penalty):
    return torch.softmax(_penalised(logits, seen, penalty), -1)


def _banned_after_softmax(logits, seen, banned, penalty):
    return _not_banned(logits, seen, banned, penalty).masked_fill(banned, 0)


def _zero_logit(logits, seen, banned, penalty):
    return torch.softmax(_penalised(logits, seen, penalty).masked_fill(banned, 0), -1)


def _all_penalised(logits, seen, banned, penalty):
    return probabilities(logits, torch.ones_like(seen), banned, penalty)


FORMULAS = {
    "negative-logits": _divided,
    "rewards": _rewarded,
    "not-banned": _not_banned,
    "not-renormalised": _banned_after_softmax,
    "banned-by-zero": _zero_logit,
    "all-penalised": _all_penalised,
}
