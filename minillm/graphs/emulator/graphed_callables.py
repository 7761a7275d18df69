"""make_graphed_callables: one callable as two graphs, forward and backward, behind one autograd node.

A CUDA graph knows nothing of autograd.  A training loop needs a node whose forward copies the inputs to
their static addresses and replays one graph, and whose backward does so with gradients and a second one.
Autograd remembers from the forward's capture what it must launch, and the second capture records that.

Source: torch/cuda/graphs.py; https://docs.pytorch.org/docs/stable/notes/cuda.html#partial-network-capture
"""

import inspect

import torch
from torch.autograd.function import once_differentiable
from torch.nn import Module
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from .capture import graph
from .graphs import CUDAGraph, graph_pool_handle
from .messages import torch_error
from .streams import Stream, stream, synchronize

AUTOCAST = "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
HOOKS = (
    "Modules must not have hooks registered at the time they are passed. However, registering hooks on "
    "modules after passing them through make_graphed_callables is allowed."
)
BUFFERS = (
    "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may be "
    "trainable. All buffers must have ``requires_grad=False``."
)
TENSORS = (
    "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
)
# Since then torch captures on the stream of the warm-up, not on the one of all captures.
SINCE_2_14 = "capture_error_mode" in inspect.signature(torch.cuda.make_graphed_callables).parameters


def check(function, leaves):
    """Refuse what torch refuses, in its words; as there, a submodule's hooks are not looked at."""
    if isinstance(function, Module):
        if function._backward_hooks or function._forward_hooks or function._forward_pre_hooks:
            raise AssertionError(f"{HOOKS} (emulated: a replay would not run them)")
        if names := [name for name, b in function.named_buffers() if b.requires_grad]:
            raise AssertionError(f"{BUFFERS} (emulated: look at {', '.join(names)})")
    if others := [type(x).__name__ for x in leaves if not isinstance(x, torch.Tensor)]:
        raise AssertionError(f"{TENSORS} (emulated: got {', '.join(others)}, which a graph would freeze)")


def load(static, new):
    """Bring each of ``new`` to the address that a graph reads, unless it is there already."""
    for old, value in zip(static, new, strict=False):
        if old is not None and old.data_ptr() != value.data_ptr():
            old.copy_(value)


class Passes:
    """The two graphs of one callable, and the tensors whose addresses are frozen in them: ``inputs`` (the
    sample arguments, then a Module's parameters), ``outputs``, and the gradients of both."""

    def __init__(self, function, sample_args, allow_unused):
        self.function, self.sample_args, self.allow_unused = function, sample_args, allow_unused
        self.given = tree_leaves(sample_args)
        check(function, self.given)
        self.parameters = list(function.parameters()) if isinstance(function, Module) else []
        self.inputs = self.given + self.parameters
        self.forward, self.backward = CUDAGraph(), CUDAGraph()

    def run_forward(self):
        self.outputs, self.structure = tree_flatten(self.function(*self.sample_args))

    def has_backward(self):
        """If so, this also makes room for the outputs' gradients.  It lies outside the pool."""
        self.grad_outputs = [torch.empty_like(o) if o.requires_grad else None for o in self.outputs]
        return any(o.requires_grad for o in self.outputs)

    def run_backward(self):
        """Afterwards the saved activations are free: later captures in the pool may use their memory."""
        outputs, inputs = ([t for t in all if t.requires_grad] for all in (self.outputs, self.inputs))
        grads = [g for g in self.grad_outputs if g is not None]
        found = iter(torch.autograd.grad(outputs, inputs, grads, allow_unused=self.allow_unused))
        self.grad_inputs = [next(found) if i.requires_grad else None for i in self.inputs]

    def replay(self, *args):
        """What the learner calls instead of the function."""
        return tree_unflatten(Replay.apply(self, *tree_leaves(args), *self.parameters), self.structure)

    def graphed(self):
        """``replay`` for a function.  A Module stays, and gets a ``forward`` that replays, except where
        train() or eval() has switched it to what was not captured."""
        if not isinstance(module := self.function, Module):
            return self.replay
        eager, mode = module.forward, module.training
        module.forward = lambda *xs, **kw: (self.replay if module.training == mode else eager)(*xs, **kw)
        return module


class Replay(torch.autograd.Function):
    """The autograd node.  Nothing is cloned: results and gradients *are* the static buffers, and the next
    call overwrites them, also where autograd made one a parameter's ``.grad`` (pytorch#181723)."""

    @staticmethod
    def forward(ctx, passes, *inputs):
        ctx.passes = passes
        load(passes.given, inputs)  # not the parameters: they are where they were
        passes.forward.replay()
        return tuple(o.detach() for o in passes.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        load(ctx.passes.grad_outputs, grads)
        ctx.passes.backward.replay()
        return None, *(g if g is None else g.detach() for g in ctx.passes.grad_inputs)


def make_graphed_callables(
    callables,
    sample_args,
    num_warmup_iters=3,
    allow_unused_input=False,
    pool=None,
    capture_error_mode="global",
):
    """Graphed versions of ``callables``: a function, a Module, or a tuple of these in the order in which they
    will run.  As ``torch.cuda.make_graphed_callables``, whose page explains the parameters.

    sample_args: the tuple of tensors (also nested) that a callable takes, or a tuple of such tuples.  They
        become the static inputs.  Each call must bring the same shapes and ``requires_grad``: nobody checks.
    Returns a function for a function; for a Module itself, with another ``forward``.  Raises RuntimeError
    under autocast with its cache; AssertionError for hooks, a trainable buffer, a sample that is no tensor.
    """
    if capture_error_mode != "global" and not SINCE_2_14:
        raise TypeError("make_graphed_callables() has no capture_error_mode= before torch 2.14 (emulated)")
    if torch.is_autocast_enabled("cpu") and torch.is_autocast_cache_enabled():
        raise torch_error(AUTOCAST, "a cached cast lives in the memory of the graph that made it")
    several = isinstance(callables, tuple)
    pairs = zip(callables, sample_args, strict=False) if several else [(callables, sample_args)]
    every = [Passes(function, args, allow_unused_input) for function, args in pairs]
    side, pool = Stream(), graph_pool_handle() if pool is None else pool
    where = {"pool": pool, "stream": side if SINCE_2_14 else None, "capture_error_mode": capture_error_mode}
    synchronize()
    with stream(side):  # warm-up: whatever a callable changes (a running mean) it changes here too
        for passes in every:
            for _ in range(num_warmup_iters):
                passes.run_forward()
                if passes.has_backward():
                    passes.run_backward()
    synchronize()
    for passes in every:  # all in one pool, and so in the order in which they will run
        with graph(passes.forward, **where):
            passes.run_forward()
    for passes in reversed(every):
        if passes.has_backward():
            with graph(passes.backward, **where):
                passes.run_backward()
    graphed = [passes.graphed() for passes in every]
    return tuple(graphed) if several else graphed[0]


if not SINCE_2_14:
    make_graphed_callables.__signature__ = inspect.signature(torch.cuda.make_graphed_callables)
