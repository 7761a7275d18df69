"""What this package's own guards say: the runner, the engine, anatomy."""

from .entry import Entry

ENTRIES = (
    Entry(
        name="a static input of that name does not exist",
        says=("no static input is called",),
        cause="GraphRunner.load() got a name that was not among the inputs at capture. Ignoring it would "
        "leave the graph on old values.",
        cure="Use one of the names that the message lists.",
        cell="03 rebind",
        source="minillm/engine/runner.py",
    ),
    Entry(
        name="another dtype than at capture",
        says=("it was captured as torch.",),
        cause="copy_() would convert without a word; the graph's kernels were chosen for the captured dtype.",
        cure="Convert the value yourself, or capture for this dtype.",
        cell="03 rebind",
        source="minillm/engine/runner.py",
    ),
    Entry(
        name="another shape than at capture",
        says=("it was captured as [", "rows with tables of … blocks; expected at most"),
        cause="A graph has one shape, and copy_() would broadcast a smaller value without a word.",
        cure="Pad the value to the captured shape, or capture a graph for this one.",
        cell="03 stale-rows",
        source="minillm/engine/runner.py",
    ),
    Entry(
        name="a tensor is not where it was captured",
        says=("the graph still uses the old memory",),
        cause="A weight, a KV cache or an input was replaced by another tensor after the capture. The graph "
        "has the old address, and would go on reading the old memory.",
        cure="Write into the old tensor with copy_(), or capture again.",
        cell="03 address-guard",
        source="minillm/engine/addresses.py",
    ),
    Entry(
        name="the engine could not capture its graphs",
        says=("CaptureFailed", "the capture for … rows, … blocks failed", "decoding eagerly:"),
        cause="One of the captures failed, so the engine has none and decodes eagerly: right, and slower. "
        "The message repeats the last error, which is often a consequence itself.",
        cure="Repair what the first error in the chain names, then call capture() again.",
        cell="02 refusals",
        source="minillm/engine/capture_all.py",
        consequence=True,
    ),
    Entry(
        name="warm_up() of a result instead of a function",
        says=("expected a function that it can call without arguments",),
        cause="warm_up(fn(x)) calls fn itself, on the current stream, and passes on what it returned.",
        cure="warm_up(lambda: fn(x)): then warm_up makes the calls, on a side stream.",
        cell="02 not-executed",
        source="minillm/graphs/__init__.py",
    ),
    Entry(
        name="the process is not fit to capture",
        says=("a failed capture left its own behind",),
        cause="graphs.probe() found that the current stream is still that of a capture that failed.",
        cure="graphs.recover(), or a restart of the kernel. Then repair the capture that failed.",
        cell="00 subprocess",
        source="minillm/graphs/probe.py",
        consequence=True,
    ),
    Entry(
        name="anatomy() of a graph without its template",
        says=("this graph's template is gone", "cannot show a graph's template"),
        cause="torch throws the template away at the end of a capture, and only the template says what is "
        "inside.",
        cure="g = cuda.CUDAGraph(keep_graph=True), and capture again (torch 2.8 or newer).",
        cell="02 anatomy",
        source="minillm/graphs/anatomy/__init__.py",
    ),
    Entry(
        name="anatomy() before the capture",
        says=("nothing is captured in this graph yet", "expected a captured cuda.CUDAGraph"),
        cause="There is nothing to look into yet, or what was passed is no graph.",
        cure="Capture first, with `with cuda.graph(g): …`, and pass g.",
        cell="02 anatomy",
        source="minillm/graphs/anatomy/__init__.py",
    ),
    Entry(
        name="anatomy() cannot ask the driver",
        says=(
            "reading a graph on CUDA needs the package cuda-bindings",
            "the installed cuda-bindings is too old",
            "the GPU's driver is too old for",
        ),
        cause="On a GPU, anatomy() reads the graph through NVIDIA's cuda-bindings, which is missing or old.",
        cure="Run the command that the message gives, and restart the kernel. All else works without it.",
        cell="02 anatomy",
        source="minillm/graphs/anatomy/driver.py",
    ),
    Entry(
        name="where() of something that the graph did not use",
        says=("but this graph holds addresses on", "where() got"),
        cause="It takes a tensor, and one of the graph's own backend: another's address means nothing there.",
        cure="Pass a tensor that the captured code used.",
        cell="02 address",
        source="minillm/graphs/anatomy/report.py",
    ),
    Entry(
        name="races() on a GPU",
        says=("races() needs to know which bytes a node reads and writes",),
        cause="A kernel's parameters are addresses without lengths, so CUDA cannot tell what it touches.",
        cure="Capture the same code on the emulator: MINILLM_BACKEND=emulated before the first import.",
        cell="02 fork-join",
        source="minillm/graphs/anatomy/__init__.py",
    ),
)
