"""`measure` against a CUDA device whose clock the test turns: every expected number is worked out by hand."""

import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minillm.lab import queue_ahead, timing
from minillm.lab.timing import Stat, Timing, measure


class FakeCuda:
    """One stream with its own clock in µs; a launch past ``depth`` unfinished kernels makes the host wait."""

    def __init__(self, depth=1000):
        self.now, self.ends, self.depth = 0.0, [0.0], depth
        device = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = max(device.now, device.ends[-1])

            def query(self):
                return self.at <= device.now

            def synchronize(self):
                device.now = max(device.now, self.at)

            def elapsed_time(self, other):
                return (other.at - self.at) / 1e3

        self.Event = Event

    def launch(self, launch_us, kernel_us):
        self.now += launch_us
        if len(self.ends) > self.depth:
            self.now = max(self.now, self.ends[-self.depth])
        self.ends.append(max(self.now, self.ends[-1]) + kernel_us)

    def synchronize(self):
        self.now = max(self.now, self.ends[-1])

    def _sleep(self, cycles):
        self.launch(0.0, cycles / 1500)  # a clock of 1.5 GHz

    def get_device_name(self):
        return "Fake GPU"


@pytest.fixture
def gpu(monkeypatch):
    cuda = FakeCuda()
    clock = types.SimpleNamespace(perf_counter_ns=lambda: round(cuda.now * 1e3))
    for module in (timing, queue_ahead):
        monkeypatch.setattr(module, "torch", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(timing, "on_gpu", lambda: True)
    return cuda


def work(gpu, kernels, launch_us, kernel_us):
    return lambda: [gpu.launch(launch_us, kernel_us) for _ in range(kernels)]


def test_launch_bound_span_holds_the_gaps(gpu):
    result = measure(work(gpu, 10, 5.0, 2.0))
    assert result.submit_us.median == pytest.approx(50)
    assert result.gpu_us.median == pytest.approx(52)  # the last kernel ends 2 µs after the last launch
    assert result.wall_us.median == pytest.approx(52)
    assert result.device == "Fake GPU"


def test_gpu_bound(gpu):
    result = measure(work(gpu, 10, 1.0, 7.0))
    assert result.submit_us.median == pytest.approx(10)
    assert result.wall_us.median == pytest.approx(71)


def test_queue_ahead_takes_the_gaps_out_of_the_gpu_time_only(gpu):
    result = measure(work(gpu, 10, 5.0, 2.0), queue_ahead=True)
    assert result.gpu_us.median == pytest.approx(20)
    assert result.submit_us.median == pytest.approx(50)
    assert result.wall_us.median == pytest.approx(52)
    assert result.gpu_us.n == 20


def test_queue_ahead_waits_longer_when_a_call_is_slower_than_in_warm_up(gpu):
    calls = iter(range(10**6))

    def uneven():  # 23 calls pass before the first one that is timed behind a wait
        work(gpu, 10, 500.0 if next(calls) in (23, 24) else 5.0, 2.0)()

    assert measure(uneven, queue_ahead=True).gpu_us.median == pytest.approx(20)


@pytest.mark.parametrize("kernels", [1500])
def test_queue_ahead_refuses_more_launches_than_the_queue_holds(gpu, kernels):
    with pytest.raises(RuntimeError, match="about 1,000"):
        measure(work(gpu, kernels, 1.0, 3.0), queue_ahead=True)


def test_queue_ahead_refuses_work_that_waits_for_the_device(gpu):
    def synchronising():
        gpu.launch(5.0, 2.0)
        gpu.synchronize()

    with pytest.raises(RuntimeError, match="wait for the device"):
        measure(synchronising, queue_ahead=True)


def test_warm_up_is_not_in_the_samples(gpu):
    slow = iter([1000.0, 1000.0])
    result = measure(lambda: gpu.launch(next(slow, 4.0), 1.0), warmup=2, repeats=5)
    assert (result.submit_us.median, result.submit_us.iqr, result.submit_us.n) == (4.0, 0.0, 5)
    assert result.warmup == 2


def test_on_a_cpu_there_is_no_gpu_time(monkeypatch):
    clock = types.SimpleNamespace(now=0)
    monkeypatch.setattr(timing, "time", types.SimpleNamespace(perf_counter_ns=lambda: clock.now))
    monkeypatch.setattr(timing, "on_gpu", lambda: False)
    lasting = iter([9, 9, 9, 10, 30, 20])

    def call():
        clock.now += next(lasting) * 1000

    result = measure(call, warmup=3, repeats=3, queue_ahead=True)
    assert result.gpu_us is None and result.device == "cpu"
    assert result.submit_us == result.wall_us == Stat(20.0, 10.0, 3)
    assert "GPU not timed" in str(result) and "cpu" in str(result)


def test_text_states_everything():
    one = Timing(Stat(12.34, 0.5, 20), Stat(2.0, 0.1, 20), Stat(5591.0, 12.0, 20), 3, "NVIDIA H200")
    for part in (
        "submit 12.3 µs (IQR 0.5)",
        "GPU 2 µs",
        "wall 5,591 µs",
        "median of 20",
        "3 warm-up",
        "H200",
    ):
        assert part in str(one)


def test_a_cpu_timing_is_never_a_speed_up():
    def timed(wall, device):
        return Timing(Stat(1, 0, 5), None, Stat(wall, 0, 5), 3, device)

    assert timed(10, "H200").speedup_over(timed(50, "H200")) == 5
    for pair in (("cpu", "cpu"), ("cpu", "H200"), ("H200", "cpu"), ("H200", "T4")):
        with pytest.raises(ValueError, match="GPU|device"):
            timed(10, pair[0]).speedup_over(timed(50, pair[1]))


@pytest.mark.parametrize("wrong", [{"repeats": 0}, {"warmup": -1}])
def test_wrong_counts(wrong):
    with pytest.raises(ValueError, match="expected at least"):
        measure(lambda: None, **wrong)


def test_a_result_instead_of_a_function():
    with pytest.raises(TypeError, match=r"pass fn, not fn\(\)"):
        measure(3.0)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_stat_agrees_with_numpy(samples):
    stat = Stat.of(samples)
    low, middle, high = np.percentile(samples, [25, 50, 75])
    assert stat.n == len(samples)
    assert stat.median == pytest.approx(middle) and stat.iqr == pytest.approx(high - low, abs=1e-6)


def test_stat_of_nothing():
    with pytest.raises(ValueError, match="no samples"):
        Stat.of([])
