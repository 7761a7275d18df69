"""The recorder: sits where the CUDA driver would, and writes down instead of running.

A TorchDispatchMode sees every ATen operation below autograd and below the composite functions, just
before a kernel would be launched.  For each the recorder asks: is there a kernel at all (a view has
none)? would it make the CPU wait? what shape comes out, and at which address?  Then it appends a
node and hands back tensors whose memory nobody has written yet.
"""

import threading

import torch
from torch import Tag, Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from .borrowed import Borrowed, Lease, memory_of
from .memory import like
from .messages import cuda_error
from .nodes import Node
from .refusals import refuse, refuse_beside, refuse_unlike_others
from .streams import capturing, now

aten = torch.ops.aten
FROM_NUMBERS = (aten.lift_fresh.default, aten.scalar_tensor.default)


def tensors_in(tree):
    """The tensors anywhere in nested lists, tuples and dicts."""
    return [t for t in tree_leaves(tree) if isinstance(t, Tensor)]


def mutated(func, args, kwargs):
    """The tensors that the op's schema says it writes: ``Tensor(a!)``."""
    values = {a.name: v for a, v in zip(func._schema.arguments, args, strict=False)} | kwargs
    writes = [a.name for a in func._schema.arguments if a.alias_info and a.alias_info.is_write]
    return tensors_in([values.get(name) for name in writes])


