"""build: one source, no leaked solution, no lost work of a learner."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from minillm.grading import build as build_module
from minillm.grading.build import build, main
from minillm.lab.first_cell import CELL_ID, FIRST_CELL

ROOT = Path(__file__).parents[2]
SOLUTION = '''\
from math import fabs


def idle_fraction(busy_us, wall_us):
    """Says what to write."""
    if busy_us is None:
        return None
    ### BEGIN SOLUTION
    # a secret
    return fabs(1 - busy_us / wall_us)
    ### END SOLUTION
'''
STUB = '''\
from math import fabs


def idle_fraction(busy_us, wall_us):
    """Says what to write."""
    if busy_us is None:
        return None
    # YOUR CODE HERE
    raise NotImplementedError'''
ANSWER = {"tags": ["answer"], "minillm": {"exercise": "0.1", "minutes": 3, "difficulty": 1, "core": True}}


def solution_notebook(source=SOLUTION, check='check("0.1", idle_fraction)', metadata=ANSWER, more=()):
    output = new_output("stream", text="an old output")
    cells = [
        new_markdown_cell("# Title", id="title"),
        new_code_cell("from minillm.grading import check", id="imports", outputs=[output], execution_count=3),
        new_code_cell(source, id="answer", metadata={**metadata, "execution": {"iopub.status.busy": "now"}}),
        new_code_cell(check, id="check"),
        *more,
    ]
    return new_notebook(cells=cells, metadata={"minillm": {"lesson": "00"}})


@pytest.fixture
def course(tmp_path):
    """A course with one solution notebook; course.save(notebook) replaces it."""
    for folder in ("solutions", "notebooks", "exercises"):
        (tmp_path / folder).mkdir()
    (tmp_path / "minillm" / "grading").mkdir(parents=True)
    save(tmp_path, solution_notebook())
    return tmp_path


def save(course, notebook, name="solutions/00_start.ipynb"):
    nbformat.write(notebook, course / name)


def load(course, name="exercises/00_start.ipynb"):
    notebook = nbformat.read(course / name, as_version=4)
    nbformat.validate(notebook)
    return notebook


UP_TO_DATE = ["Everything is built."]


def said(course, **options):
    lines = []
    code = build(course, say=lines.append, **options)
    return code, lines


def contents(course):
    return {path: path.read_bytes() for path in sorted(course.rglob("*")) if path.is_file()}


def test_the_exercise_is_the_solution_without_its_solution(course):
    assert said(course)[0] == 0
    exercise = load(course)
    cells = {cell.id: cell for cell in exercise.cells}
    assert list(cells) == ["title", CELL_ID, "imports", "answer", "check"]
    assert cells["answer"].source == STUB
    assert cells["answer"].metadata == ANSWER
    assert cells[CELL_ID].source == FIRST_CELL
    assert cells["check"].source == 'check("0.1", idle_fraction)'
    assert "secret" not in (course / "exercises/00_start.ipynb").read_text(encoding="utf-8")
    assert all(not cell.outputs and cell.execution_count is None for cell in exercise.cells[1:])


def test_the_reference_is_a_module_with_the_real_function(course):
    said(course)
    text = (course / "minillm/grading/reference/lesson00.py").read_text(encoding="utf-8")
    names = {}
    exec(text, names)
    assert names["idle_fraction"](30, 100) == pytest.approx(0.7)
    assert "SOLUTION" not in text and "Generated, do not edit" in text


def test_building_twice_changes_nothing(course):
    said(course)
    before = contents(course)
    assert said(course) == (0, UP_TO_DATE) and contents(course) == before
    assert said(course, check=True) == (0, UP_TO_DATE)


def test_the_same_solution_gives_the_same_bytes(course, tmp_path):
    said(course)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(course / "solutions", elsewhere / "solutions")
    said(elsewhere)
    assert (elsewhere / "exercises/00_start.ipynb").read_bytes() == (
        course / "exercises/00_start.ipynb"
    ).read_bytes()


def test_check_writes_nothing_and_names_each_file(course):
    before = contents(course)
    code, lines = said(course, check=True)
    assert code == 1 and contents(course) == before
    names = ("solutions/00_start.ipynb", "exercises/00_start.ipynb", "minillm/grading/reference/lesson00.py")
    assert [line.split(":")[0] for line in lines[:-1]] == list(names)
    assert lines[-1] == "Run: python -m minillm build"


def test_a_solution_that_changed_is_drift_until_it_is_built(course):
    said(course)
    save(course, solution_notebook(SOLUTION.replace("Says what", "Tells what")))
    code, lines = said(course, check=True)
    assert code == 1 and any("exercises/00_start.ipynb: differs" in line for line in lines)
    said(course)
    assert "Tells what" in load(course).cells[3].source
    assert said(course, check=True)[0] == 0


def edit(course, change):
    notebook = load(course)
    change(notebook)
    save(course, notebook, "exercises/00_start.ipynb")
    return (course / "exercises/00_start.ipynb").read_bytes()


def fill_in(notebook):
    notebook.cells[3].source = SOLUTION


@pytest.mark.parametrize(
    "change",
    [
        fill_in,
        lambda notebook: notebook.cells.append(new_code_cell("my_notes = 1", id="mine")),
        lambda notebook: notebook.cells.pop(0),
        lambda notebook: notebook.metadata["minillm"].pop("built"),
    ],
)
def test_a_learners_work_is_never_overwritten(course, change):
    said(course)
    mine = edit(course, change)
    save(course, solution_notebook(SOLUTION.replace("Says what", "Tells what")))
    code, lines = said(course)
    assert code == 0 and (course / "exercises/00_start.ipynb").read_bytes() == mine
    assert any("exercises/00_start.ipynb: edited by hand, so build leaves it" in line for line in lines)
    assert "Tells what" in (course / "minillm/grading/reference/lesson00.py").read_text(encoding="utf-8")
    assert said(course, check=True)[0] == 1


def test_a_notebook_that_cannot_be_read_is_left_alone(course):
    for text in ("{ half of it", "[" * 100_000):
        (course / "exercises/00_start.ipynb").write_text(text, encoding="utf-8")
        code, lines = said(course)
        assert code == 0 and any("edited by hand" in line for line in lines)
        assert (course / "exercises/00_start.ipynb").read_text(encoding="utf-8") == text


def test_an_exercise_that_was_only_run_is_built_anew(course):
    said(course)
    clean = (course / "exercises/00_start.ipynb").read_bytes()

    def run(notebook):
        notebook.cells[4].outputs, notebook.cells[4].execution_count = [new_output("stream", text="ran")], 7

    edit(course, run)
    assert said(course, check=True)[0] == 1
    said(course)
    assert (course / "exercises/00_start.ipynb").read_bytes() == clean


BEGIN, END = "    ### BEGIN SOLUTION\n", "    ### END SOLUTION\n"
REFUSED = {
    "outside a function": (
        "def idle_fraction(a, b):\n    return 0\n\n\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION",
        "outside a function body",
    ),
    "in a class body": (
        "def idle_fraction(a, b):\n    return 0\n\n\nclass Mine:\n" + BEGIN + "    x = 1\n" + END,
        "outside a function body",
    ),
    "around a whole function": (
        "### BEGIN SOLUTION\ndef idle_fraction(a, b):\n    return 0\n### END SOLUTION",
        "outside a function body",
    ),
    "nested": (
        "def idle_fraction(a, b):\n" + BEGIN + BEGIN + "    return 0\n" + END + END,
        "BEGIN SOLUTION inside the one of line 2",
    ),
    "without an end": ("def idle_fraction(a, b):\n" + BEGIN + "    return 0\n", "without ### END"),
    "without a beginning": ("def idle_fraction(a, b):\n    return 0\n" + END, "without ### BEGIN"),
    "beside code": (
        "def idle_fraction(a, b):\n    return 0  ### BEGIN SOLUTION\n" + END,
        "alone on its line",
    ),
    "through a statement": (
        "def idle_fraction(a, b):\n    return max(\n" + BEGIN + "        0,\n" + END + "    )\n",
        "without its solution is not valid Python",
    ),
    "no markers": ("def idle_fraction(a, b):\n    return 0\n", "no solution markers"),
    "not Python": ("def idle_fraction(a, b:\n" + BEGIN + "    return 0\n" + END, "not valid Python"),
    "another name": ("def busy(a, b):\n" + BEGIN + "    return 0\n" + END, "does not define idle_fraction"),
    "a call at the top": (SOLUTION + "\n\nprint(idle_fraction(1, 2))\n", "only imports and defines"),
    "a call in an assignment": (
        SOLUTION + "\n\nHALF = [idle_fraction(1, 2)]\n",
        "called while the cell runs",
    ),
    "a call in a default": (
        SOLUTION + "\n\ndef helper(n=idle_fraction(1, 2)):\n    return n\n",
        "idle_fraction is called while the cell runs",
    ),
    "a call in a class body": (
        SOLUTION + "\n\nclass Helper:\n    half = idle_fraction(1, 2)\n",
        "idle_fraction is called while the cell runs",
    ),
    "a blank decorator": (
        "def twice(f):\n"
        + BEGIN
        + "    return f\n"
        + END
        + "\n\n@twice\ndef idle_fraction(a, b):\n    return 0",
        "twice is called while the cell runs",
    ),
    "two hashes": (SOLUTION.replace("### END", "## END"), "must be ### BEGIN SOLUTION or ### END SOLUTION"),
    "small letters": (SOLUTION.replace("### BEGIN SOLUTION", "### begin solution"), "alone on its line"),
    "one marker more, misspelt": (
        "def idle_fraction(a, b):\n    #  BEGIN  SOLUTION\n    secret = 1\n" + BEGIN + "    return 0\n" + END,
        "alone on its line",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_solution_that_would_break_run_all_or_leak_is_refused(course, kind):
    source, reason = REFUSED[kind]
    save(course, solution_notebook(source))
    before = contents(course)
    code, lines = said(course)
    assert code == 1 and len(lines) == 1
    assert lines[0].startswith("solutions/00_start.ipynb: cell answer: ") and reason in lines[0]
    assert contents(course) == before


def test_a_call_in_a_function_runs_later_and_is_allowed(course):
    helper = "\n\ndef helper(n=len([1])):\n    return idle_fraction(1, n)\n"
    save(course, solution_notebook(SOLUTION + helper + "\n\nlater = lambda: idle_fraction(1, 2)\n"))
    assert said(course)[0] == 0


def test_only_a_line_feed_ends_a_line(course):
    """Python and a notebook do not split at a form feed or U+2028, so neither may build."""
    strange = '    text = "a\u2028b\x0cc"\n'
    save(course, solution_notebook(SOLUTION.replace(BEGIN, strange + BEGIN)))
    assert said(course)[0] == 0
    assert strange in load(course).cells[3].source
    reference = (course / "minillm/grading/reference/lesson00.py").read_text(encoding="utf-8")
    names = {}
    exec(reference, names)
    assert strange in reference and names["idle_fraction"](30, 100) == pytest.approx(0.7)


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"metadata": {}}, 'no tag "answer"'),
        ({"metadata": {"tags": ["answer"]}}, "no metadata minillm.exercise"),
        ({"metadata": {"tags": ["answer"], "minillm": {"exercise": "9.9"}}}, "there is no exercise '9.9'"),
        ({"check": 'check("9.9", idle_fraction)'}, "there is no exercise '9.9'. The ids are: 0.1, 1.1"),
        ({"check": "check(idle_fraction)"}, "there is no exercise None"),
        ({"check": "pass"}, "answer cells are 0.1, check is called for none"),
        ({"more": [new_code_cell(SOLUTION, id="again", metadata=ANSWER)]}, "a second answer cell for 0.1"),
    ],
)
def test_answers_and_checks_must_belong_together(course, change, reason):
    save(course, solution_notebook(**change))
    code, lines = said(course)
    assert code == 1 and reason in lines[0]


@pytest.mark.filterwarnings("ignore::nbformat.warnings.MissingIDFieldWarning")
def test_a_cell_without_an_id_is_refused(course):
    path = course / "solutions/00_start.ipynb"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["cells"][0]["id"]
    path.write_text(json.dumps(content), encoding="utf-8")
    code, lines = said(course)
    assert code == 1 and "a cell has no id" in lines[0]


def test_the_lesson_is_that_of_the_file_name(course):
    (course / "solutions/00_start.ipynb").rename(course / "solutions/03_start.ipynb")
    code, lines = said(course)
    assert code == 1 and 'expected "03"' in lines[0]


def test_a_presenters_cell_does_not_reach_the_learner(course):
    note = new_markdown_cell("Ask the room.", id="ask", metadata={"tags": ["presenter"]})
    save(course, solution_notebook(more=[note]))
    said(course)
    assert "ask" not in [cell.id for cell in load(course).cells]


def test_magics_are_no_obstacle(course):
    save(course, solution_notebook(more=[new_code_cell("%matplotlib inline\n!true", id="magic")]))
    assert said(course)[0] == 0


def test_an_exercise_without_a_solution_is_named(course):
    said(course)
    shutil.copy(course / "exercises/00_start.ipynb", course / "exercises/01_gone.ipynb")
    code, lines = said(course, check=True)
    assert code == 1 and lines[0].startswith("exercises/01_gone.ipynb: there is no solutions/01_gone.ipynb")


def test_an_old_first_cell_is_replaced_and_stays_where_it_is(course):
    notebook = solution_notebook()
    notebook.cells.insert(1, new_code_cell("import something_old", id=CELL_ID))
    save(course, notebook)
    said(course)
    for name in ("solutions/00_start.ipynb", "exercises/00_start.ipynb"):
        cells = load(course, name).cells
        assert [cell.id for cell in cells][:3] == ["title", CELL_ID, "imports"]
        assert cells[1].source == FIRST_CELL


def test_an_installed_minillm_has_nothing_to_build(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([]) == 2
    assert "There is no solutions/ folder" in capsys.readouterr().out


def test_a_folder_without_notebooks_has_nothing_to_build(tmp_path):
    (tmp_path / "solutions").mkdir()
    code, lines = said(tmp_path, check=True)
    assert code == 2 and "nothing to build here" in lines[0]


@pytest.mark.skipif(os.name == "nt", reason="needs rights on Windows")
def test_a_link_stays_a_link(course, tmp_path):
    said(course)
    exercise, real = course / "exercises/00_start.ipynb", tmp_path / "elsewhere.ipynb"
    exercise.rename(real)
    exercise.symlink_to(real)
    save(course, solution_notebook(SOLUTION.replace("Says what", "Tells what")))
    said(course)
    assert exercise.is_symlink() and "Tells what" in real.read_text(encoding="utf-8")


def test_without_nbformat_one_line_says_what_to_install(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbformat", None)
    code, lines = said(course)
    assert code == 2 and "nbformat is not installed" in lines[0] and "[lab]" in lines[0]


def test_the_command_works_from_a_folder_inside(course, monkeypatch, capsys):
    monkeypatch.chdir(course / "exercises")
    assert main(["--check"]) == 1
    assert main([]) == 0
    assert main(["--check"]) == 0
    with pytest.raises(SystemExit):
        main(["--release"])
    assert build_module.find_root() == course


def test_this_course_is_built(answered):
    """What is committed is what build makes, and no stale output stands in a lesson."""
    if answered:
        pytest.skip("a learner's answers stand in exercises/")
    assert said(ROOT, check=True) == (0, UP_TO_DATE)


def test_generated_files_pass_ruff(answered):
    if shutil.which("ruff", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("ruff is not installed beside this Python")
    ruff = [str(Path(sys.executable).parent / "ruff")]
    generated = ["minillm/grading/reference", "exercises", "solutions"]
    for command in (["check"], ["format", "--check"]):
        ran = subprocess.run(
            [*ruff, *command, *[part for name in answered for part in ("--exclude", name)], *generated],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, "RUFF_NO_CACHE": "true"},
        )
        assert ran.returncode == 0, ran.stdout
