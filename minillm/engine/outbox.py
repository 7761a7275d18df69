"""Tokens on their way from the device to the host, without a wait for each step."""

from __future__ import annotations

from collections import deque
from enum import Enum

import torch

from .. import graphs
from .request import Request


class Kind(Enum):
    """What chose the tokens: a prefill; a step in which no request can have reached its last token by count;
    or any other step."""

    PREFILL = "prefill"
    PLAIN = "plain"
    STEP = "step"


class Outbox:
    """A queue of copies. `send` puts one on the stream and returns at once, `receive` waits for the oldest.

    Every copy has a pinned buffer and an event of its own, and gets them again only after it was received:
    a buffer that is filled anew before the host has read it would lose tokens.
    """

    def __init__(self, most_tokens: int, device: torch.device):
        self._most, self._pinned = most_tokens, device.type == "cuda"
        self._free: list[tuple] = []
        self._sent: deque[tuple] = deque()

    def __len__(self) -> int:
        return len(self._sent)

    def send(self, tokens: torch.Tensor, kind: Kind, requests: tuple[Request, ...]) -> None:
        """Copy ``tokens`` [B] int64 to the host; entry i is for request i, the rest for nobody."""
        host, array, event = self._free.pop() if self._free else self._new()
        (host if len(tokens) == self._most else host[: len(tokens)]).copy_(tokens, non_blocking=True)
        event.record()
        self._sent.append((host, array, event, kind, requests))

    def receive(self) -> tuple[Kind, tuple[Request, ...], list[int]]:
        """The oldest copy: its kind, its requests, and a token for each. Waits until it has arrived."""
        host, array, event, kind, requests = self._sent.popleft()
        self.wait(event)
        tokens = array[: len(requests)].tolist()
        self._free.append((host, array, event))
        return kind, requests, tokens

    def wait(self, event) -> None:
        """The only place where the engine waits for the device."""
        event.synchronize()

    def clear(self) -> None:
        """Forget what is underway; the device must be idle."""
        self._sent.clear()
        self._free.clear()

    @torch.inference_mode(False)  # so that it can be filled everywhere
    def _new(self) -> tuple:
        host = torch.empty(self._most, dtype=torch.int64, pin_memory=self._pinned)
        # torch.Event finds the current stream in C++, torch.cuda.Event in Python, which takes longer than
        # all the rest of a record.
        return host, host.numpy(), torch.Event("cuda") if self._pinned else graphs.cuda.Event()
