"""The emulator against what CUDA did: every program's outcome, as a GPU gave it once, also without a GPU."""

import dataclasses
import json
import pathlib
import re

import pytest
import torch

from minillm.graphs import limits
from minillm.graphs.emulator.streams import now
from tests.graphs import programs
from tests.graphs.conftest import clean_up

HERE = pathlib.Path(__file__).parent
RECORDED = json.loads((HERE / "recorded" / "nvidia-h200.json").read_text("utf-8"))["outcomes"]
PROGRAMS = programs.load()
ITEMS = dict(re.findall(r"(?ms)^(\d+)\. (.*?)(?=^\d+\. |\Z)", limits()))
HOW = "on a GPU: python tests/graphs/record_programs.py tests/graphs/recorded/nvidia-h200.json --stale"


def recorded(chosen):
    """What CUDA did, or the test fails and says how to find out."""
    record = RECORDED.get(chosen.name)
    if record is None:
        pytest.fail(f"no outcome of {chosen.name!r} is recorded: record it {HOW}", pytrace=False)
    if record["source"] != chosen.digest():
        pytest.fail(f"{chosen.name!r} changed since its outcome was recorded: record it {HOW}", pytrace=False)
    return record["outcome"]


def item(chosen):
    """What the emulator says of the item that ``chosen`` is marked with."""
    return ITEMS[re.match(r"item (\d+)", chosen.unfaithful)[1]]


def differs(chosen, in_a_heap):
    """Must the emulator's outcome differ from CUDA's?  Some items end where a heap begins."""
    if not chosen.unfaithful:
        return False
    return not (in_a_heap and "Within a `heap`" in item(chosen) and "in a heap too" not in chosen.unfaithful)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_outcome_is_the_recorded_one(backend, name, request):
    chosen = PROGRAMS[name]
    expected, emulated, in_a_heap = recorded(chosen), backend.name == "emulated", now.heap is not None
    if chosen.alone and not emulated:
        pytest.skip("needs a process of its own: record_programs.py runs it")
    if in_a_heap and name.startswith("pool"):
        pytest.skip("a heap has no part in a graph's pool")
    if emulated and not in_a_heap and torch.cuda.is_available() and name.startswith("pinned"):
        pytest.skip("where there is a GPU, torch itself has pinned memory for the emulator")
    fault = chosen.known_fault or in_a_heap and chosen.fault_in_a_heap
    if fault and emulated:
        request.applymarker(pytest.mark.xfail(reason=fault, strict=True))
    outcome = json.loads(json.dumps(programs.run(chosen, backend, clean_up)))
    if emulated and differs(chosen, in_a_heap):
        assert outcome != expected, f"imitated after all: {chosen.unfaithful}"
    else:
        assert outcome == expected


def test_no_record_is_left_over():
    assert sorted(set(RECORDED) - set(PROGRAMS)) == []


def test_a_new_and_a_changed_program_ask_for_a_record():
    chosen = PROGRAMS["life: keep_graph"]
    for changed in ({"name": "a new one"}, {"source": chosen.source.replace("add_(1)", "add_(2)")}):
        with pytest.raises(pytest.fail.Exception, match="record it on a GPU: python tests/graphs/record_pro"):
            recorded(dataclasses.replace(chosen, **changed))


def test_marks_and_where_a_program_stands_are_no_part_of_its_source():
    assert PROGRAMS["by hand: end twice"].source.startswith("def _(cuda, device):\n")
    assert PROGRAMS["waits: item"].source.endswith("lambda x: x.sum().item()")


def test_every_unfaithful_program_names_an_item_that_the_emulator_owns_up_to():
    """And every item has one, save what no program can see (kernels, the driver's memory, garbage)."""
    marked = [chosen for chosen in PROGRAMS.values() if chosen.unfaithful]
    assert {item(chosen) for chosen in marked} == {ITEMS[n] for n in ITEMS if n not in ("2", "9", "13")}
