"""Streams: order, and nothing else; and which of them is current.

Outside a capture the emulator runs every operation at once, so waiting has nothing to do.  Inside
one, a stream is the set of nodes that its next kernel must come after: the recorder's *frontier*.
"""

import itertools
import threading


class Stream:
    """A queue of work; ``with s:`` makes it the current one.  ``device`` and ``priority`` change nothing."""

    _numbers = itertools.count()

    def __init__(self, device=None, priority=0):
        self._number, self.priority, self._contexts = next(Stream._numbers), priority, []

    def __enter__(self):
        self._contexts.append(StreamContext(self))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *error):
        self._contexts.pop().__exit__(*error)

    def __getattr__(self, name):
        raise AttributeError(f"the emulator's Stream has no {name!r}: it has no driver; run this on a GPU")

    def record_event(self, event=None):
        """Record ``event`` (a new one by default) here, and return it."""
        from .events import Event

        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        """Work put on this stream from now on comes after ``event``."""
        event.wait(self)

    def wait_stream(self, stream):
        """Work put on this stream from now on comes after all that is on ``stream`` so far."""
        self.wait_event(stream.record_event())

    def query(self):
        """True: without a clock there is never unfinished work."""
        self._refuse_in_capture("Stream.query()")
        return True

    def synchronize(self):
        """Wait for this stream's work.  Nothing to do, except that a capture may not survive it."""
        self._refuse_in_capture("Stream.synchronize()")

    def _refuse_in_capture(self, what):
        if capturing(self) or in_the_way():
            raise now.capture.broken_by(900, f"{what} asks the device about work that is not running")

    def __repr__(self):
        return f"<emulated Stream {self._number}{' (default)' if self is default_stream() else ''}>"


_default = Stream()


class Now:
    """What the CUDA runtime would know: the current stream, of each thread its own, the capture underway
    (a Recorder) if any, and the heap in use."""

    capture = heap = None
    _thread = threading.local()

    @property
    def stream(self):
        return getattr(self._thread, "stream", _default)

    @stream.setter
    def stream(self, stream):
        self._thread.stream = stream


now = Now()


def in_the_way():
    """Is a capture underway that a wait in this thread breaks, whatever it waits for?"""
    if now.capture is None or now.capture.mode == "relaxed":
        return False
    return now.capture.mode == "global" or now.capture.thread == threading.get_ident()


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
    if now.capture is not None and (in_the_way() or capturing(now.stream)):
        raise now.capture.broken_by(900, "synchronize() waits for the device, which runs nothing now")
