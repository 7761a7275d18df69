"""Answers to 0.1."""

import math
import sys

from minillm import grading
from minillm.grading.checks import lesson00
from minillm.grading.corpus import right, wrong


@right("0.1")
def idle_time_over_wall(busy_us, wall_us):
    return (wall_us - busy_us) / wall_us


@wrong("0.1", "busy-fraction")
def busy_over_wall(busy_us, wall_us):
    return busy_us / wall_us


@wrong("0.1", "percentage")
def per_cent(busy_us, wall_us):
    return 100.0 * (wall_us - busy_us) / wall_us


@wrong("0.1", "percentage")
def per_cent_busy(busy_us, wall_us):
    return busy_us * 100 / wall_us


@wrong("0.1", "inverted-ratio")
def one_minus_wall_over_busy(busy_us, wall_us):
    return 1 - wall_us / busy_us


@wrong("0.1", "inverted-ratio")
def idle_over_busy(busy_us, wall_us):
    return (wall_us - busy_us) / busy_us


@wrong("0.1", "rounded")
def floor_division(busy_us, wall_us):
    return (wall_us - busy_us) // wall_us


@wrong("0.1", "rounded")
def two_digits(busy_us, wall_us):
    return round((wall_us - busy_us) / wall_us, 2)


@wrong("0.1", "rounded")
def whole_number(busy_us, wall_us):
    return int(1 - busy_us / wall_us)


@wrong("0.1", "rounded")
def rounded_up(busy_us, wall_us):
    return math.ceil((wall_us - busy_us) / wall_us)


@wrong("0.1", "not-a-fraction")
def only_subtracted(busy_us, wall_us):
    return wall_us - busy_us


@wrong("0.1", "negative")
def the_other_way_round(busy_us, wall_us):
    return (busy_us - wall_us) / wall_us


@wrong("0.1", "returned-nothing")
def prints_instead(busy_us, wall_us):
    1 - busy_us / wall_us


@wrong("0.1", "wrong-type")
def as_text(busy_us, wall_us):
    return f"{1 - busy_us / wall_us:.0%}"


@wrong("0.1", "wrong-value")
def constant(busy_us, wall_us):
    return 0.7


@wrong("0.1", "wrong-signature")
def one_argument(times):
    return 1 - times[0] / times[1]


wrong("0.1", "not-a-function")(0.7)


@wrong("0.1", "missing-brackets")
def divides_before_it_subtracts(busy_us, wall_us):
    return wall_us - busy_us / wall_us


@wrong("0.1", "inverted-ratio")
def busy_over_idle(busy_us, wall_us):
    return busy_us / (wall_us - busy_us)


@wrong("0.1", "wrong-type")
def as_bytes(busy_us, wall_us):
    return str(1 - busy_us / wall_us).encode()


@wrong("0.1", "wrong-type")
async def needs_no_async(busy_us, wall_us):
    return 1 - busy_us / wall_us


@wrong("0.1", "reexport")
def asks_the_graders_oracle(busy_us, wall_us):
    return lesson00.idle(busy_us, wall_us)


@wrong("0.1", "reexport")
def executes_what_is_revealed(busy_us, wall_us):
    names = {}
    exec(str(grading.reveal("0.1")), names)
    return names["idle_fraction"](busy_us, wall_us)


@wrong("0.1", "unwatched")
def profiles_itself(busy_us, wall_us):
    sys.setprofile(None)
    return 1 - busy_us / wall_us
