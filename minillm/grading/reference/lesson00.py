# ruff: noqa: E402, F811, I001
"""Reference solutions of lesson 00. Generated, do not edit: `python -m minillm build` makes them."""


# --- exercise 0.1 ---
def idle_fraction(busy_us, wall_us):
    """The fraction of a step of wall_us microseconds in which the GPU, busy for busy_us of them, is idle."""
    return 1 - busy_us / wall_us