class Recorder(TorchDispatchMode):
    """One capture: from ``capture_begin`` to ``capture_end``."""

    def __init__(self, graph, pool, stream, mode):
        super().__init__()
        self.graph, self.pool, self.stream, self.mode = graph, pool, stream, mode
        self.nodes, self.borrowed = [], {}
        self.frontier = {stream: frozenset()}  # stream -> the nodes that its next kernel comes after
        self.broken, self.seed = None, torch.initial_seed()  # broken: why it was lost
        self.thread = threading.get_ident()
        self.host, self.host_is_running = {}, False  # StorageImpl -> a tensor in host memory
        self.constants = set()  # which of them C++ made of a Python number
        self.key = object()  # stands for this capture in events, which may outlive it

    def broken_by(self, number, why):
        """Give the capture up, and make the error that says so: ``raise capture.broken_by(…)``."""
        self.broken = self.broken or why
        return cuda_error(number, why)

    def finish(self):
        """Check the capture as a whole: (nodes, borrowed memory)."""
        if self.broken:
            raise cuda_error(901, f"what broke it was: {self.broken}")
        joined = set(self.frontier[self.stream])
        for node in reversed(self.nodes):
            joined |= node.after if node.index in joined else frozenset()
        if len(joined) < len(self.nodes):
            raise cuda_error(904, "the capturing stream must wait for every stream that was forked from it")
        return self.nodes, list(self.borrowed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.host_is_running:
            return func(*args, **kwargs)
        tensors = tensors_in((args, kwargs))
        refuse_unlike_others(tensors)
        if not capturing(now.stream):  # not part of the capture: it just runs, unless the CPU had to wait
            result = func(*args, **kwargs)
            refuse_beside(self, func, tensors, args, kwargs)
            return result
        # A number or list that became a tensor (x[:] = 2, x[[0, 1]]), and what is computed from such.
        if func in FROM_NUMBERS or tensors and all(map(self.on_host, tensors)):
            return self.run_on_host(func, args, kwargs)
        with self:  # torch took this mode off while it is at work: back on, to see linear's or sdpa's kernels
            inside = func.decompose(*args, **kwargs)
        if inside is not NotImplemented:
            return inside
        written = mutated(func, args, kwargs)
        refuse(self, func, tensors, args, kwargs, written)
        if Tag.inplace_view in func.tags and func.overloadpacket is not aten.resize_:
            return func(*args, **kwargs)  # unsqueeze_ and the like: no kernel
        results, twins = self.on_meta(func, args, kwargs)
        self.resize(twins)
        if func.overloadpacket is aten.resize_:
            return args[0]
        outputs = tensors_in(results)
        original = {id(twin): t for t, twin in twins}
        shared = {twin.untyped_storage()._cdata for _, twin in twins}
        if not written and outputs and all(r.untyped_storage()._cdata in shared for r in outputs):
            return func(*args, **kwargs)  # view, transpose, detach...: no kernel either
        fresh = {
            id(r): self.pool.empty(r.size(), r.stride(), r.dtype, now.stream)
            for r in outputs
            if id(r) not in original
        }
        if "empty" not in func._schema.name:  # empty: memory, but no kernel
            outs = [(i, fresh[id(r)]) for i, r in enumerate(tree_leaves(results)) if id(r) in fresh]
            self.record(func, args, kwargs, written, outs)
        return tree_map_only(Tensor, lambda r: fresh[id(r)] if id(r) in fresh else original[id(r)], results)

    def on_host(self, t):
        """Whether ``t`` was made in host memory: during the capture, or where a heap knows it."""
        if t.layout != torch.strided or t.device.type != "cpu" or is_functorch_wrapped_tensor(t):
            return False
        return t.untyped_storage()._cdata in self.host or now.heap is not None and now.heap.on_host(t)

    def is_constant(self, t):
        """Whether it is a Python number: it rides in the launch, whatever shape it was given."""
        return t.untyped_storage()._cdata in self.constants

    def pinned(self, t):
        return now.heap is not None and now.heap.is_pinned(t)

    def run_on_host(self, func, args, kwargs):
        """Run at once, as Python on the CPU would, and remember where the result lives."""
        self.host_is_running = True
        try:
            result = func(*args, **kwargs)
        finally:
            self.host_is_running = False
        made, operands = tensors_in(result), tensors_in((args, kwargs))
        self.host.update((t.untyped_storage()._cdata, t) for t in made)
        if func is aten.scalar_tensor.default or operands and all(map(self.is_constant, operands)):
            self.constants.update(t.untyped_storage()._cdata for t in made)
        return result

    def on_meta(self, func, args, kwargs):
        """Run the op on tensors without data, to learn shapes, dtypes, and what aliases what: the results,
        and (argument, twin without data) for each argument."""
        twins = {}  # id(argument) -> (argument, its twin)

        def twin(t):
            if id(t) not in twins:
                empty = torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")
                twins[id(t)] = t, like(t, empty)
            return twins[id(t)][1]

        meta_args, meta_kwargs = tree_map_only(Tensor, twin, (args, kwargs))
        meta_kwargs.update(dict.fromkeys(meta_kwargs.keys() & {"generator"}))  # a few refuse one on meta
        if any(a.name == "device" for a in func._schema.arguments):
            meta_kwargs["device"] = "meta"
        try:
            return func(*meta_args, **meta_kwargs), list(twins.values())
        except Exception as error:  # an operation's own refusal, which meta may put in other words than CUDA
            zeros = tree_map_only(Tensor, lambda t: torch.zeros_like(t, device="cpu"), (meta_args, kwargs))
            said = error
            try:
                func(*zeros[0], **zeros[1])
            except Exception as error:
                said = error
            raise said from None

    def resize(self, twins):
        """Give tensors the shapes that ``resize_`` or ``out=`` gave their twins: in their own memory, or in
        memory of the pool, to which what they held is copied."""
        for t, twin in twins:
            if t.shape == twin.shape:
                continue
            storage, offset = t.untyped_storage(), t.storage_offset()
            reach = offset + twin.untyped_storage().nbytes() // t.itemsize  # in elements
            if reach * t.itemsize > storage.nbytes():
                size = (reach,)
                new, n = self.pool.empty(size, (1,), t.dtype, now.stream), storage.nbytes() // t.itemsize
                if n:
                    old = torch.empty(0, dtype=t.dtype).set_(storage, 0, (n,), (1,))
                    self.record(aten.copy_.default, (new[:n], old), {}, [new[:n]], [])
                storage = new.untyped_storage()
            t.set_(storage, offset, twin.size(), twin.stride())

    def record(self, func, args, kwargs, written, outs):
        args, kwargs, outs = tree_map_only(Tensor, self.pointer, (args, kwargs, outs))
        self.nodes.append(Node(len(self.nodes), func, args, kwargs, outs, written, self.frontier[now.stream]))
        self.frontier[now.stream] = frozenset([len(self.nodes) - 1])

    def pointer(self, t):
        """``t`` as the graph remembers it: an address, or for a number its value."""
        if t.device.type != "cpu":
            raise RuntimeError(
                f"the emulator captures CPU tensors only and got one on {t.device}: use "
                "`from minillm.graphs import device` wherever a tensor is made"
            )
        if t.numel() == 0:
            return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
        if self.on_host(t) and not self.pinned(t):  # a number, or it had been refused: it rides in the launch
            return t.detach().clone()
        memory = memory_of(t)
        if isinstance(memory, Borrowed):
            self.borrowed[memory] = True
        elif memory.pool() is not self.pool:
            self.borrowed[Lease.of(t, memory)] = True
        return memory.alias(t)
