"""Lesson 03 tells the truth: each mistake's text is wrong, each cure's right, each guard finds the mistake.

Right is what the verse says. In every dtype that a reader's device may choose, the first wrong character is
the same.
"""

import contextlib
import io
import json
import warnings
from pathlib import Path

import pytest
import torch

from minillm import config, lab
from minillm.graphs import backend
from minillm.lab.figures import recital as draw
from minillm.lab.recital_mistakes import DEAD_INPUT

LESSON = Path(__file__).parents[1] / "notebooks" / "03_static_buffers.ipynb"
CELLS = json.loads(LESSON.read_text(encoding="utf-8"))["cells"]
FIRST_WRONG = {  # counted from 1, where the cell draws once
    "rebind": 3,
    "stale-rows": 5,
    "aliased-output": 1,
    "freed-input": 2,
    "frozen-number": 3,
    "frozen-branch": 20,
    "rebound-weights": 2,
    "pinned-staging": 14,
}
DTYPES = [torch.float32, torch.float16]
if config.default_dtype(torch.device("cuda" if torch.cuda.is_available() else "cpu")) != torch.float16:
    DTYPES.append(torch.bfloat16)


@pytest.fixture(scope="module", params=DTYPES, ids=str)
def told(request):
    """Cell id -> (what it printed, the alternative texts of what it drew)."""
    found, names, drawn = {}, {"__name__": "lesson"}, []
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(draw, "show", lambda fig, alt: drawn.append(alt))
        for module in ("minillm.model", "minillm.lab.recital_mistakes"):
            patch.setattr(f"{module}.default_dtype", lambda device: request.param)
        for cell in CELLS:
            if cell["cell_type"] != "code" or cell["id"] in ("first-cell", "freed-input-guard"):
                continue
            drawn.clear()
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
            found[cell["id"]] = said.getvalue(), list(drawn)
    return found


@pytest.mark.parametrize("stem, place", FIRST_WRONG.items())
def test_a_mistake_shows_where_the_lesson_says(told, stem, place):
    [alt] = told[stem][1]
    assert f"Wrong from character {place} on" in alt


@pytest.mark.parametrize("stem", [*FIRST_WRONG, "stale-columns"])
def test_a_cure_cures(told, stem):
    [alt] = told[f"{stem}-cure"][1]
    assert "characters are right" in alt


def test_stale_columns_do_harm_only_with_a_stale_length(told):
    said, (columns, length) = told["stale-columns"]
    assert "characters are right" in columns and "Wrong from character 2 on" in length
    assert "copy_rows: 7 blocks, table [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]" in said


def test_a_branch_has_a_second_cure(told):
    assert "right: True" in told["frozen-branch-cure-graphs"][0]


def test_a_graph_of_16_takes_no_17_rows_and_one_row_for_all(told):
    refused, copied, rows = told["other-rows"][0].splitlines()
    assert refused.startswith("17 refused: ") and "(16)" in refused and "(17)" in refused
    assert copied == f"1 copied: {[7] * 16}" and rows == "rows of logits: 16"


def test_a_weak_reference_knows_that_an_input_is_freed(told):
    assert told["freed-input-guard-weak"][0] == "the graph may run: False\n"


def test_a_wait_keeps_a_pinned_buffer_from_being_overtaken(told):
    first, second = told["further-race"][0].splitlines()
    assert first.endswith("got 2" if backend == "cuda" else "got 1") and second.endswith("got 1")


@pytest.mark.parametrize(
    "guard, finds, silent",
    [
        ("rebind", "block_tables was [1, 6]", None),
        ("stale-rows", "copy_rows leaves stale values: {'token_ids'", "load leaves stale values: {}"),
        (
            "stale-columns",
            "copy_rows leaves stale values: {'block_tables': 5}",
            "load leaves stale values: {}",
        ),
        ("aliased-output", "kept: 40 tensors at 1 address", "cloned: 40 tensors at 40 address"),
        ("frozen-number", "31: replay equals eager: False", "30: replay equals eager: True"),
        ("frozen-branch", "False: replay equals eager: False", "True: replay equals eager: True"),
        ("rebound-weights", "tensors moved, the first: embedding.weight was", None),
        ("pinned-staging", ": [12]", ": []"),
        ("address", "kv.key[2] was", None),
    ],
)
def test_a_guard_finds_the_mistake_and_is_silent_without_it(told, guard, finds, silent):
    said, _ = told[f"{guard}-guard"]
    assert finds in said and (silent or "") in said
    assert "token_ids was" not in said or guard == "rebind"


def test_the_process_is_sound_at_the_end(told):
    assert "sound" in told["healthy"][0]


def test_a_dead_input_is_found_where_torch_looks_for_it():
    [outcome] = lab.in_subprocess(DEAD_INPUT)
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    if backend == "emulated" or version >= (2, 13):
        assert "detected 1 dead tensor(s)" in outcome.message
    else:
        assert outcome.ok and "has no check_input_liveness" in outcome.stdout


@pytest.mark.parametrize("stem", [*FIRST_WRONG, "stale-columns"])
def test_every_section_has_its_parts(stem):
    ids = [cell["id"] for cell in CELLS]
    parts = [f"{stem}-predict", stem, f"{stem}-explain", f"{stem}-cure", f"{stem}-guard"]
    assert sorted(parts, key=ids.index) == parts
