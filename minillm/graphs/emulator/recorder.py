"""The recorder: sits where the CUDA driver would, and writes down instead of running.

A TorchDispatchMode sees every ATen operation below autograd and below the composite functions, just
before a kernel would be launched.  For each the recorder asks: is there a kernel at all (a view has
none)? would it make the CPU wait? what shape comes out, and at which address?  Then it appends a
node and hands back tensors whose memory nobody has written yet.
"""

import torch
from torch import Tag, Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from . import messages
from .memory import Borrowed, memory_of
from .messages import cuda_error, torch_error
from .nodes import Node
from .streams import capturing, now

aten = torch.ops.aten
FROM_NUMBERS = (aten.lift_fresh.default, aten.scalar_tensor.default)
INDEXING = (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_)


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

    def __init__(self, graph, pool, stream):
        super().__init__()
        self.graph, self.pool, self.stream = graph, pool, stream
        self.nodes, self.borrowed = [], {}
        self.frontier = {stream: frozenset()}  # stream -> the nodes that its next kernel comes after
        self.broken, self.seed = False, torch.initial_seed()
        self.host, self.host_is_running = {}, False  # StorageImpl -> a tensor in host memory
        self.key = object()  # stands for this capture in events, which may outlive it

    def broken_by(self, number, why):
        """The error to raise for what a capture does not survive."""
        self.broken = True
        return cuda_error(number, why)

    def finish(self):
        """Check the capture as a whole: (nodes, borrowed memory)."""
        if self.broken:
            raise cuda_error(901, "the error before this one is the cause; look at __context__")
        joined = set(self.frontier[self.stream])
        for node in reversed(self.nodes):
            joined |= node.after if node.index in joined else frozenset()
        if len(joined) < len(self.nodes):
            raise cuda_error(904, "the capturing stream must wait for every stream that was forked from it")
        return self.nodes, list(self.borrowed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.host_is_running or not capturing(now.stream):  # not part of the capture: it just runs
            return func(*args, **kwargs)
        tensors = tensors_in((args, kwargs))
        # A number or list that became a tensor (x[:] = 2, x[[0, 1]]), and what is computed from such.
        if func in FROM_NUMBERS or tensors and all(map(self.on_host, tensors)):
            return self.run_on_host(func, args, kwargs)
        with self:  # linear, reshape, sdpa...: see the kernels within
            inside = func.decompose(*args, **kwargs)
        if inside is not NotImplemented:
            return inside
        self.check(func, args, kwargs, tensors)
        if Tag.inplace_view in func.tags:  # unsqueeze_ and the like: no kernel
            return func(*args, **kwargs)

        results, twins = self.on_meta(func, args, kwargs)
        outputs, written = tensors_in(results), mutated(func, args, kwargs)
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

    # -------------------------------------------------------------------- what would a GPU refuse?
    def check(self, func, args, kwargs, tensors):
        """Refuse what makes the CPU wait, and copies from its memory.  PyTorch itself tags the ops
        whose result or shape depends on data; for indexing the kind of index decides."""
        if self.broken:
            raise cuda_error(901, "nothing more can be captured after the first error")
        op, hosts = func.overloadpacket, [t for t in tensors if self.on_host(t)]
        waits = Tag.data_dependent_output in func.tags or Tag.dynamic_output_shape in func.tags
        copies = op is aten.copy_ and hosts
        if op in INDEXING:
            indices = [i for i in args[1] if i is not None]
            mask = any(i.dtype in (torch.bool, torch.uint8) for i in indices)
            number = any(self.on_host(value) and value.dim() == 0 for value in args[2:3])
            waits = mask and not number  # y[mask] = 7.0 is a masked_fill_, which has a fixed shape
            copies = hosts and not (mask and number and len(hosts) == 1)
        if copies:
            raise torch_error(messages.NO_COPY, f"{op} with a tensor in host memory")
        if any(t.dim() for t in hosts):
            raise torch_error(messages.TWO_DEVICES, "a tensor made without device= is in host memory")
        if waits and kwargs.get("output_size") is None:
            raise self.broken_by(900, f"{op} must wait for values on the device")
        if torch.initial_seed() != self.seed:
            self.seed = torch.initial_seed()
            raise torch_error(messages.SEED, "torch.manual_seed was called since the last operation")
        generator = kwargs.get("generator") or torch.default_generator
        if all(generator._cdata != g._cdata for g in [torch.default_generator, *self.graph.generators]):
            raise torch_error(
                messages.GENERATOR_NOT_REGISTERED, "call register_generator_state before capture"
            )

    def on_host(self, t):
        return t.layout == torch.strided and t.untyped_storage()._cdata in self.host

    def run_on_host(self, func, args, kwargs):
        """Run at once, as Python on the CPU would, and remember where the result lives."""
        before, self.host_is_running = self.host_is_running, True
        try:
            result = func(*args, **kwargs)
        finally:
            self.host_is_running = before
        self.host.update((t.untyped_storage()._cdata, t) for t in tensors_in(result))
        return result

    # ------------------------------------------------------------------------------- write it down
    def on_meta(self, func, args, kwargs):
        """Run the op on tensors without data, to learn shapes, dtypes, and what aliases what."""
        twins = {}  # id(argument) -> (argument, its twin)

        def twin(t):
            if id(t) not in twins:
                twins[id(t)] = t, torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")
            return twins[id(t)][1]

        meta_args, meta_kwargs = tree_map_only(Tensor, twin, (args, kwargs))
        if any(a.name == "device" for a in func._schema.arguments):
            meta_kwargs["device"] = "meta"
        return func(*meta_args, **meta_kwargs), list(twins.values())

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
        if t.layout != torch.strided or t.is_conj() or t.is_neg():
            raise NotImplementedError("the emulator records only plain strided tensors")
        if t.numel() == 0:
            return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
        if self.on_host(t):  # 0-dim, or check() would have refused it: it rides in the launch
            return t.detach().clone()
        memory = memory_of(t)
        if isinstance(memory, Borrowed):
            self.borrowed[memory] = True
        return memory.alias(t)
