"""What is known about an answer to 3.4: are its probabilities right, and if not, which mistake is it?"""

import math

import torch

from minillm.grading.registry import Wrong


def oracle(logits, temperature, dim=-1):
    """softmax(logits / temperature); NaN where the temperature is 0, as in floating point."""
    return (logits / temperature if temperature else logits * math.nan).softmax(dim)


def judge(watch, contents, temperatures, found) -> None:
    """Raise the mistake that explains `found`, the probabilities of each run in order."""
    start = 1 if len(found) > 1 else 0

    def explained(temperature, first=0, logits=None, **keywords):
        rights = [
            oracle(contents[i] if logits is None else logits, temperature(i), **keywords)
            for i in range(len(found))
        ]
        return all(map(close, found[first:], rights[first:]))

    if watch.recaptured:
        raise Wrong("recaptured", f"{watch.recaptured} of {len(found)} calls of run captured something.")
    if watch.eager:
        raise Wrong("eager", f"In run your code calls {watch.eager} on the logits.")
    if watch.overwrites:
        raise Wrong("changed-logits", f"In run your code calls {watch.overwrites} on them.")
    if explained(lambda i: temperatures[i]):
        return
    seen = _seen(contents, temperatures, found)
    if all(each.eq(-1).all() for each in found[start:]):
        raise Wrong("not-replayed", "It still holds what the grader wrote there after the call before.")
    if _kept(contents, temperatures, found):
        raise Wrong("kept-result", seen)
    for key, right in (
        ("multiplied", explained(lambda i: 1 / temperatures[i])),
        ("one-late", explained(lambda i: temperatures[i - 1], first=start)),
        ("integer-temperature", explained(lambda i: int(temperatures[i]))),
        ("rounded-temperature", explained(lambda i: rounded(temperatures[i], torch.bfloat16))),
        ("rounded-temperature", explained(lambda i: rounded(temperatures[i], torch.float16))),
        ("other-logits", explained(lambda i: temperatures[i], logits=contents[0])),
        ("wrong-dimension", explained(lambda i: temperatures[i], dim=0)),
        ("divided-after-softmax", all(map(close, found, map(divided_after, contents, temperatures)))),
    ):
        if right:
            raise Wrong(key, seen)
    if not watch.reads_logits:
        raise Wrong("other-logits", seen)
    raise Wrong(watch.cause([scale(*each) for each in zip(contents, found, strict=True)]), seen)


def rounded(number, dtype) -> float:
    return torch.tensor(number, dtype=dtype).item()


def divided_after(logits, temperature):
    return logits.softmax(-1) / temperature


def _kept(contents, temperatures, found) -> bool:
    """Whether only what repeats an earlier temperature is wrong: it is that result, or was not computed."""
    for i, (logits, temperature, result) in enumerate(zip(contents, temperatures, found, strict=True)):
        if close(result, oracle(logits, temperature)):
            continue
        before = [found[k] for k in range(i) if temperatures[k] == temperature]
        if not before or not (result.eq(-1).all() or any(close(result, each) for each in before)):
            return False
    return True


def close(found, right) -> bool:
    return torch.allclose(found.double(), right.double(), rtol=1e-4, atol=1e-6, equal_nan=True)


def scale(logits, probabilities) -> float | None:
    """What the logits were multiplied by before the softmax: 1 / temperature. None if nothing fits."""
    x = logits.double() - logits.double().mean(-1, keepdim=True)
    log = probabilities.double().clamp_min(1e-30).log()
    factor = ((log - log.mean(-1, keepdim=True)) * x).sum() / (x * x).sum()
    return factor.item() if close(probabilities, (x * factor).softmax(-1)) else None


def _seen(contents, temperatures, found) -> str:
    factors = [scale(*each) for each in zip(contents, found, strict=True)]
    were = ", ".join("?" if not factor else f"{1 / factor:.3g}" for factor in factors)
    asked = ", ".join(f"{each:.3g}" for each in temperatures)
    if not all(close(each.sum(-1), each.new_ones(())) for each in found):
        return f"Asked for the temperatures {asked}. Rows add up to {found[0].sum(-1)[0]:.3g} and not to 1."
    if not any(factors):
        return f"Asked for the temperatures {asked}, the results fit no temperature at all."
    return f"Asked for the temperatures {asked}, the results are those of {were}."
