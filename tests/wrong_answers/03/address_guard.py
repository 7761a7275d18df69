"""Answers to 3.6."""

import weakref
from dataclasses import dataclass

import torch

from minillm.engine.addresses import Addresses
from minillm.grading.corpus import right, wrong


def place(tensor):
    return tensor.data_ptr(), tuple(tensor.size()), tensor.stride(), tensor.dtype


@right("3.6")
class Guard:
    """A callable object that says more than the names."""

    def __init__(self, tensors):
        self.held = list(tensors.values())
        self.before = {name: place(tensor) for name, tensor in tensors.items()}

    def __call__(self, current):
        wrong = []
        for name, before in self.before.items():
            now = place(current[name]) if name in current else None
            if now is None:
                wrong.append(f"{name} is gone")
            elif now != before:
                wrong.append(f"{name}: {before} became {now}")
        if wrong:
            raise RuntimeError("\n".join(wrong))


class MovedError(RuntimeError):
    pass


@right("3.6")
def keeps_aliases_and_compares_those(tensors):
    aliases = {name: tensor.detach() for name, tensor in tensors.items()}

    def same(a, b):
        if a is None or a.dtype != b.dtype or a.shape != b.shape:
            return False
        return a.is_set_to(b)

    def check(current):
        moved = {name for name, alias in aliases.items() if not same(current.get(name), alias)}
        if moved:
            raise MovedError(f"moved: {sorted(moved)}")
        return True

    return check


@dataclass(frozen=True)
class Place:
    tensor: torch.Tensor

    def differs(self, other):
        facts = ("data_ptr", "stride", "size", "type")
        return other is None or any(getattr(self.tensor, f)() != getattr(other, f)() for f in facts)


@right("3.6")
def asks_small_objects(tensors):
    places = {name: Place(tensor.detach()) for name, tensor in tensors.items()}

    def check(current):
        bad = [name for name in places if places[name].differs(current.get(name))]
        if not bad:
            return
        message = "these buffers are not what the graph was captured with"
        raise RuntimeError(f"{message}: " + ", ".join(bad))

    return check


def guard_by(fact, held=True, error=RuntimeError):
    """A guard that compares `fact(tensor)`, names everything and notices what is missing."""

    def make_guard(tensors):
        keep = dict(tensors) if held else None
        before = {name: fact(tensor) for name, tensor in tensors.items()}

        def check(current):
            moved = [n for n in before if n not in current or fact(current[n]) != before[n]]
            if moved:
                raise error(f"moved: {', '.join(moved)}")

        check.keep = keep
        return check

    return make_guard


def add(key, name, fact, **more):
    make_guard = guard_by(fact, **more)
    make_guard.__name__ = name
    wrong("3.6", key)(make_guard)


add("compares-values", "values_as_lists", lambda t: t.tolist())
add("compares-values", "sums_and_addresses", lambda t: (place(t), t.double().sum().item()))
add("compares-identity", "ids", id)
add("compares-identity", "objects_and_places", lambda t: (id(t), *place(t)))
add("not-held", "numbers_alone", place, held=False)
add("ignores-address", "shapes_alone", lambda t: (t.shape, t.stride(), t.dtype))
add("ignores-shape", "addresses_alone", lambda t: t.data_ptr())
add("ignores-shape", "addresses_and_dtypes", lambda t: (t.data_ptr(), t.dtype))
add("ignores-strides", "no_strides", lambda t: (t.data_ptr(), t.shape, t.dtype))
add("ignores-dtype", "no_dtypes", lambda t: (t.data_ptr(), t.shape, t.stride()))
add("wrong-error", "value_error", place, error=ValueError)
add("wrong-error", "assertion", place, error=AssertionError)


@wrong("3.6", "compares-values")
def equal_contents(tensors):
    before = {name: tensor.clone() for name, tensor in tensors.items()}

    def check(current):
        moved = [name for name in before if not torch.equal(before[name], current[name])]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "compares-identity")
