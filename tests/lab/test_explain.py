"""lab.explain: every error that this course can meet has its own entry, found in every form it comes in.

The oracles are not the index: the recorded errors of a GPU by CUDA's own numbers and by program, the
emulator's messages, the package's own `raise` statements, and errors that are really raised here.
"""

import ast
import json
import re
from pathlib import Path

import pytest
import torch

from minillm import lab
from minillm.engine.addresses import Addresses
from minillm.engine.capture_all import CaptureFailed, capture_all
from minillm.engine.runner import GraphRunner
from minillm.graphs import anatomy, backend, cuda, device, recover
from minillm.graphs.emulator import messages
from minillm.lab.subprocess_cells import Outcome, Outcomes
from minillm.lab.troubleshooting import INDEX, THEMES
from minillm.lab.troubleshooting.places import place
from minillm.lab.troubleshooting.wording import prose

COURSE = Path(__file__).resolve().parents[2]
emulated = pytest.mark.skipif(backend != "emulated", reason="words of the emulator")

# CUDA's own table, from cudaGetErrorString; the entry by its number
RUNTIME = {
    "invalid argument": "(CUDA error 1)",
    "the operation cannot be performed in the present state": "(CUDA error 401)",
    "operation not permitted when stream is capturing": "(CUDA error 900)",
    "operation failed due to a previous error during capture": "(CUDA error 901)",
    "capturing stream has unjoined work": "(CUDA error 904)",
    "dependency created on uncaptured work in another stream": "(CUDA error 905)",
    "operation would make the legacy stream depend on a capturing blocking stream": "(CUDA error 906)",
    "operation not permitted on an event last recorded in a capturing stream": "(CUDA error 907)",
}

# torch's own errors: a recorded program that meets it -> the entry
BY_PROGRAM = {
    "by hand: begin on the default stream": "captured on the default stream",
    "life: captured twice": "captured twice",
    "life: replay, pool, reset, instantiate and dump before any capture": "replayed without a capture",
    "by hand: pool() while capturing": "pool() without a capture",
    "seed: another seed": "another seed during a capture",
    "seed: an unregistered generator": "a generator made during a capture",
    "copies: cpu": "a copy from or to pageable host memory",
    "copies: host vector": "tensors on two devices",
    "copies: numpy": "numpy wants a tensor that is on the GPU",
    "waits: tensor_split at a tensor": "an index on the GPU for a tensor on the host",
    "by hand: a replay within a capture": "replayed within a capture",
    "by hand: begin twice on one graph": "begun twice",
    "by hand: end without begin": "the capture ended on another stream",
    "by hand: an unknown error mode": "unknown capture error mode",
    "random: a draw after a capture that failed": "random numbers after a capture that failed",
    "memory: a failed capture and its pool": "a pool that a failed capture left open",
    "pool: all graphs die, an output stays": "a pool used again after all its graphs died",
    "life: keep_graph": "instantiated too early",
    "life: instantiate a plain graph": "instantiated by hand without keep_graph",
    "optimizer: Adam": "an optimizer that is not capturable",
    "optimizer: AdamW": "an optimizer that is not capturable",
    "python: a mistake of shape within": "two shapes that do not fit",
    "load: too long": "two shapes that do not fit",
    "life: a capture of views and empty tensors alone": "nothing was captured",
}
# recorded errors of ordinary Python and torch code, which have nothing to do with graphs
ORDINARY = re.compile(
    r"(\w+$|IndexError|TypeError: type Tensor|RuntimeError: (Boolean value|Error\(s\) in loading"
    r"|a leaf Variable|both arguments to matmul|mat1 and mat2|num_classes|result type Float|shape '\[3\]'))"
)

