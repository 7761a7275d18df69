"""CUDAGraph: a capture's beginning and end, and replay, under torch.cuda's own names and messages."""

import gc
import warnings

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode_stack

from . import messages
from .borrowed import Borrowed
from .host import HostAccess
from .memory import Pool, PoolHandle
from .messages import cuda_error, torch_error
from .nodes import to_dot
from .recorder import Recorder
from .streams import default_stream, in_the_way, now


def graph_pool_handle():
    """A name for a memory pool that does not exist yet; pass it as ``pool=`` to share the pool."""
    return PoolHandle.new()


def abandon_capture():
    """End a capture that was left open, and keep nothing of it: what ``recover`` does without a GPU."""
    if now.capture is not None:
        now.capture.graph._stop_recording()


def leave_modes(stack, kind):
    """Leave the modes of that kind on top of torch's stack of modes."""
    while stack() and isinstance(stack()[-1], kind):
        stack()[-1].__exit__(None, None, None)


class CUDAGraph:
    """A list of kernel launches with frozen addresses, as ``torch.cuda.CUDAGraph``.

    ``nodes`` (emulated only) is that list; ``None`` before a capture.  ``keep_graph=True`` keeps the
    template, so that it can be dumped, and puts instantiation off to ``instantiate()`` or the first
    replay.
    """

    _debug = False  # one switch for the whole process, as in torch

    nodes = None

    def __init__(self, keep_graph=False):
        self.keep_graph, self.generators = keep_graph, []
        self._recorder = self._host_access = None
        self._stream = default_stream()  # on which capture_end() is expected
        self.reset()

    def reset(self):
        """Forget the captured graph, and let go of its pool.  Another capture may follow.

        The pool's memory stays until ``empty_cache()``, with which every capture begins.  A capture that
        is underway does not survive that another graph is destroyed, by this or with its last reference.
        """
        if self.nodes is not None:
            Pool.cached.append(self._pool)
            if in_the_way():
                now.capture.broken_by(901, "a graph was destroyed while this one was captured")
        self.nodes = self._pool = None
        self._instantiated = self._check_input_liveness = False
        self.borrowed = []  # memory that the nodes use and that is not in the pool

    def capture_begin(self, pool=None, capture_error_mode="global", check_input_liveness=False):
        """Start recording what is put on the current stream; ``graph(...)`` calls this for you.

        ``capture_error_mode`` says whether a wait that has nothing to do with the capture breaks it all the
        same: of any thread ("global"), of this one ("thread_local"), or not ("relaxed").
        """
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise torch_error(messages.UNKNOWN_MODE + str(capture_error_mode))
        if self._instantiated:
            raise torch_error(messages.ALREADY_CAPTURED, "or call reset() first")
        if now.stream is default_stream():
            raise torch_error(messages.DEFAULT_STREAM, "use graph(...), or capture inside `with stream(s):`")
        if now.capture is not None and now.capture.graph is self:
            raise torch_error(messages.ALREADY_CAPTURING, "capture_begin() was called before on this graph")
        if now.capture is not None:
            raise now.capture.broken_by(900, "another capture is underway")
        self.reset()
        self._check_input_liveness = check_input_liveness
        chosen = Pool() if pool is None else Pool.named(pool)
        self._stream = now.stream
        self._recorder = now.capture = Recorder(self, chosen, now.stream, capture_error_mode)
        self._host_access, self._collects = HostAccess(self._recorder), gc.isenabled()
        try:
            gc.disable()  # to record makes much garbage here, and a graph found in it would break the capture
            self._host_access.__enter__()
            self._recorder.__enter__()
        except BaseException:  # Ctrl-C
            self._stop_recording()
            raise

    def capture_end(self):
        """Stop recording.  Also right after a Python error: the graph holds what came before it."""
        recorder = self._recorder
        if now.stream is not self._stream:
            raise torch_error(messages.OTHER_STREAM)
        if recorder is None:
            raise cuda_error(401, "this graph's capture has not begun, or has ended")
        self._stop_recording()
        self.nodes, self.borrowed = recorder.finish()
        self._pool = recorder.pool
        self._instantiated = not self.keep_graph
        if not self.nodes:
            warnings.warn(f"{messages.EMPTY} (emulated)", stacklevel=3)

    def _stop_recording(self):
        """Take the modes off torch's stacks, the recorder also where Ctrl-C left it there twice."""
        leave_modes(_get_current_dispatch_mode_stack, Recorder)
        leave_modes(_get_current_function_mode_stack, HostAccess)
        if self._collects:
            gc.enable()
        self._recorder = self._host_access = now.capture = None

    def __del__(self):
        self.reset()

    def instantiate(self):
        """Make the graph launchable now and not at the first replay; for ``keep_graph=True``."""
        if self.nodes is None:
            raise torch_error(messages.INSTANTIATE_TOO_EARLY)
        if self._instantiated and not self.keep_graph:
            raise torch_error(messages.INSTANTIATE_AGAIN)
        self._instantiated = True

    def replay(self):
        """Run the nodes on the bytes that are at their addresses now.  None of your Python runs."""
        if self.nodes is None:
            raise torch_error(messages.NO_REPLAY)
        if now.capture is not None:
            raise torch_error(messages.CAPTURE_IN_REPLAY, "a graph cannot be recorded into another")
        self._instantiated = True
        if dead := self.dangling():
            self._use_after_free(dead)
        with torch.inference_mode(), torch._C.DisableTorchFunction(), _disable_current_modes():
            for node in self.nodes:
                node.launch()

    def dangling(self):
        """Borrowed memory whose tensors are gone.  A GPU would go on using the address.  RuntimeError for a
        static input that was resized."""
        return [memory for memory in self.borrowed if memory.freed()]

    def _use_after_free(self, dead):
        if self._check_input_liveness:
            raise torch_error(f"CUDA graph replay detected {len(dead)} dead tensor(s).", "keep them alive")
        dead = [memory for memory in dead if isinstance(memory, Borrowed)]  # in a heap it passes in silence
        for memory in dead:
            memory.poison()
        if not dead:
            return
        warnings.warn(
            f"this graph uses {len(dead)} freed tensor(s); a GPU would not tell you, and read or write "
            "whatever lives at that address now: keep every input of a graph alive as long as the graph",
            stacklevel=3,
        )

    def pool(self):
        """The handle of this graph's memory pool, to be shared through ``pool=``."""
        if self.nodes is None:
            raise torch_error(messages.NO_POOL)
        return self._pool.handle

    def register_generator_state(self, generator):
        """Allow ``generator`` in the capture to come; the default generator always is."""
        self.generators.append(generator)

    def enable_debug_mode(self):
        CUDAGraph._debug = True

    def debug_dump(self, debug_path):
        """Write the graph to ``debug_path`` in Graphviz's language; needs ``keep_graph=True``, without
        which torch has thrown the template away and writes nothing, without an error."""
        if not (CUDAGraph._debug or self.keep_graph):
            warnings.warn(f"{messages.DEBUG_IS_OFF} (emulated)", stacklevel=2)
        elif self.keep_graph and self.nodes is not None:
            with open(debug_path, "w", encoding="utf-8") as file:
                file.write(to_dot(self.nodes))

    def __getattr__(self, name):
        raise AttributeError(
            f"the emulator's CUDAGraph has no {name!r}; it offers what the lessons use: run this on a GPU, "
            "or look at g.nodes"
        )
