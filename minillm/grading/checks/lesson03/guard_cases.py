"""What happens to static buffers in exercise 3.6: what a guard must let pass, and what it must find."""

import torch

from minillm.graphs import device

SQUARE = "block_tables"  # [n, n], so that its transpose has the same shape


def buffers(rng) -> dict[str, torch.Tensor]:
    """Five distinct device tensors by name, with random contents."""
    batch, side = rng.randrange(5, 9), rng.randrange(60, 90)

    def ints(*shape, dtype=torch.int64):
        count = torch.Size(shape).numel()
        values = torch.tensor([rng.randrange(1000) for _ in range(count)], dtype=dtype)
        return values.reshape(shape).to(device)

    return {
        "token_ids": ints(batch),
        "positions": ints(batch),
        "slot_mapping": ints(batch),
        SQUARE: ints(side, side, dtype=torch.int32),
        "context_lens": ints(batch, dtype=torch.int32),
    }


def in_freed_memory(shape, dtype, address, tries=128) -> torch.Tensor | None:
    """A new tensor in the memory of an old one of its size, at `address`; None if that memory is in use.

    The new one begins where the old one did, or beside it where the freed block was joined with others.
    """
    missed = []
    for _ in range(tries):
        new = torch.zeros(shape, dtype=dtype, device=device)
        if abs(new.data_ptr() - address) < new.nbytes:
            return new
        missed.append(new)
    return None


def _same(current):
    return current, "Nothing had changed"


def _new_contents(current):
    for tensor in current.values():
        tensor.add_(1)
    return current, "Only contents had changed"


def _other_objects(current):
    views = {name: tensor.view(tensor.shape) for name, tensor in reversed(current.items())}
    return views, "Each tensor was a view of the whole old one"


def _other_order(current):
    return dict(reversed(current.items())), "The same tensors came in another order"


def _one_more(current):
    more = {"temperature": torch.ones(1, device=device)}
    return more | current, "There was one tensor more, temperature"


# The mistake of raising -> a change that means nothing to a graph.
UNCHANGED = {
    "false-alarm": _same,
    "compares-values": _new_contents,
    "relies-on-order": _other_order,
    "compares-identity": _other_objects,
    "refuses-extra": _one_more,
}


def _replaced(current, rng):
    name = rng.choice(["token_ids", "slot_mapping"])
    # The contents differ, so that only a guard that looks at no address and no value lets it pass.
    return current | {name: current[name] + 1}, [name], f"{name} was replaced by another tensor"


def _equal(current, rng):
    name = rng.choice(["positions", "context_lens"])
    return current | {name: current[name].clone()}, [name], f"{name} was replaced by its clone"


def _gone(current, rng):
    name = rng.choice(["token_ids", "positions"])
    return {other: t for other, t in current.items() if other != name}, [name], f"{name} was gone"


def _shorter(current, rng):
    name = rng.choice(["token_ids", "slot_mapping"])
    return current | {name: current[name][:3]}, [name], f"{name} was its own first three elements"


def _transposed(current, rng):
    return current | {SQUARE: current[SQUARE].T}, [SQUARE], f"{SQUARE} was its own transpose"


def _other_dtype(current, rng):
    name = "context_lens"
    return current | {name: current[name].view(torch.float32)}, [name], f"{name} was viewed as float32"


def _several(current, rng):
    current = current | {name: current[name].clone() for name in ("slot_mapping", SQUARE)}
    del current["context_lens"]
    names = ["slot_mapping", SQUARE, "context_lens"]
    return current, names, f"slot_mapping and {SQUARE} were replaced, context_lens was gone"


# The mistake of not raising -> (what is there now, the names that must be told, in words).
CHANGES = {
    "ignores-address": _replaced,
    "compares-values": _equal,
    "ignores-missing": _gone,
    "ignores-shape": _shorter,
    "ignores-strides": _transposed,
    "ignores-dtype": _other_dtype,
    "names-first-only": _several,
}
