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


def _over_batch(logits, seen, banned, penalty):
    return torch.softmax(_penalised(logits, seen, penalty).masked_fill(banned, NEVER), 0)


def _not_penalised(logits, seen, banned, penalty):
    return probabilities(logits, torch.zeros_like(seen), banned, penalty)


def _inverted(seen_too: bool, banned_too: bool):
    return lambda logits, seen, banned, penalty: probabilities(
        logits, ~seen if seen_too else seen, ~banned if banned_too else banned, penalty
    )


def _penalised_late(again: bool):
    """Probabilities that are divided by the penalty; `again`: and by their sum."""

    def formula(logits, seen, banned, penalty):
        found = _not_penalised(logits, seen, banned, penalty)
        found = torch.where(seen, found / penalty, found)
        return found / found.sum(-1, keepdim=True) if again else found

    return formula


def _all(*formulas):
    return lambda *case: [formula(*case) for formula in formulas]


FORMULAS = {  # mistake -> what those who make it may return
    "negative-logits": _all(_divided),
    "rewards": _all(_rewarded),
    "not-banned": _all(_not_banned),
    "not-renormalised": _all(_banned_after_softmax),
    "banned-by-zero": _all(_zero_logit),
    "all-penalised": _all(_all_penalised),
    "not-penalised": _all(_not_penalised),
    "inverted-mask": _all(_inverted(True, False), _inverted(False, True), _inverted(True, True)),
    "penalised-too-late": _all(_penalised_late(again=False), _penalised_late(again=True)),
    "softmax-over-batch": _all(_over_batch),
}
