"""What an answer returned for n replays: n tensors, read from a list or from one stacked tensor."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from minillm.grading.checks.lesson03.watching import memory, same
from minillm.grading.registry import Wrong


def refuse_lazy(value) -> None:
    """Raise Wrong for a generator, in which nothing has run yet."""
    if isinstance(value, Iterator):
        seen = f"It returns a {type(value).__name__}, which does its work only when somebody goes through it"
        raise Wrong("wrong-type", f"{seen}. Collect the results in a list.")


def tensors_of(value, count: int, shape: torch.Size) -> list[torch.Tensor]:
    """`value` as `count` tensors of `shape`; raises Wrong with a common mistake for anything else."""
    if value is None:
        raise Wrong("returned-nothing")
    wanted = f"{count} tensors of shape {list(shape)}"
    if not isinstance(value, (list, tuple, torch.Tensor)) or (
        isinstance(value, torch.Tensor) and value.dim() == 0
    ):
        raise Wrong("wrong-type", f"It has to be {wanted}; you return a {type(value).__name__}.")
    if len(value) != count:
        raise Wrong("wrong-length", f"There should be {wanted}; you return {len(value)} values.")
    found = list(value.unbind(0)) if isinstance(value, torch.Tensor) else list(value)
    for each in found:
        if not isinstance(each, torch.Tensor):
            raise Wrong("wrong-type", f"There should be {wanted}; one of yours is a {type(each).__name__}.")
        if each.shape != shape:
            raise Wrong("wrong-type", f"There should be {wanted}; one of yours is {list(each.shape)}.")
    return found


def shares_memory(found: list[torch.Tensor], static: torch.Tensor) -> list[int]:
    """The places in `found` of tensors that lie in the memory of `static`, or begin where another does."""
    starts = [each.data_ptr() for each in found]
    return [
        place
        for place, each in enumerate(found)
        if memory(each) == memory(static) or (each.numel() and starts.count(starts[place]) > 1)
    ]


def all_same(found: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(found) == len(right) and all(same(a, b) for a, b in zip(found, right, strict=True))
