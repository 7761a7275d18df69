"""Exercises 1.1 to 1.5: measuring, and understanding, a launch-bound decode step."""

from . import bandwidth_floor, diagnose, finish_times, speedup_bound, time_gpu

__all__ = ["bandwidth_floor", "diagnose", "finish_times", "speedup_bound", "time_gpu"]