EMULATOR = {
    "ALREADY_CAPTURING": "begun twice",
    "ALREADY_CAPTURED": "captured twice",
    "CAPTURE_IN_REPLAY": "replayed within a capture",
    "DEBUG_IS_OFF": "debug_dump() without debug mode",
    "DEFAULT_STREAM": "captured on the default stream",
    "EMPTY": "nothing was captured",
    "EVENTS_WITHOUT_TIMING": "an event that cannot be timed",
    "EVENTS_NOT_RECORDED": "an event that cannot be timed",
    "GENERATOR_NOT_REGISTERED": "a generator that the graph does not know",
    "INDEX_ON_DEVICE": "an index on the GPU for a tensor on the host",
    "INSTANTIATE_TOO_EARLY": "instantiated too early",
    "INSTANTIATE_AGAIN": "instantiated by hand without keep_graph",
    "NO_COPY": "a copy from or to pageable host memory",
    "NO_NUMPY": "numpy wants a tensor that is on the GPU",
    "NO_REPLAY": "replayed without a capture",
    "NO_POOL": "pool() without a capture",
    "OTHER_STREAM": "the capture ended on another stream",
    "SEED": "another seed during a capture",
    "TWO_DEVICES": "tensors on two devices",
    "UNKNOWN_MODE": "unknown capture error mode",
}

# as people paste them
PASTED = {
    "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`": (
        "a library that was not warmed up"
    ),
    "[rank0]:[E1130 ProcessGroupNCCL.cpp:2197] [PG ID 0 Rank 0] Process group watchdog thread terminated "
    "with exception: CUDA error: operation not permitted when stream is capturing": (
        "NCCL's watchdog broke the capture"
    ),
    "[rank3]: Process group watchdog thread terminated with exception:\nCUDA error: operation failed due to "
    "a previous error during capture": "NCCL's watchdog broke the capture",
    "Warning: CUDA warning: operation not permitted when stream is capturing (function reset)": (
        "an old graph destroyed during a capture"
    ),
    "RuntimeError: CUDA graph replay detected 3 dead tensor(s).\n\nDead tensor #1 (data_ptr=0x7f):": (
        "inputs of a graph that were freed"
    ),
    "RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent "
    "run. Stack trace: File a.py": "an output that the next replay has overwritten",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered": (
        "an illegal address or index during a replay (CUDA errors 700 and 710)"
    ),
    "Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was "
    "encountered": "an illegal address or index during a replay (CUDA errors 700 and 710)",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.": "out of memory",
    "RuntimeError: CUDA error: out of memory": "out of memory",
    'captures_underway.empty() INTERNAL ASSERT FAILED at "CUDACachingAllocator.cpp"': (
        "a pool that a failed capture left open"
    ),
    "Warp CUDA error 904: something": "a side stream that never came back (CUDA error 904)",
    "cudaErrorStreamCaptureIsolation": "waiting for work outside the capture (CUDA error 905)",
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "a wait during capture (CUDA error 900)",
    "CUDA error: device-side assert triggered": (
        "an illegal address or index during a replay (CUDA errors 700 and 710)"
    ),
    "906": "the default stream drawn into a capture (CUDA error 906)",
    "error 904": "a side stream that never came back (CUDA error 904)",
    "CUDA's error 904": "a side stream that never came back (CUDA error 904)",
    "CUDA error code: 904\n": "a side stream that never came back (CUDA error 904)",
    "skipping cudagraphs due to mutated inputs (36 instances)": "torch.compile skipped its graphs",
    "CUDA  error:\n capturing stream has\nunjoined work": (
        "a side stream that never came back (CUDA error 904)"
    ),
    "\x1b[0;31mAcceleratorError\x1b[0m: CUDA error: capturing stream has \x1b[1munjoined work": (
        "a side stream that never came back (CUDA error 904)"
    ),
    "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true": (
        "the template was not kept"
    ),
}


def names(error):
    return list(lab.explain(error).names)


