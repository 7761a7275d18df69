"""``with graph(g):`` — a capture on a stream of its own."""

from .memory import empty_cache
from .streams import Stream, StreamContext, synchronize


class graph:
    """``with graph(g): out = f(x)`` records ``f`` and runs nothing, as ``torch.cuda.graph``.

    Order of events as in torch, warts included: after a failed capture the capture stream stays
    current, since torch restores it only after ``capture_end`` has succeeded.
    """

    default_capture_stream = None  # one for all captures, so that they can share blocks

    def __init__(
        self,
        cuda_graph,
        pool=None,
        stream=None,
        capture_error_mode="global",
        enable_annotations=False,
        check_input_liveness=False,
    ):
        if enable_annotations:
            raise NotImplementedError(
                "annotations need a GPU's driver, and the emulator has none: leave enable_annotations out"
            )
        if stream is None and graph.default_capture_stream is None:
            graph.default_capture_stream = Stream()
        self.cuda_graph, self.pool = cuda_graph, pool
        self.capture_stream = graph.default_capture_stream if stream is None else stream
        self.stream_ctx = StreamContext(self.capture_stream)
        self.capture_error_mode, self.check_input_liveness = capture_error_mode, check_input_liveness

    def __enter__(self):
        synchronize()
        empty_cache()
        self.stream_ctx.__enter__()
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode, self.check_input_liveness)

    def __exit__(self, *error):
        self.cuda_graph.capture_end()
        self.stream_ctx.__exit__(*error)
