"""Exercise 3.6: guards in scenes of their own, each with tensors of its own."""

import torch

from minillm.grading.checks.lesson03.guard_says import raised_by, say
from minillm.grading.registry import Wrong
from minillm.graphs import device


def check_scenes(answer) -> None:
    """Raise Wrong for the first scene in which the guard says something else than it should."""
    for scene in (_one_block, _swapped, _two_guards, _parameter, _other_memory):
        tensors = {name: torch.arange(6, device=device) for name in ("token_ids", "positions")}
        scene(answer, tensors)


def _one_block(answer, _tensors):
    """Both buffers are cut from one block of memory, and so is what replaces one of them."""
    block = torch.zeros(3, 64, dtype=torch.int64, device=device)
    tensors = {"token_ids": block[0], "positions": block[1]}
    _must_name(
        answer(tensors),
        tensors | {"token_ids": block[2]},
        ["token_ids"],
        "ignores-address",
        "token_ids and positions were rows of one tensor, and token_ids became another row of it",
    )


def _swapped(answer, tensors):
    swapped = tensors | {"token_ids": tensors["positions"], "positions": tensors["token_ids"]}
    what = "token_ids and positions were swapped"
    _must_name(answer(tensors), swapped, ["token_ids", "positions"], "ignores-address", what)


def _two_guards(answer, tensors):
    others = {name: tensor.clone() for name, tensor in tensors.items()}
    guards = answer(tensors), answer(others)
    for guard, own in zip(guards, (tensors, others), strict=True):
        if error := raised_by(guard, own):
            raise Wrong("shared-notes", f"There were two guards, of tensors of their own: {say(error)}")


def _parameter(answer, _tensors):
    weight = torch.nn.Parameter(torch.ones(4, 4, device=device))
    guard = answer({"weight": weight})
    if error := raised_by(guard, {"weight": weight.detach()}):
        seen = f"weight was a parameter, and then the same one as state_dict() has it, detached: {say(error)}"
        raise Wrong("compares-identity", seen)


def _other_memory(answer, tensors):
    guard = answer(dict(tensors))
    kept = tensors["positions"].detach()  # its memory stays in use
    tensors["positions"].data = kept.clone()
    _must_name(guard, tensors, ["positions"], "asks-late", "positions.data was replaced by a clone")


def _must_name(guard, current, names, key, what):
    error = raised_by(guard, current)
    missing = [name for name in names if name not in str(error)]
    if error is None or missing:
        said = "check(current) did not raise" if error is None else say(error)
        raise Wrong(key, f"{what}; {said}.")
