"""Streams and events: order, and nothing else.

Outside a capture the emulator runs every operation at once, so waiting has nothing to do.  Inside
one, a stream is the set of nodes that its next kernel must come after (the recorder's *frontier*),
an event is a copy of such a set, and waiting for an event joins it to the waiting stream.  A stream
that waits for a captured event is drawn into the capture: that is how a fork is written.
"""

import itertools
import types

from . import messages
from .messages import cuda_error


class Stream:
    """A queue of work.  ``device`` and ``priority`` are accepted for torch's sake and do nothing."""

    _numbers = itertools.count()

    def __init__(self, device=None, priority=0):
        self._number = next(Stream._numbers)

    def record_event(self, event=None):
        """Record ``event`` (a new one by default) here, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        event.wait(self)

    def wait_stream(self, stream):
        """Work put on this stream from now on comes after all that is on ``stream`` so far."""
        self.wait_event(stream.record_event())

    def query(self):
        """True: without a clock there is never unfinished work."""
        self._refuse_in_capture("Stream.query()")
        return True

    def synchronize(self):
        self._refuse_in_capture("Stream.synchronize()")

    def _refuse_in_capture(self, what):
        if capturing(self):
            raise now.capture.broken_by(900, f"{what} asks the device about work that is not running")

    def __repr__(self):
        return f"<emulated Stream {self._number}{' (default)' if self is default_stream() else ''}>"


class Event:
    """A mark in a stream's order, as ``torch.cuda.Event``, but without a clock."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        if external or interprocess:
            raise NotImplementedError(
                "the emulator has neither external nor interprocess events: leave external= and "
                "interprocess= out, or run this cell on a GPU"
            )
        self.enable_timing, self.recorded = enable_timing, False
        self.capture, self.nodes = None, frozenset()  # which capture, and what to wait for in it

    def record(self, stream=None):
        stream = current_stream() if stream is None else stream
        self.recorded = True
        inside = capturing(stream)
        self.capture = now.capture.key if inside else None
        self.nodes = now.capture.frontier[stream] if inside else frozenset()

    def wait(self, stream=None):
        """Work put on ``stream`` from now on comes after this event."""
        stream = current_stream() if stream is None else stream
        if not self.recorded:
            return
        if self.capture is None:
            if capturing(stream):
                raise now.capture.broken_by(905, "fork first: this event's stream is not in the capture")
        elif now.capture is not None and self.capture is now.capture.key:
            frontier = now.capture.frontier  # this also draws the stream into the capture
            frontier[stream] = frontier.get(stream, frozenset()) | self.nodes
        else:
            raise cuda_error(907, "the capture in which this event was recorded has ended")

    def query(self):
        self._refuse_in_capture("Event.query()")
        return True

    def synchronize(self):
        self._refuse_in_capture("Event.synchronize()")

    def elapsed_time(self, end_event):
        """Raises, always: see the class."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError(messages.EVENTS_WITHOUT_TIMING)
        if not (self.recorded and end_event.recorded):
            raise ValueError(messages.EVENTS_NOT_RECORDED)
        raise RuntimeError(
            "the emulator has no clock: it runs every operation on the CPU, at once, so a time here would "
            "say nothing about a GPU. Run this cell on a GPU, or look at a recorded timing"
        )

    def _refuse_in_capture(self, what):
        if now.capture is not None:
            raise now.capture.broken_by(900, f"{what} asks the device about work that is not running")
        if self.capture is not None:
            raise cuda_error(907, f"{what}: this event marks a node of a graph, not a moment")


# What the CUDA runtime would know: the current stream, and the capture underway (a Recorder) if any.
_default = Stream()
now = types.SimpleNamespace(stream=_default, capture=None)


def current_stream(device=None):
    """The stream that work goes to now."""
    return now.stream


def default_stream(device=None):
    """The stream that work goes to unless another is chosen."""
    return _default


def set_stream(stream):
    """Make ``stream`` current for good; prefer ``with stream(s):``."""
    if stream is not None:
        now.stream = stream


class StreamContext:
    """``with stream(s):`` makes ``s`` the current stream; ``stream(None)`` changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        self.previous = now.stream
        set_stream(self.stream)

    def __exit__(self, *error):
        now.stream = self.previous


def stream(stream):
    """Context manager: work inside goes to ``stream``."""
    return StreamContext(stream)


def capturing(stream):
    """Is ``stream`` part of the capture underway?"""
    return now.capture is not None and stream in now.capture.frontier


def is_current_stream_capturing():
    """Whether work on the current stream is recorded instead of run."""
    return capturing(now.stream)


def synchronize(device=None):
    """Wait for the device.  Nothing to do, except that a capture does not survive it."""
    if now.capture is not None:
        raise now.capture.broken_by(900, "synchronize() waits for the device, which runs nothing now")
