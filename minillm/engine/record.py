"""What an engine writes down while it works, for its stats."""

from __future__ import annotations

from .clock import Clock
from .outbox import Kind
from .request import Request


class Record:
    """Counts and times since it was made. ``tokens`` are those that came, stop tokens left out.

    ``first`` and ``between``: seconds to the first token of each of them, and from token to token after it,
    as the host saw them.
    """

    def __init__(self):
        self.clock = Clock()
        self.requests = self.tokens = self.decode_tokens = self.decode_steps = 0
        self.first: list[float] = []
        self.between: list[float] = []

    def came(self, count: int, kind: Kind) -> None:
        """So many tokens have come from a prefill, or from a decode step."""
        self.tokens += count
        if kind is not Kind.PREFILL:
            self.decode_tokens += count

    def began(self, request: Request, now: float) -> None:
        """The host has seen the request's first token."""
        if request.first_token is None:
            request.first_token = now

    def ended(self, request: Request, now: float) -> None:
        """The request has ended, and its last token came now; one that was cancelled counts for nothing."""
        request.ended = now
        if request.finish == "cancelled":
            return
        self.requests += 1
        if request.first_token is not None:
            self.first.append(request.first_token - request.arrived)
        if len(request.tokens) > 1:
            self.between.append((now - request.first_token) / (len(request.tokens) - 1))
