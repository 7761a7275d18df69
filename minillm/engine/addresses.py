"""Where tensors were when a graph was captured, and whether they are there still."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch


def place(tensor: torch.Tensor) -> tuple:
    """What a graph has baked in of a tensor: address, shape, strides, dtype."""
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype


class Addresses:
    """Remembers where the tensors of ``current()`` are, by name; `check` calls it again and compares.

    It must look the tensors up anew (``lambda: dict(model.named_parameters())``), since a replaced tensor is
    found only where it was replaced.
    """

    def __init__(self, current: Callable[[], Mapping[str, torch.Tensor]]):
        self._current = current
        # The tensors are kept as well: freed memory could be handed out to the one that replaces it.
        self._kept = {name: (tensor, place(tensor)) for name, tensor in current().items()}

    def moved(self) -> list[str]:
        """What is wrong, a sentence a tensor; empty when everything is where it was."""
        now, wrong = self._current(), []
        for name, (_, before) in self._kept.items():
            if name not in now:
                wrong.append(f"{name} is gone")
            elif place(now[name]) != before:
                address, shape, *_ = place(now[name])
                wrong.append(
                    f"{name} was {list(before[1])} at {before[0]:#x} and is {list(shape)} at {address:#x}"
                )
        return wrong

    def check(self) -> None:
        """RuntimeError that names every tensor that moved."""
        if wrong := self.moved():
            raise RuntimeError(
                f"{'; '.join(wrong)}: the graph still uses the old memory. Write into the old tensor with "
                "copy_() instead of replacing it, or capture again"
            )