def recorded() -> dict[str, list[str]]:
    """Each distinct error text that was recorded, and the programs that met it."""
    outcomes = json.loads((COURSE / "tests/graphs/recorded/nvidia-h200.json").read_text())["outcomes"]
    found = {}

    def collect(program, value):
        if isinstance(value, str) and re.match(r"\w*(Error|Warning)\b", value):
            found.setdefault(value, []).append(program)
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(program, part)

    for program, record in outcomes.items():
        collect(program, record["outcome"])
    return found


def test_every_recorded_error_about_graphs_is_explained_by_its_family():
    texts, wrong, seen = recorded(), {}, set()
    assert len(texts) > 40
    for text, programs in texts.items():
        number = RUNTIME.get(text.partition("CUDA error: ")[2])
        expected = number or {BY_PROGRAM[p] for p in programs if p in BY_PROGRAM}
        if not expected and ORDINARY.match(text):
            assert not lab.explain(text).known, text
            continue
        found = names(text)
        right = len(found) == 1 and (found[0].endswith(number) if number else found[0] in expected)
        seen |= set(found)
        if not right:
            wrong[text] = (expected, found, programs[:3])
    assert wrong == {}
    assert set(BY_PROGRAM.values()) <= seen  # each of them was met
    assert sum(any(name.endswith(number) for name in seen) for number in RUNTIME.values()) == len(RUNTIME)


def test_every_message_of_the_emulator_is_explained():
    texts = {k: v for k, v in vars(messages).items() if k.isupper() and isinstance(v, str)}
    assert texts.keys() == EMULATOR.keys()
    assert {name: names(text) for name, text in texts.items()} == {k: [v] for k, v in EMULATOR.items()}
    assert messages.CUDA.keys() == {int(re.search(r"\d+", number)[0]) for number in RUNTIME.values()}
    for number, words in messages.CUDA.items():
        assert [name.endswith(f"(CUDA error {number})") for name in names(f"CUDA error: {words}")] == [True]


@pytest.mark.parametrize("text, name", PASTED.items(), ids=lambda text: text[:40])
def test_what_people_paste(text, name):
    assert names(text) == [name]


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry.name)
def test_no_entry_takes_anothers_words(entry):
    for words in entry.says:
        assert names(words.replace("…", " 4 x ")) == [entry.name], words


# about one_hot, and about a damaged file of the package
NOT_ABOUT_GRAPHS = {
    "num_classes should be positive",
    "the emulator's docstring has no section 'Not imitated'; expected the list there",
}


