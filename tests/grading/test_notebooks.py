"""The notebooks themselves, executed: blank is green and not attempted, the solutions pass."""

import re
from fractions import Fraction
from pathlib import Path

import nbformat
import pytest
import torch

from minillm.grading.reference import lesson00, lesson01
from minillm.grading.registry import all_exercises
from minillm.lab.notebook_kernel import kernel_environment, kernel_manager_class

ROOT = Path(__file__).parents[2]


def executed(folder, tmp_path):
    """All notebooks of `folder`, one after the other in one kernel; their code cells by file and id."""
    from nbclient import NotebookClient

    paths = sorted((ROOT / folder).glob("[0-9][0-9]_*.ipynb"))
    cells = [(path.name, cell) for path in paths for cell in nbformat.read(path, as_version=4).cells]
    for number, (_, cell) in enumerate(cells):
        cell.id = f"{number}-{cell.id}"  # the first cell stands in each notebook
    joined = nbformat.v4.new_notebook(cells=[cell for _, cell in cells])
    client = NotebookClient(
        joined,
        timeout=60,
        kernel_manager_class=kernel_manager_class(tmp_path / "kernel.json"),
        resources={"metadata": {"path": str(ROOT / folder)}},
    )
    client.execute(env=kernel_environment(tmp_path, threads=1))
    return [cell for _, cell in cells if cell.cell_type == "code"]


def statuses(cells):
    """What each check cell says, by exercise id."""
    found = {}
    for cell in cells:
        if match := re.match(r'check\("([\d.]+)"', cell.source):
            text = cell.outputs[-1]["data"]["text/plain"]
            found[match[1]] = text.split("  ")[0]
    return found


IDS = [each.id for each in all_exercises()]


@pytest.mark.parametrize("folder, expected", [("exercises", "NOT ATTEMPTED"), ("solutions", "PASS")])
def test_every_check_says(folder, expected, tmp_path, answered):
    if folder == "exercises" and answered:
        pytest.skip("a learner's answers stand in exercises/")
    cells = executed(folder, tmp_path)
    assert statuses(cells) == dict.fromkeys(IDS, expected)
    printed = "".join(
        output.get("text", "") for cell in cells for output in cell.outputs if output.output_type == "stream"
    )
    assert ("goes on with the reference solution" in printed) == (folder == "exercises")
    board = cells[-1].outputs[-1]["data"]["text/plain"]
    assert f"{len(IDS) if folder == 'solutions' else 0} of {len(IDS)} exercises passed" in board


def answers():
    for path in sorted((ROOT / "exercises").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if "answer" in cell.metadata.get("tags", []):
                yield path.name, cell


@pytest.mark.parametrize("name, cell", list(answers()), ids=lambda value: getattr(value, "id", None))
def test_an_exercise_says_how_long_and_how_hard_it_is(name, cell, answered):
    ours = cell.metadata["minillm"]
    assert "raise NotImplementedError" in cell.source or f"exercises/{name}" in answered
    assert 1 <= ours["difficulty"] <= 5 and 1 <= ours["minutes"] <= 20 and isinstance(ours["core"], bool)


def test_every_task_states_what_a_learner_needs():
    for path in sorted((ROOT / "exercises").glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        core = 0
        for place, cell in enumerate(cells):
            if "answer" not in cell.metadata.get("tags", []):
                continue
            ours, task = cell.metadata["minillm"], cells[place - 1].source
            core += ours["core"]
            assert task.startswith(f"## {ours['exercise']} ")
            assert f"*Difficulty {ours['difficulty']} of 5 · {ours['minutes']} minutes*" in task
            assert ("★ core" in task) == ours["core"]
            for part in ("**Write**", "**Why it matters**", "<details><summary>Expected outcome</summary>"):
                assert part in task, f"{path.name} {ours['exercise']}: {part}"
            assert cells[place + 1].source.startswith(f'check("{ours["exercise"]}", ')
        assert core <= 2


def test_the_expected_outcomes_are_what_the_solutions_give():
    from minillm.config import PRESETS

    assert lesson00.idle_fraction(30, 100) == pytest.approx(0.7)
    assert lesson01.finish_times([5, 5], [20, 20]) == [25, 45]
    assert lesson01.finish_times([7, 2, 9, 4], [3, 30, 1, 6]) == [10, 40, 41, 47]
    assert lesson01.bandwidth_floor_us(PRESETS["llama-1b"], 1, 400, 4800) == pytest.approx(518, abs=1)
    eight = [lesson01.bandwidth_floor_us(PRESETS["llama3-8b"], 32, context, 4800) for context in (0, 4000)]
    assert eight[1] == pytest.approx(6620, abs=10) and eight[0] < eight[1] / 2
    assert lesson01.speedup_bound([10] * 100, [2] * 100, 0.4) == pytest.approx(4.18, abs=0.005)
    assert lesson01.speedup_bound([10] * 100, [50] * 100, 0.4) == pytest.approx(1.002, abs=0.0005)


ODD_ANSWERS = {  # other names for the arguments, and numbers that are no floats
    "1.1": lambda function, device, warm_up=3, samples=20: torch.tensor(80.0),
    "1.2": lambda launches, kernels: [Fraction(end) for end in lesson01.finish_times(launches, kernels)],
    "1.3": lambda model, sequences, tokens, speed: Fraction(500),
    "1.5": lambda launches, kernels, node: Fraction(3, 2),
}


def test_cells_that_use_an_answer_take_every_answer_that_passes(capsys):
    """However its arguments are called, and whatever kind of number it gives."""
    path = ROOT / "exercises" / "01_launch_bound_decode.ipynb"
    cells = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}
    names = {}
    exec(cells["imports"], names)
    names["answer_or_reference"] = lambda id, answer: ODD_ANSWERS[id]
    for answer in ("time_gpu", "finish_times", "bandwidth_floor_us", "speedup_bound"):
        names[answer] = None
    used = [id for id in cells if re.fullmatch(r"use-1-\d", id)]
    assert used == ["use-1-1", "use-1-3", "use-1-2", "use-1-5"]
    for id in used:
        exec(cells[id], names)
    assert names["finish_times"] is ODD_ANSWERS["1.2"]
    assert "at most 1.50 times faster" in capsys.readouterr().out


def test_the_numbers_of_the_explanation_are_what_the_cell_prints():
    gain = {us: lesson01.speedup_bound([10] * 800, [us] * 800, 0.4) for us in (8.6, 8.75, 9.5, 9.65)}
    assert gain[8.6] > 1.1 > gain[8.75]
    assert gain[9.5] > 1.01 > gain[9.65]
