"""CUDAGraph and graph(...): what a learner types, under torch.cuda's own names and messages."""

import warnings

import torch

from . import messages
from .host import HostAccess
from .memory import Pool, PoolHandle
from .messages import cuda_error, torch_error
from .nodes import to_dot
from .recorder import Recorder
from .streams import Stream, StreamContext, default_stream, now, synchronize


def graph_pool_handle():
    """A name for a memory pool that does not exist yet; pass it as ``pool=`` to share the pool."""
    return PoolHandle.new()


class CUDAGraph:
    """A list of kernel launches with frozen addresses, as ``torch.cuda.CUDAGraph``.

    ``nodes`` (emulated only) is that list; ``None`` before a capture.  ``keep_graph=True`` keeps the
    template, so that it can be dumped, and puts instantiation off to ``instantiate()`` or the first
    replay.
    """

    _debug = False  # one switch for the whole process, as in torch

    def __init__(self, keep_graph=False):
        self.keep_graph, self.generators = keep_graph, []
        self._recorder = self._host_access = None
        self.reset()

    def reset(self):
        """Forget the captured graph, and let go of its pool.  Another capture may follow."""
        self.nodes = self._pool = None
        self._instantiated = self._check_input_liveness = False
        self.borrowed = []  # memory that the nodes use and that is not in the pool

    def capture_begin(self, pool=None, capture_error_mode="global", check_input_liveness=False):
        """Start recording what is put on the current stream; ``graph(...)`` calls this for you.

        ``capture_error_mode`` is checked but changes nothing: it governs other threads, which the
        emulator does not watch.
        """
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise torch_error(messages.UNKNOWN_MODE + str(capture_error_mode))
        if self._instantiated:
            raise torch_error(messages.ALREADY_CAPTURED, "or call reset() first")
        if now.stream is default_stream():
            raise torch_error(messages.DEFAULT_STREAM, "use graph(...), or capture inside `with stream(s):`")
        if now.capture is not None:
            raise now.capture.broken_by(900, "another capture is underway")
        self.reset()
        self._check_input_liveness = check_input_liveness
        chosen = Pool() if pool is None else Pool.named(pool)
        self._recorder = now.capture = Recorder(self, chosen, now.stream)
        self._host_access = HostAccess(self._recorder)
        self._host_access.__enter__()
        self._recorder.__enter__()

    def capture_end(self):
        """Stop recording.  Also right after a Python error: the graph holds what came before it."""
        recorder = self._recorder
        if recorder is None:
            raise cuda_error(401, "capture_end() without a capture_begin() on this graph")
        if now.stream is not recorder.stream:
            raise torch_error(messages.OTHER_STREAM)
        recorder.__exit__(None, None, None)
        self._host_access.__exit__(None, None, None)
        self._recorder = self._host_access = now.capture = None
        self.nodes, self.borrowed = recorder.finish()
        self._pool = recorder.pool
        self._instantiated = not self.keep_graph
        if not self.nodes:
            warnings.warn(f"{messages.EMPTY} (emulated)", stacklevel=3)

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
        with torch.inference_mode():
            for node in self.nodes:
                node.launch()

    def dangling(self):
        """Borrowed memory whose tensors are gone.  A GPU would go on using the address."""
        return [memory for memory in self.borrowed if memory.freed()]

    def _use_after_free(self, dead):
        for memory in dead:
            memory.poison()
        if self._check_input_liveness:
            raise torch_error(f"CUDA graph replay detected {len(dead)} dead tensor(s).", "keep them alive")
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


class graph:
    """``with graph(g): out = f(x)`` records ``f`` and runs nothing, as ``torch.cuda.graph``.

    Order of events as in torch, warts included: after a failed capture the capture stream stays
    current, since torch restores it only after ``capture_end`` has succeeded.
    """

    default_capture_stream = None  # one for all captures, so that they can share blocks

    def __init__(
        self, cuda_graph, pool=None, stream=None, capture_error_mode="global", check_input_liveness=False
    ):
        if stream is None and graph.default_capture_stream is None:
            graph.default_capture_stream = Stream()
        self.cuda_graph, self.pool = cuda_graph, pool
        self.capture_stream = graph.default_capture_stream if stream is None else stream
        self.stream_ctx = StreamContext(self.capture_stream)
        self.capture_error_mode, self.check_input_liveness = capture_error_mode, check_input_liveness

    def __enter__(self):
        synchronize()
        self.stream_ctx.__enter__()
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode, self.check_input_liveness)

    def __exit__(self, *error):
        self.cuda_graph.capture_end()
        self.stream_ctx.__exit__(*error)