def same_object(tensors):
    before = dict(tensors)

    def check(current):
        moved = [name for name in before if current.get(name) is not before[name]]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "not-held")
def weak_references(tensors):
    before = {name: (weakref.ref(tensor), place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        moved = [n for n, (_, old) in before.items() if n not in current or place(current[n]) != old]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "same-dict")
def looks_up_in_the_callers_dict(tensors):
    def check(current):
        moved = [n for n in tensors if n not in current or place(tensors[n]) != place(current[n])]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "names-first-only")
def raises_at_the_first(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        for name, (_, old) in before.items():
            if name not in current or place(current[name]) != old:
                raise RuntimeError(f"{name} moved")

    return check


@wrong("3.6", "names-nothing")
def only_addresses_in_the_text(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        for name, (_, old) in before.items():
            if name not in current or place(current[name]) != old:
                raise RuntimeError(f"a tensor moved from {old[0]:#x}: capture again")

    return check


@wrong("3.6", "names-others")
def names_all_of_them(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        if any(name not in current or place(current[name]) != old for name, (_, old) in before.items()):
            raise RuntimeError(f"one of {', '.join(before)} moved")

    return check


@wrong("3.6", "ignores-missing")
def loops_over_what_is_there(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        moved = [name for name in current if name in before and place(current[name]) != before[name][1]]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "ignores-missing")
def key_error(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        moved = [name for name, (_, old) in before.items() if place(current[name]) != old]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "refuses-extra")
def wants_the_same_names(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        names = before.keys() | current.keys()
        moved = [n for n in names if n not in before or n not in current or place(current[n]) != before[n][1]]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "refuses-extra")
def compares_in_order(tensors):
    before = [(name, tensor, place(tensor)) for name, tensor in tensors.items()]

    def check(current):
        if len(current) > len(before):
            raise RuntimeError(f"{list(current)} are not the tensors of the capture")
        moved = [n for n, _, old in before if n not in current or place(current[n]) != old]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "does-not-raise")
def returns_the_names(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}
    return lambda current: [
        n for n, (_, old) in before.items() if n not in current or place(current[n]) != old
    ]


@wrong("3.6", "does-not-raise")
def returns_whether_all_is_well(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        return all(n in current and place(current[n]) == old for n, (_, old) in before.items())

    return check


@wrong("3.6", "does-not-raise")
def prints_the_names(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        for name, (_, old) in before.items():
            if name not in current or place(current[name]) != old:
                print(name, "moved")

    return check


@wrong("3.6", "waits")
def tells_the_contents_too(tensors):
    before = {name: (tensor, place(tensor), tensor[:1].tolist()) for name, tensor in tensors.items()}

    def check(current):
        moved = [n for n, (_, old, _) in before.items() if n not in current or place(current[n]) != old]
        if moved:
            raise RuntimeError("; ".join(f"{name}, which held {before[name][2]}" for name in moved))

    return check


@wrong("3.6", "remembers-the-new")
def takes_the_new_place(tensors):
    before = {name: (tensor, place(tensor)) for name, tensor in tensors.items()}

    def check(current):
        moved = [n for n, (_, old) in before.items() if n not in current or place(current[n]) != old]
        before.update({name: (current[name], place(current[name])) for name in moved if name in current})
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "false-alarm")
def compares_with_copies(tensors):
    copies = {name: tensor.clone() for name, tensor in tensors.items()}

    def check(current):
        moved = [n for n, copy in copies.items() if n not in current or place(current[n]) != place(copy)]
        if moved:
            raise RuntimeError(", ".join(moved))

    return check


@wrong("3.6", "reexport")
def asks_the_packages_own(tensors):
    held = dict(tensors)

    def check(current):
        held.update(current)
        addresses.check()

    addresses = Addresses(lambda: held)
    return check


@wrong("3.6", "returned-nothing")
def forgets_to_return(tensors):
    def check(current):
        raise RuntimeError


@wrong("3.6", "wrong-type")
def returns_the_addresses(tensors):
    return {name: tensor.data_ptr() for name, tensor in tensors.items()}
