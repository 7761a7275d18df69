"""Exercises 3.1 to 3.6: what a captured step reads and writes, and how to keep it in step with the world."""

from . import address_guard, collect_logits, feed, load_batch, stop_condition, temperature

__all__ = ["address_guard", "collect_logits", "feed", "load_batch", "stop_condition", "temperature"]
