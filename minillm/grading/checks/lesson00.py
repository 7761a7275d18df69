"""Exercise 0.1: the warm-up, so that everybody has met the grader before it matters."""

import math

from minillm.grading.compare import compare
from minillm.grading.registry import exercise


def idle(busy_us, wall_us):
    return 1 - busy_us / wall_us


FORMULAS = {
    "busy-fraction": lambda busy, wall: busy / wall,
    "percentage": [lambda busy, wall: 100 * (1 - busy / wall), lambda busy, wall: 100 * busy / wall],
    "missing-brackets": lambda busy, wall: wall - busy / wall,
    "inverted-ratio": [
        lambda busy, wall: busy / (wall - busy),
        lambda busy, wall: wall / busy,
        lambda busy, wall: 1 - wall / busy,
        lambda busy, wall: wall / busy - 1,
    ],
    "not-a-fraction": [lambda busy, wall: wall - busy, lambda busy, wall: busy - wall],
    "negative": lambda busy, wall: busy / wall - 1,
    "rounded": [
        *(lambda busy, wall, digits=digits: round(1 - busy / wall, digits) for digits in range(4)),
        lambda busy, wall: (wall - busy) // wall,
        lambda busy, wall: 1 - busy // wall,
        lambda busy, wall: math.ceil(1 - busy / wall),
    ],
}


@exercise(
    "0.1",
    answer="idle_fraction",
    arguments=("busy_us", "wall_us"),
    title="The idle fraction of a step",
    hints=(
        "Of a step of 100 µs the GPU works for 30. How many microseconds does it do nothing?",
        "A fraction is that idle time divided by something. By which of the two times?",
        "The idle time is wall_us - busy_us. Divide it by wall_us.",
    ),
    mistakes={
        "busy-fraction": "This is the fraction in which the GPU works; asked is the rest of the step.",
        "percentage": "This is a percentage; a fraction lies between 0 and 1.",
        "missing-brackets": "Python divides before it subtracts: the difference needs brackets.",
        "inverted-ratio": "Something else stands below the line; the whole step, wall_us, belongs there.",
        "not-a-fraction": "This is a time in microseconds; divide it by the length of the step.",
        "negative": "The sign is wrong: idle time is what is left of the wall time, so it is not below 0.",
        "rounded": "The result was rounded (round, int or //), so small differences are lost.",
    },
)
def check_idle_fraction(answer, rng):
    # Distinct odd numbers come first: they tell the formulas apart. The limits come last.
    cases = []
    for _ in range(6):
        wall = rng.uniform(50, 5000)
        cases.append((wall * rng.uniform(0.05, 0.95), wall))
    cases += [(313, 1021), (1021, 1021), (0, 77)]
    compare(answer, cases, idle, FORMULAS, ("busy_us", "wall_us"))
