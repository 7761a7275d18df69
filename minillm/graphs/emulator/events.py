"""Events: a moment in a stream's order that other streams can wait for.

In a capture an event is a copy of its stream's frontier, and to wait for it joins that to the frontier of
the waiting stream.  A stream that waits for a captured event is drawn into the capture: that is how a fork
is written.
"""

from . import messages
from .messages import cuda_error
from .streams import capturing, current_stream, default_stream, in_the_way, now


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
        """Mark the end of the work that is on ``stream``, or on the current one, by now."""
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
        elif not self._is_in_capture():
            raise self._of_another_capture(stream)
        elif stream is default_stream():
            raise now.capture.broken_by(906, "the default stream cannot be part of a capture")
        else:
            frontier = now.capture.frontier  # this also draws the stream into the capture
            frontier[stream] = frontier.get(stream, frozenset()) | self.nodes

    def query(self):
        """True: without a clock there is never unfinished work."""
        self._refuse_in_capture("Event.query()")
        return True

    def synchronize(self):
        """Wait for the work before this event.  Nothing to do, except that a capture may not survive it."""
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

    def _is_in_capture(self):
        return now.capture is not None and self.capture is now.capture.key

    def _of_another_capture(self, stream):
        why = "the capture in which this event was recorded has ended, so it marks a node and no moment"
        return now.capture.broken_by(1, why) if capturing(stream) else cuda_error(1, why)

    def _refuse_in_capture(self, what):
        if not self.recorded:
            return
        if self._is_in_capture():
            raise now.capture.broken_by(907, f"{what}: this event marks a node of the graph, not a moment")
        if self.capture is not None:
            raise self._of_another_capture(now.stream)
        if in_the_way():
            raise now.capture.broken_by(900, f"{what} asks the device about work that is not running")

    def __getattr__(self, name):
        raise AttributeError(f"the emulator's Event has no {name!r}: it has no driver; run this on a GPU")
