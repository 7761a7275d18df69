"""The notebooks themselves, executed: blank is green and not attempted, the solutions pass."""

import re
from pathlib import Path

import nbformat
import pytest

from minillm.lab.notebook_kernel import kernel_environment, kernel_manager_class

ROOT = Path(__file__).parents[2]


def executed(folder, tmp_path):
    """All notebooks of `folder`, one after the other in one kernel; their code cells by file and id."""
    from nbclient import NotebookClient

    paths = sorted((ROOT / folder).glob("0[01]_*.ipynb"))
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


IDS = ["0.1", "1.1", "1.2", "1.3", "1.4", "1.5"]


@pytest.mark.parametrize("folder, expected", [("exercises", "NOT ATTEMPTED"), ("solutions", "PASS")])
def test_every_check_says(folder, expected, tmp_path):
    cells = executed(folder, tmp_path)
    assert statuses(cells) == dict.fromkeys(IDS, expected)
    printed = "".join(
        output.get("text", "") for cell in cells for output in cell.outputs if output.output_type == "stream"
    )
    assert ("goes on with the reference solution" in printed) == (folder == "exercises")
    board = cells[-1].outputs[-1]["data"]["text/plain"]
    assert f"{6 if folder == 'solutions' else 0} of 6 exercises passed" in board


def answers():
    for path in sorted((ROOT / "exercises").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if "answer" in cell.metadata.get("tags", []):
                yield path.name, cell


@pytest.mark.parametrize("name, cell", list(answers()), ids=lambda value: getattr(value, "id", None))
def test_an_exercise_says_how_long_and_how_hard_it_is(name, cell):
    ours = cell.metadata["minillm"]
    assert cell.source.count("raise NotImplementedError") == 1
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
    from minillm.grading.reference import lesson00, lesson01

    assert lesson00.idle_fraction(30, 100) == pytest.approx(0.7)
    assert lesson01.finish_times([5, 5], [20, 20]) == [25, 45]
    assert lesson01.finish_times([7, 2, 9, 4], [3, 30, 1, 6]) == [10, 40, 41, 47]
    assert lesson01.bandwidth_floor_us(PRESETS["llama-1b"], 1, 400, 4800) == pytest.approx(518, abs=1)
    eight = [lesson01.bandwidth_floor_us(PRESETS["llama3-8b"], 32, context, 4800) for context in (0, 4000)]
    assert eight[1] == pytest.approx(6620, abs=10) and eight[0] < eight[1] / 2
    assert lesson01.speedup_bound([10] * 100, [2] * 100, 1) == pytest.approx(3.34, abs=0.005)
    assert lesson01.speedup_bound([10] * 100, [50] * 100, 1) == pytest.approx(1.002, abs=0.0005)