def raised_in(folder: str):
    """The texts in the `raise` and `warn` statements under ``folder``, with 4 for what is filled in."""
    for path in sorted((COURSE / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            call = node.exc if isinstance(node, ast.Raise) else node
            warns = isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "torch_error")
            if not (isinstance(node, ast.Raise) or warns) or not isinstance(call, ast.Call) or not call.args:
                continue
            if ast.unparse(call.func).endswith(("no_copy", "broken_by")):  # they say why; see below
                continue
            for part in ast.walk(call.args[0]):
                if isinstance(part, ast.JoinedStr):
                    yield (
                        path.name,
                        "".join(v.value if isinstance(v, ast.Constant) else "4" for v in part.values),
                    )
                    break
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value:
                    yield path.name, part.value
                    break


def test_every_error_that_graphs_raises_is_explained():
    texts = [t for t in raised_in("minillm/graphs") if t[1] not in NOT_ABOUT_GRAPHS]
    # what is only filled in ("4 (emulated)") comes from messages.py
    texts = [t for t in texts if len(re.sub(r"\(emulated.*|[^a-z ]", "", t[1])) > 15]
    texts = [(file, text.replace("cuda.4: 4", "cuda.x: no such name")) for file, text in texts]
    assert len(texts) > 20
    assert [t for t in texts if not lab.explain(t[1]).known] == []


def raised(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_guards_of_the_package():
    x = torch.ones(4, device=device)
    runner = GraphRunner(lambda x: x + 1, {"x": x})
    assert names(raised(runner.load, y=x)) == ["a static input of that name does not exist"]
    assert names(raised(runner.load, x=x.int())) == ["another dtype than at capture"]
    assert names(raised(runner.load, x=x[:2])) == ["another shape than at capture"]
    weights = {"w": x}
    guard = Addresses(lambda: weights)
    weights["w"] = x.clone()
    assert names(raised(guard.check)) == ["a tensor is not where it was captured"]
    # on CUDA what torch itself says, the cause, stands before it
    assert names(raised(anatomy, runner.graph))[-1] == "anatomy() of a graph without its template"
    assert names(raised(anatomy, cuda.CUDAGraph(keep_graph=True)))[-1] == "anatomy() before the capture"


@emulated
def test_what_only_the_emulator_says():
    assert names(raised(lambda: cuda.max_memory_allocated())) == ["a name that the emulator does not have"]
    assert names(raised(lambda: cuda.CUDAGraph().raw_cuda_graph())) == [
        "a name that the emulator does not have"
    ]
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record(), end.record()
    assert names(raised(start.elapsed_time, end)) == ["the emulator has no clock"]
    assert names(raised(cuda.Event, interprocess=True)) == ["something that the emulator cannot capture"]


def failing_capture():
    x = torch.ones(4, device=device)
    with cuda.graph(cuda.CUDAGraph()):
        x.sum().item()


WAIT, BROKEN = "a wait during capture (CUDA error 900)", "a capture that was broken before (CUDA error 901)"


def test_of_an_exception_the_cause_comes_first():
    error = raised(failing_capture)
    recover()
    assert "previous error" in str(error)  # what a learner sees is the consequence
    explained = lab.explain(error)
    assert explained.names == [WAIT, BROKEN]
    assert repr(explained).startswith("The cause: A wait") and "Where is the cause?" not in repr(explained)
    outer = raised(capture_all, [(1, 2)], lambda rows, blocks: failing_capture())
    assert isinstance(outer, CaptureFailed)
    assert names(outer)[0] == WAIT and "the engine could not capture its graphs" in names(outer)[1:]


def test_without_its_cause_a_consequence_says_how_to_find_it():
    for text in ("CUDA error: operation failed due to a previous error during capture", "901", 901):
        explained = lab.explain(text)
        assert explained.names == [BROKEN]
        assert "__context__" in repr(explained) and "`__context__`" in explained._repr_markdown_()
    # a context that was suppressed is no cause
    try:
        try:
            raise ValueError("CUDA error: capturing stream has unjoined work")
        except ValueError:
            raise RuntimeError("previous error during capture: operation failed") from None
    except RuntimeError as error:
        assert not lab.explain(error).known


@pytest.mark.parametrize(
    "why, name",
    [
        ("aten.index must wait for values on the device", WAIT),
        ("fork first: this event's stream is not in the capture", "(CUDA error 905)"),
        ("the default stream cannot be part of a capture", "(CUDA error 906)"),
        ("query(): this event marks a node of the graph, not a moment", "(CUDA error 907)"),
        ("a graph was destroyed while this one was captured", "an old graph destroyed during a capture"),
        ("another capture is underway", "a capture begun within a capture"),
    ],
)
def test_the_emulator_repeats_the_cause_in_the_consequence(why, name):
    for before in ("what broke it was", "nothing more can be captured after the first error"):
        text = (
            f"CUDA error: operation failed due to a previous error during capture (emulated: {before}: {why})"
        )
        found = names(text)
        assert len(found) == 2 and found[0].endswith(name) and found[1] == BROKEN


def test_every_cause_that_the_emulator_names_is_known():
    causes = set()
    for path in (COURSE / "minillm/graphs/emulator").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("broken_by"):
                parts = [p.value for p in ast.walk(node.args[1]) if isinstance(p, ast.Constant)]
                causes.add(max((p for p in parts if isinstance(p, str)), key=len, default=""))
    causes -= {""}
    assert len(causes) > 9
    told = "operation failed due to a previous error during capture (emulated: what broke it was: "
    assert [c for c in causes if len(names(f"{told}{c})")) != 2] == []


TRACEBACK = """
Traceback (most recent call last):
  File "step.py", line 6, in <module>
    n = (logits > 0).sum().item()
torch.AcceleratorError: CUDA error: operation not permitted when stream is capturing
Search for `cudaErrorStreamCaptureUnsupported' in https://docs.nvidia.com/cuda/ for more information.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "step.py", line 5, in <module>
    with torch.cuda.graph(g):
torch.AcceleratorError: CUDA error: operation failed due to a previous error during capture
Search for `cudaErrorStreamCaptureInvalidated' in https://docs.nvidia.com/cuda/ for more information.
"""


def test_a_whole_traceback_and_what_in_subprocess_returns():
    assert names(TRACEBACK) == [WAIT, BROKEN]
    said = "CUDA error: operation failed due to a previous error during capture"
    first = "AcceleratorError: CUDA error: dependency created on uncaptured work in another stream"
    outcome = Outcome(False, "some output\n", "AcceleratorError", said, [first])
    assert [name[-4:] for name in names(outcome)] == ["905)", "901)"]
    assert names(repr(outcome)) == names(outcome)  # copied from the cell
    several = lab.explain(Outcomes([outcome, Outcome(True, "1"), Outcome(False, "", "KeyError", "a")]))
    assert [one.known for one in several] == [True, False, False]
    assert "Outcome [1]: nothing to explain" in repr(several) and "Not known: KeyError: a" in repr(several)
    assert names(Outcomes([outcome])) == names(outcome)
    warned = Outcome(True, "UserWarning: The CUDA Graph is empty. This usually means that")
    assert names(warned) == ["nothing was captured"]
    assert not lab.explain(Outcome(True, "5")).known


def test_two_causes_come_in_the_order_of_time():
    one, two = (
        "CUDA error: capturing stream has unjoined work",
        "This CUDAGraph instance already owns a captured",
    )
    assert [n[:10] for n in names(f"{one}\n{two} graph.")] == ["a side str", "captured t"]
    assert [n[:10] for n in names(f"{two} graph.\n{one}\n{one}")] == ["captured t", "a side str"]


def test_the_order_of_time_in_every_form():
    unjoined, outside = (
        "capturing stream has unjoined work",
        "dependency created on uncaptured work in another stream",
    )
    last = RuntimeError(f"CUDA error: {unjoined}")
    last.__context__ = RuntimeError(f"CUDA error: {outside}")
    outcome = Outcome(False, "", "RuntimeError", str(last), [f"RuntimeError: CUDA error: {outside}"])
    for form in (last, outcome, repr(outcome), f"some output\n{outcome!r}"):
        assert [name[-4:] for name in names(form)] == ["905)", "904)"]
    last.__cause__ = ValueError(f"CUDA error: {list(RUNTIME)[-1]}")  # `raise … from …` hides the context
    assert [name[-4:] for name in names(last)] == ["907)", "904)"]
    last.__cause__.__context__ = last  # a circle ends
    assert len(names(last)) == 2


def test_what_is_not_known_is_said_with_what_is_near():
    explained = lab.explain("KeyError: 'layers'")
    text, markdown = repr(explained), explained._repr_markdown_()
    assert not explained.known and text.startswith("Not known: KeyError: 'layers'") and "Nearest" not in text
    assert "**Not known:** `KeyError: 'layers'`" in markdown
    assert all(theme in text and theme in markdown for theme in THEMES)
    flat = " ".join(text.split())
    assert all(entry.name in flat for entry in INDEX)
    near = lab.explain("RuntimeError: unjoined work on a capturing stream, please join")
    assert not near.known and near.near[0].name == "a side stream that never came back (CUDA error 904)"
    assert "Nearest, by their words" in repr(near)
    assert lab.explain("SomeError: unjoined").near == []  # one word is chance
    last = lab.explain("Traceback (most recent call last):\n  File x\nOSError: disk full")
    assert last.unknown == "OSError: disk full"
    assert not lab.explain("").known and not lab.explain("HTTP error 401 and 9000 stars").known


@pytest.mark.parametrize("wrong", [3.5, True, ["a"], object()])
def test_what_is_no_error_is_refused(wrong):
    with pytest.raises(TypeError, match="expected the text of an error"):
        lab.explain(wrong)


def test_the_whole_index_as_a_table():
    table = lab.explain()._repr_markdown_()
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) == len(INDEX) == len({entry.name for entry in INDEX})
    text = repr(lab.explain())
    for entry in INDEX:
        assert entry.name[1:] in table and entry.name[1:] in text and entry.cell.split()[-1] in table
        assert " ".join(entry.cure.split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)


def test_every_entry_is_complete():
    for entry in INDEX:
        assert (
            len(entry.cause) > 30
            and len(entry.cure) > 20
            and entry.cause[-1] in ".)"
            and entry.cure[-1] in ".)"
        )
        file = entry.source.startswith("minillm/") and (COURSE / entry.source).is_file()
        assert file or entry.source.startswith("https://"), entry.source


@pytest.mark.parametrize("cell", sorted({entry.cell for entry in INDEX if " " in entry.cell}))
def test_the_cell_that_shows_it_exists(cell):
    lesson, _, name = cell.partition(" ")
    files = list((COURSE / "notebooks").glob(f"{lesson}_*.ipynb"))
    assert len(files) == 1, f"lesson {lesson} is not there"
    cells = json.loads(files[0].read_text(encoding="utf-8"))["cells"]
    assert name in [c["id"] for c in cells]
    assert place(cell, COURSE).heading


def test_a_cell_is_found_under_its_heading(tmp_path, monkeypatch):
    cells = [
        ("markdown", "a", "# Title\n\ntext\n\n## 1 · `fork` and *join* (twice)\n```\n# no heading\n```"),
        ("code", "b", "# a comment"),
        ("markdown", "c", "no heading"),
        ("code", "d", "x"),
        ("markdown", "e", "### [Next](http://a) part_two"),
    ]
    cells = [{"cell_type": kind, "id": name, "source": text} for kind, name, text in cells]
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "exercises").mkdir()
    file = tmp_path / "notebooks" / "02_x.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    assert place("02 d", tmp_path).heading == place("02 b", tmp_path).heading == "1 · fork and join (twice)"
    assert place("02 e", tmp_path).heading == "Next part_two"
    # JupyterLab makes an anchor of a heading's text by putting "-" for blanks
    monkeypatch.chdir(tmp_path / "exercises")
    link = place("02 b", tmp_path).markdown()
    assert link.startswith(
        "[02 · 1 · fork and join (twice)](../notebooks/02_x.ipynb#1-%C2%B7-fork-and-join-%28twice%29)"
    )
    assert link.endswith("(cell `b`)")
    # a changed heading is seen at once; with an unknown cell or a damaged notebook the lesson is left
    cells[0]["source"] = "## New"
    file.write_text(json.dumps({"cells": cells}) + " ")
    assert place("02 b", tmp_path).heading == "New"
    assert place("02 zz", tmp_path).heading is None and "02_x" in place("02 zz", tmp_path).markdown()
    assert place("07", tmp_path).markdown() == "lesson 07"
    file.write_text("{")
    assert place("02 b", tmp_path).words() == "lesson 02 (cell b)"


def test_python_in_prose_is_marked_as_code():
    assert prose("Use x[[0, 1]], device=. Or f(g()).a(b) of torch.where.") == (
        "Use `x[[0, 1]]`, `device=`. Or `f(g()).a(b)` of `torch.where`."
    )
    assert prose("cuBLAS (a, b) since 2.9, `with x:` keep_graph=True.") == (
        "cuBLAS (a, b) since 2.9, `with x:` `keep_graph=True`."
    )
