"""More answers to 0.1: other ways to write it, and mistakes of the first hour."""

from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import torch

from minillm.grading.corpus import right, wrong


@right("0.1")
def with_fractions(busy_us, wall_us):
    return Fraction(wall_us - busy_us) / Fraction(wall_us)


@right("0.1")
def with_decimals(busy_us, wall_us):
    return 1 - Decimal(busy_us) / Decimal(wall_us)


@right("0.1")
def with_a_tensor_of_float32(busy_us, wall_us):
    return 1 - torch.tensor(float(busy_us)) / wall_us


@right("0.1")
def with_a_gradient(busy_us, wall_us):
    return torch.tensor(1 - busy_us / wall_us, requires_grad=True)


@right("0.1")
def with_numpy_float32(busy_us, wall_us):
    return np.float32(1) - np.float32(busy_us) / np.float32(wall_us)


@right("0.1")
@cache
def remembers_results(busy_us: float = 0, wall_us: float = 1) -> float:
    return max(0.0, min(1.0, (wall_us - busy_us) / wall_us))


@right("0.1")
def any_number_of_arguments(*times):
    busy_us, wall_us = times
    return 1 - busy_us / wall_us


@wrong("0.1", "inverted-ratio")
def arguments_in_the_other_order(wall_us, busy_us):
    return 1 - busy_us / wall_us


@wrong("0.1", "returned-nothing")
def no_return_for_a_busy_gpu(busy_us, wall_us):
    if busy_us < wall_us:
        return 1 - busy_us / wall_us


@wrong("0.1", "wrong-type")
def per_cent_as_text(busy_us, wall_us):
    return f"{1 - busy_us / wall_us:.0%}"


@wrong("0.1", "wrong-type")
def a_tensor_with_one_value(busy_us, wall_us):
    return torch.tensor([1 - busy_us / wall_us])


@wrong("0.1", "wrong-type")
def a_number_beyond_floats(busy_us, wall_us):
    return 10**400


@wrong("0.1", "wrong-type")
def a_list_of_one(busy_us, wall_us):
    return [1 - busy_us / wall_us]
