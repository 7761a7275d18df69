"""The toy device's event and stream: the names and the errors of torch.cuda's."""

from __future__ import annotations


class ToyStream:
    """The device's only stream."""

    def __init__(self, toy):
        self.toy = toy

    def synchronize(self) -> None:
        self.toy.synchronize()

    def query(self) -> bool:
        """True if the device has nothing left to do."""
        self.toy.spend(self.toy.call_us, "query")
        return self.toy.device_us <= self.toy.host_us

    def record_event(self, event: ToyEvent | None = None) -> ToyEvent:
        event = event or self.toy.Event()
        event.record()
        return event


class ToyEvent:
    """A mark in the device's queue; it is reached when all that was launched before it has run."""

    def __init__(self, toy, enable_timing: bool):
        self.toy, self.enable_timing = toy, enable_timing
        self.reached_us: float | None = None

    def record(self, stream: ToyStream | None = None) -> None:
        self.toy.spend(self.toy.call_us, "record")
        self.reached_us = max(self.toy.host_us, self.toy.device_us)

    def query(self) -> bool:
        """True if the device has reached this event (or it was never recorded, as in torch)."""
        self.toy.spend(self.toy.call_us, "query")
        return self._reached()

    def synchronize(self) -> None:
        """Make the host wait until the device reaches this event; returns at once if it was not recorded."""
        if self.reached_us is not None:
            self.toy._wait_for(self.reached_us, "event_synchronize")

    def elapsed_time(self, end_event: ToyEvent) -> float:
        """Milliseconds of device time from this event to ``end_event``. Errors are torch's.

        If the device was idle at the first event, its wait for the launch in between is part of it.
        """
        self.toy.spend(self.toy.call_us, "elapsed_time")
        both = (self, end_event)
        if not all(event.enable_timing for event in both):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if any(event.reached_us is None for event in both):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not all(event._reached() for event in both):
            raise RuntimeError(
                "Both events must be completed before calculating elapsed time. "
                "(CUDA error: device not ready)"
            )
        elapsed_ms = (end_event.reached_us - self.reached_us) * 1e-3
        self.toy.log.elapsed_ms.append(elapsed_ms)
        return elapsed_ms

    def _reached(self) -> bool:
        return self.reached_us is None or self.reached_us <= self.toy.host_us
