"""Exercise 3.6: a guard that names the buffer that moved."""

import torch

from minillm.grading.checks.lesson03.guard_cases import CHANGES, UNCHANGED, buffers, in_freed_memory
from minillm.grading.checks.lesson03.guard_says import Told, error_of, raised_by, say
from minillm.grading.checks.lesson03.guard_scenes import check_scenes
from minillm.grading.checks.lesson03.host_waits import HostWaits
from minillm.grading.device_memory import as_on_a_gpu
from minillm.grading.registry import Wrong, exercise


@exercise(
    "3.6",
    answer="make_guard",
    arguments=("tensors",),
    title="A guard that names the buffer that moved",
    own=("minillm.engine.addresses.Addresses", "minillm.engine.addresses.place"),
    hints=(
        "What of a tensor is written into a graph? Not its contents, and not the Python object.",
        "The address, tensor.data_ptr(); and shape, strides and dtype, for which the kernels were launched.",
        "Note these four for each name when make_guard is called, in a dict of your own: the caller may "
        "replace entries of his. Keep the tensors too, so that their memory is not handed out to others.",
        "In check, go through all names that you noted and collect those that are not in current or whose "
        "four differ. If there are any, raise one RuntimeError with all of them in its text.",
    ),
    mistakes={
        "compares-values": "It compares contents. A replaced tensor with equal contents has moved all the "
        "same, and new contents at the old address are what a static buffer is for.",
        "compares-identity": "It compares Python objects (id or `is`). Another object at the same place, "
        "such as a view of the whole, is the same memory to the graph.",
        "not-held": "Nothing keeps the tensors alive, so after the caller drops one its address can go to "
        "the replacement: the guard sees the same number, and between the two anything may have been written "
        "there. Keep the tensors in the guard.",
        "same-dict": "What it compares with is the caller's own dict, so a replaced entry is compared with "
        "itself. Note the addresses when make_guard is called.",
        "names-first-only": "Only one of several is named; collect them all before you raise.",
        "names-nothing": "The error does not name the tensors that changed; whoever reads it has hundreds.",
        "names-others": "The error names a tensor that is where it was.",
        "ignores-missing": "A tensor that is no longer there went unnoticed.",
        "wrong-error": "What is wrong has to be raised as RuntimeError.",
        "does-not-raise": "It tells what is wrong by what it returns or prints; raise RuntimeError, which "
        "nobody can overlook.",
        "waits": "It makes the host wait for the device. Addresses, shapes and dtypes are known on the host.",
        "ignores-address": "A tensor that was replaced by another of its shape went unnoticed.",
        "ignores-shape": "Another shape at the same address went unnoticed: the kernels were launched for "
        "the old one.",
        "ignores-strides": "Other strides at the same address and with the same shape went unnoticed.",
        "ignores-dtype": "Another dtype at the same address went unnoticed.",
        "remembers-the-new": "A check changes what it compares with: it takes the new place for the right "
        "one. The graph still uses the old one, so every check must judge by how things were at capture.",
        "asks-late": "It asks the tensors that it keeps for their address at each check. A tensor that was "
        "given other memory (`.data =`) answers with the new one: note the four when make_guard is called.",
        "shared-notes": "What one guard notes, another overwrites: there is a graph, and a guard, for each "
        "batch size. Keep the notes in the function, not in a global or in a default argument.",
        "relies-on-order": "It goes by the order of the tensors in the dict. Go by their names.",
        "false-alarm": "It raises though every tensor is where it was.",
        "refuses-extra": "It raises because of a tensor that it was not given at first; the graph does not "
        "use that.",
    },
)
def check_make_guard(answer, rng):
    with as_on_a_gpu(), torch.no_grad():
        _check(answer, rng)


def _check(answer, rng):
    tensors = buffers(rng)
    waits = []
    with HostWaits(lambda: waits.append(1)):
        guard = answer(tensors)
        if guard is None:
            raise Wrong("returned-nothing", "make_guard has to return the function check(current).")
        if not callable(guard):
            kind = type(guard).__name__
            raise Wrong("wrong-type", f"It has to return the function check(current); yours is a {kind}.")
        for key, change in UNCHANGED.items():
            current, what = change(dict(tensors))
            if error := raised_by(guard, current):
                raise Wrong(key, f"{what}: {say(error)}")
        if error := raised_by(guard, dict(tensors)):
            raise Wrong("remembers-the-new", f"After a check with one tensor more, {say(error)}")
        usual = guard(dict(tensors))  # some return True
        for key, change in CHANGES.items():
            _must_raise(guard, usual, tensors, key, *change(dict(tensors), rng))
        if raised_by(guard, dict(tensors)):
            raise Wrong("remembers-the-new", "All tensors are at their first place again, and it raises.")
    if waits:
        raise Wrong("waits", f"It did {len(waits)} times.")
    _check_own_copy(guard, tensors)
    check_scenes(answer)
    _check_held(answer, buffers(rng))


def _must_raise(guard, usual, tensors, key, current, names, what):
    error = error_of(guard, current, usual)
    if error is None:
        raise Wrong(key, f"{what}, and check(current) did not raise.")
    if isinstance(error, Told):
        raise Wrong("does-not-raise", f"{what}: {say(error)}")
    if isinstance(error, KeyError) and key == "ignores-missing":
        raise Wrong(key, f"{what}: {say(error)}, and not a RuntimeError that names what is gone.")
    if not isinstance(error, RuntimeError):
        raise Wrong("wrong-error", f"{what}: {say(error)}.")
    named = [name for name in tensors if name in str(error)]
    missing = [name for name in names if name not in named]
    if missing:
        key = "names-first-only" if len(missing) < len(names) else "names-nothing"
        raise Wrong(key, f"{what}. Not named: {', '.join(missing)}. {say(error)}")
    if others := [name for name in named if name not in names]:
        raise Wrong("names-others", f"{what}. Named as well: {', '.join(others)}. {say(error)}")
    if raised_by(guard, current) is None:
        raise Wrong("remembers-the-new", f"{what}: the first check raised, the second did not.")


def _check_own_copy(guard, tensors):
    """The caller replaces an entry of the dict that he gave."""
    tensors["positions"] = tensors["positions"].clone()
    if raised_by(guard, tensors) is None:
        raise Wrong("same-dict", "positions was replaced in the dict that make_guard had been given.")


def _check_held(answer, tensors):
    guard, name = answer(tensors), "block_tables"
    current = dict(tensors)
    old = tensors.pop(name)
    shape, dtype, address = old.shape, old.dtype, old.data_ptr()
    del current[name], old
    new = in_freed_memory(shape, dtype, address)
    if new is not None:
        current[name] = new
        seen = "It raised." if raised_by(guard, current) else "It did not raise."
        raise Wrong("not-held", f"A new {name} was given the memory of the old one, at {address:#x}. {seen}")
