"""Exercise 2.4: two branches on two streams, forked and joined within a capture."""

import torch

from minillm.grading.checks.lesson02.captured_errors import SYNCHRONISED, refuse_as
from minillm.grading.checks.lesson02.fork_join_order import order_of
from minillm.grading.checks.lesson02.fork_join_program import PARTS, Program
from minillm.grading.registry import Wrong, exercise
from minillm.graphs import device

WORDS = {
    "unjoined": ("capturing stream has unjoined work",),
    "unforked": ("dependency created on uncaptured work in another stream",),
    "default-stream": ("would make the legacy stream depend on a capturing",),
    "synchronised": SYNCHRONISED,
}
CHAIN = "In the captured graph a path leads from one branch to the other."
SEEN = {
    "one-stream": CHAIN,
    "serialised": CHAIN,
    "unforked": "In the captured graph no path leads from the kernel before your call to each branch.",
    "another-stream": "Both ran on streams that are not the one you were given.",
    "joined-late": "In the captured graph no path leads from each branch to combine.",
}


@exercise(
    "2.4",
    answer="fork_join",
    arguments=("left", "right", "combine", "side"),
    title="Fork and join in a capture",
    hints=(
        "Two waits are all it takes: one before the side stream's first kernel, one after its last.",
        "Remember the stream that you were called on: main = cuda.current_stream(). "
        "`side.wait_stream(main)` is the fork; it also draws `side` into the capture.",
        "`with cuda.stream(side):` puts right() on the side stream; left() is called outside of that block.",
        "The join is `main.wait_stream(side)`, after both branches and before combine(a, b).",
    ),
    mistakes={
        "unforked": "The branch was never forked: `side` has to wait for the stream that you were called on, "
        "cuda.current_stream(), before it gets work. That wait draws it into the capture, and orders it "
        "after what was there before.",
        "unjoined": "The branch was never joined: the capture ends on the stream that it began on, and that "
        "one has to wait for every stream that was forked from it.",
        "joined-late": "The join comes too late: combine does not wait for both branches, a race. The main "
        "stream has to wait for the side stream before combine is called.",
        "one-stream": "Everything went to one stream, so the graph is a chain and nothing can overlap.",
        "another-stream": "Neither branch ran on `side`. The caller chose that stream, and libraries "
        "take memory for each new one.",
        "serialised": "One branch waits for the other: there are two streams, but the graph is still a "
        "chain. Fork before the first branch gets work, and join after the second.",
        "default-stream": "The default stream cannot be part of a capture. The stream that you were called "
        "on is cuda.current_stream(): remember it before you switch.",
        "synchronised": "Something in there makes the CPU wait, which a capture refuses: nothing is running "
        "that could be waited for. `wait_stream` and `wait_event` order streams and let the CPU go on.",
        "side-left-current": "The side stream is still the current one when your function returns, so what "
        "the caller does next lands there. Use `with cuda.stream(side):`.",
        "called-once": "left, right and combine have to be called exactly once each: every call is recorded, "
        "and each replay runs all of them.",
        "swapped": "The arguments of combine are swapped: left's result comes first.",
        "dropped-result": "Your function returned something else than what combine returned.",
    },
    captures=True,
)
def check_fork_join(answer, rng):
    # On a stream that is new to the capture a missing fork is refused; on one that is part of it, it races.
    for drawn_in in (False, True):
        _check(answer, rng, size=rng.randint(33, 300), drawn_in=drawn_in)


def _check(answer, rng, size, drawn_in):
    numbers = rng.uniform(1, 3), rng.uniform(2, 9), rng.uniform(3, 7)
    program = _captured(answer, size, numbers, drawn_in)
    inputs = [torch.tensor([rng.uniform(-4, 4) for _ in range(size)], device=device) for _ in range(2)]
    order = order_of(program, lambda slow: _captured(answer, size, numbers, drawn_in, slow), inputs[0])
    if key := _mistake_of(order, program):
        raise Wrong(key, SEEN[key])
    for x in inputs:
        value = program.replay(x)
        if torch.allclose(value, program.expected(x), rtol=1e-4, atol=1e-4):
            continue
        if torch.allclose(value, program.expected_if_swapped(x), rtol=1e-4, atol=1e-4):
            raise Wrong("swapped", "With a - b for combine, the replay gave b - a.")
        raise Wrong("dropped-result", "A replay gave another value than combine's of both branches.")


def _captured(answer, size, numbers, drawn_in, slow=None) -> Program:
    program = Program(size, numbers, drawn_in, slow)
    try:
        program.capture(answer)
    except Exception as error:
        outside = _ran_outside(program)
        refuse_as(error, WORDS if not outside else {"unforked": sum(WORDS.values(), ())}, outside)
    if outside := _ran_outside(program):
        raise Wrong("unforked", outside)
    if program.left_current:
        raise Wrong("side-left-current", "cuda.current_stream() is another than before the call.")
    counts = {part: sum(name == part for name, *_ in program.calls) for part in PARTS}
    if set(counts.values()) != {1}:
        raise Wrong("called-once", f"Calls: {', '.join(f'{name} {n}' for name, n in counts.items())}.")
    if program.returned is None:
        raise Wrong("returned-nothing")
    if not isinstance(program.returned, torch.Tensor) or program.returned.shape != program.x.shape:
        raise Wrong("wrong-type", f"Return combine's tensor, not a {type(program.returned).__name__}.")
    return program


def _ran_outside(program) -> str:
    """Which part ran where nothing was captured, as a sentence; "" if none did."""
    parts = [name for name, _, captured in program.calls if not captured]
    if not parts:
        return ""
    return f"`{parts[0]}` ran on a stream that was not being captured, so the graph does not hold it."


def _mistake_of(order, program) -> str | None:
    streams = program.streams()
    if order.serial:
        return "one-stream" if streams["left"] == streams["right"] else "serialised"
    if not order.forked:
        return "unforked"
    if not order.joined:
        return "joined-late"
    return None if program.side in (streams["left"], streams["right"]) else "another-stream"
