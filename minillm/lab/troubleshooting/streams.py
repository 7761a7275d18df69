"""Streams and events: forks, joins, and which stream a capture may be on."""

from .entry import CUDA_GRAPH_CPP, CUDA_GRAPHS, CUDA_TYPES, Entry, cuda_error

ENTRIES = (
    Entry(
        name="captured on the default stream",
        says=("CUDA graphs must be captured on a non-default stream",),
        cause="capture_begin() was called while the default stream was current, or graph(…, stream=) got it. "
        "Everything waits for the default stream, so it cannot be recorded.",
        cure="`with cuda.graph(g):` changes to a side stream by itself. By hand: capture inside "
        "`with cuda.stream(cuda.Stream()):`. Replays may be on the default stream.",
        cell="02 life",
        source=CUDA_GRAPHS,
    ),
    Entry(
        name="a side stream that never came back (CUDA error 904)",
        says=cuda_error(904, "capturing stream has unjoined work", "StreamCaptureUnjoined"),
        cause="Work was forked to another stream inside the capture, and the capturing stream did not wait "
        "for its end: the graph would have loose ends.",
        cure="Before the capture ends, on the capturing stream: current_stream().wait_stream(side), once for "
        "every stream that was forked to, after its last kernel.",
        cell="02 unjoined",
        source="https://github.com/deepseek-ai/DeepEP/issues/62",
        emulated=("must wait for every stream that was forked",),
    ),
    Entry(
        name="waiting for work outside the capture (CUDA error 905)",
        says=cuda_error(
            905, "dependency created on uncaptured work in another stream", "StreamCaptureIsolation"
        ),
        cause="A stream in the capture was made to wait for an event or a stream that is not part of it. A "
        "graph cannot wait for what was submitted outside of it.",
        cure="Fork first: side.wait_stream(current_stream()) inside the capture draws the side stream in. "
        "Wait for earlier work before the capture begins.",
        cell="02 fork-join",
        source=CUDA_TYPES,
        emulated=("fork first",),
    ),
    Entry(
        name="the default stream drawn into a capture (CUDA error 906)",
        says=cuda_error(
            906,
            "operation would make the legacy stream depend on a capturing blocking stream",
            "StreamCaptureImplicit",
        ),
        cause="The default (legacy) stream was to wait for a stream that is being captured: "
        "default_stream().wait_stream(…), autograd that ran its forward pass outside, or a kernel launched "
        "on the default stream.",
        cure="Do all of it on the capturing stream. Forward and backward pass both inside, or both outside; "
        "warm up on a side stream, so that autograd remembers that one.",
        cell="02 fork-join",
        source=CUDA_TYPES,
        emulated=("the default stream cannot be part",),
    ),
    Entry(
        name="an event of the capture asked for its state (CUDA error 907)",
        says=cuda_error(
            907,
            "operation not permitted on an event last recorded in a capturing stream",
            "CapturedEvent",
        ),
        cause="query() or synchronize() of an event that was recorded inside the capture. It marks a node of "
        "the graph, and no moment in time.",
        cure="Inside a capture use events for wait_event() alone. To time a replay, record events around "
        "g.replay(), outside.",
        cell="02 fork-join",
        source=CUDA_TYPES,
        emulated=("this event marks a node of the graph",),
    ),
    Entry(
        name="an event of a capture that is over (CUDA error 1)",
        says=("CUDA error: invalid argument",),
        cause="CUDA says this of many arguments. Around graphs: an event that was recorded inside a capture "
        "was waited for, queried or timed after that capture had ended, or in another one.",
        cure="Give each capture its own events, and record new ones outside for timing.",
        cell="02 fork-join",
        source=CUDA_TYPES,
        emulated=("the capture in which this event was recorded has ended",),
    ),
    Entry(
        name="two captures merged (CUDA error 902)",
        says=cuda_error(
            902, "operation would result in a merge of separate capture sequences", "StreamCaptureMerge"
        ),
        cause="A stream of one capture was made to wait for a stream of another.",
        cure="Capture one graph after the other, each with streams and events of its own.",
        cell="02 fork-join",
        source=CUDA_TYPES,
    ),
    Entry(
        name="the capture ended on another stream",
        says=(
            "Capture must end on the same stream it began on",
            *cuda_error(
                903, "capture was not ended in the same stream as it began", "StreamCaptureUnmatched"
            ),
        ),
        cause="capture_end() was called on another stream than capture_begin(): the current stream was "
        "changed in between, or the capture never began (then torch compares with no stream at all).",
        cure="Use `with cuda.graph(g):`. By hand: begin and end in the same `with cuda.stream(s):` block.",
        cell="02 life",
        source=CUDA_GRAPH_CPP,
    ),
)
