"""A function on the toy device that is as awkward to time as a real kernel."""

from __future__ import annotations


class ToyKernel:
    """A function to be timed: each call launches ``launches`` kernels on ``toy`` and returns at once.

    A launch costs the host ``launch_us``. In the first ``slow_calls`` calls the first launch costs
    ``first_call_us`` instead (a GPU loads a kernel's code at its first launch, and the host waits for that;
    if left out, 40 times launch and kernel together). A kernel runs for ``kernel_us``, evenly spread over
    +-``jitter`` of it; one call in each ``outlier_every`` takes ``outlier_factor`` times as long (another
    process, a clock that changes). The median of many calls is therefore ``kernel_us * launches`` and the
    mean is not. ``calls`` counts the calls. Raises ValueError for a jitter outside 0 to 1.
    """

    def __init__(
        self,
        toy,
        kernel_us: float,
        launch_us: float = 5.0,
        first_call_us: float | None = None,
        slow_calls: int = 1,
        jitter: float = 0.02,
        outlier_every: int = 10,
        outlier_factor: float = 8.0,
        launches: int = 1,
    ):
        if not 0 <= jitter < 1:
            raise ValueError(f"jitter is {jitter}; it is a fraction of kernel_us, from 0 up to but not 1")
        self.toy, self.kernel_us, self.launch_us = toy, kernel_us, launch_us
        self.first_call_us = 40 * (launch_us + kernel_us) if first_call_us is None else first_call_us
        self.slow_calls, self.jitter, self.launches = slow_calls, jitter, launches
        self.outlier_every, self.outlier_factor = outlier_every, outlier_factor
        self.calls = 0

    def __call__(self) -> None:
        stretch = self.outlier_factor if self._is_outlier() else 1.0
        for i in range(self.launches):
            noise = self.toy.random.uniform(-self.jitter, self.jitter)
            slow = i == 0 and self.calls < self.slow_calls
            self.toy.launch(
                self.kernel_us * (1 + noise) * stretch, self.first_call_us if slow else self.launch_us
            )
        self.calls += 1

    def _is_outlier(self) -> bool:
        """One call in each block of ``outlier_every``, at a random place: no long row of samples has none."""
        if not self.outlier_every:
            return False
        place = self.calls % self.outlier_every
        if place == 0:
            self._outlier = self.toy.random.randrange(self.outlier_every)
        return place == self._outlier
