"""lab.capture_quiz: graded by what really happens; the expected verdicts stand here, written by hand."""

import importlib
import json
import re
from pathlib import Path

import pytest

from minillm import lab
from minillm.lab.quiz import trial
from minillm.lab.quiz.graded import Graded, Questions, Row
from minillm.lab.quiz.lines import LINES

# line -> what becomes of it, by hand, and a recorded program that does the like
EXPECTED = {
    "y = x * torch.tensor(3.0)": ("captured", "copies: host number"),
    "n = x.sum().item()": ("broken", "waits: item"),
    "y = torch.where(x > 0, x, 0.0)": ("captured", "number: where of a number of python"),
    "y = x[x > 0]": ("broken", "read: mask"),
    "y[x > 0] = 7.0": ("captured", "write: mask = number"),
    "y[0] = 7.0": ("refused", "write: int = number"),
    "y = torch.tensor([1.0, 2.0], device=device)": ("refused", "copies: tensor on the device"),
    "y = torch.randn(4, device=device)": ("captured", "random: randn"),
    "print(x)": ("broken", "waits: print"),
    "y = x + 1 if x.shape[0] > 2 else x - 1": ("captured", "waits: len and shape"),
}
RIGHT = "ynynynnyny"
WORDS = {
    "captured": "",
    "refused": "Cannot copy between CPU and CUDA tensors during CUDA graph capture",
    "broken": "CUDA error: operation not permitted when stream is capturing",
}


@pytest.fixture
def no_worker(monkeypatch):
    from minillm.lab import subprocess_cells

    def refuse(*_args, **_kwargs):
        raise AssertionError("nothing should have been run")

    monkeypatch.setattr(subprocess_cells, "in_subprocess", refuse)


@pytest.fixture(scope="module")
def graded():
    return lab.capture_quiz(RIGHT)


def test_what_really_happens_is_what_was_written_down_by_hand(graded):
    by_hand = {code: verdict for code, (verdict, _) in EXPECTED.items()}
    assert {row.line.code: row.verdict for row in graded.rows} == by_hand
    assert [row.words.startswith(WORDS[row.verdict]) for row in graded.rows] == [True] * 10
    assert all(row.words for row in graded.rows if row.verdict != "captured")
    assert graded.score == graded.answered == 10
    assert {*by_hand.values()} == {"captured", "refused", "broken"}


def test_a_gpu_was_recorded_to_do_the_same():
    recorded = Path(__file__).resolve().parents[1] / "graphs" / "recorded" / "nvidia-h200.json"
    outcomes = json.loads(recorded.read_text(encoding="utf-8"))["outcomes"]
    for verdict, program in EXPECTED.values():
        result = outcomes[program]["outcome"]["result"]
        happened = "broken" if "with" in result else "refused" if "first" in result else "captured"
        assert happened == verdict and ("replays" in result) == (verdict != "broken"), program


def test_each_way_to_answer_a_line_wrong_is_marked(graded):
    for row in graded.rows:
        other = {"y": "n", "n": "y"}[row.answer]
        assert Row(row.number, row.line, other, row.verdict).right is False
        assert Row(row.number, row.line, "?", None).right is None
        assert Row(row.number, row.line, other, "unknown").right is None


def test_only_what_was_answered_is_tried_and_told(monkeypatch):
    from minillm.lab import subprocess_cells

    run, ran, workers = subprocess_cells.in_subprocess, [], []
    handle = subprocess_cells.WorkerHandle
    monkeypatch.setattr(subprocess_cells, "WorkerHandle", lambda: workers.append(handle()) or workers[-1])

    def watched(snippets, **options):
        ran.extend(snippets)
        return run(snippets, **options)

    monkeypatch.setattr(subprocess_cells, "in_subprocess", watched)
    graded = lab.capture_quiz(" ?Y???\nY???? ")
    assert len(workers) == 1  # a broken capture is put right, so the next line needs no new process
    assert len(ran) == 2 and "item()" in ran[0] and "y[0] = 7.0" in ran[1]
    assert (graded.score, graded.answered) == (0, 2)
    assert [row.verdict for row in graded.rows if row.answer != "?"] == ["broken", "refused"]
    for shown in (repr(graded), graded._repr_markdown_()):
        assert "8 not answered" in shown and shown.count("✗ wrong") == 2 and "✓" not in shown
        told = [line.why[:20] in shown.replace("`", "") for line in LINES]
        assert told == [letter == "y" for letter in "nynnnynnnn"]


@pytest.mark.usefixtures("no_worker")
def test_without_answers_nothing_is_run_and_nothing_is_spoilt():
    for answers in ("", "  ", "??????????"):
        shown = lab.capture_quiz(answers)
        assert isinstance(shown, Questions)
        for text in (repr(shown), shown._repr_markdown_()):
            assert all(line.code in text for line in LINES) and 'lab.capture_quiz("y?n…")' in text
            assert not any(line.why[:15] in text for line in LINES)
            assert not re.search("refused|broken|right|wrong", text)
        assert re.findall(r"(?m)^ ?(\d+)  ", repr(shown)) == [str(n) for n in range(1, 11)]


@pytest.mark.usefixtures("no_worker")
@pytest.mark.parametrize(
    "answers, error, words",
    [
        ("yyy", ValueError, "3 answers for 10 lines; expected a letter for each line"),
        ("y" * 11, ValueError, "11 answers for 10 lines"),
        ("yyyyxyyyyy", ValueError, "answer 5 is 'x'; expected y"),
        ("1111111111", ValueError, "answer 1 is '1'"),
        (None, TypeError, "answers is None; expected a text of 10 letters"),
        (["y"] * 10, TypeError, "expected a text"),
    ],
)
def test_answers_of_another_kind_are_refused(answers, error, words):
    with pytest.raises(error, match=words):
        lab.capture_quiz(answers)


def test_the_result_is_shown_without_colour_alone(graded):
    wrong = Graded([Row(r.number, r.line, "y", r.verdict, r.words) for r in graded.rows], graded.backend)
    text, markdown = repr(wrong), wrong._repr_markdown_()
    for shown in (text, markdown):
        assert shown.count("✓ right") == 5 and shown.count("✗ wrong") == 5 and "5 of 10 right" in shown
        assert shown.count("refused, and the capture goes on") == 2
        assert shown.count("refused, and the capture is broken") == 3
        assert "on the emulator" in shown or "on this GPU" in shown
        assert "(emulated" not in shown
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(table) == 12 and all(row.count("|") == 7 for row in table)


def test_a_line_that_could_not_be_tried_is_not_graded(monkeypatch):
    from minillm.lab import subprocess_cells
    from minillm.lab.subprocess_cells import Outcome, Outcomes

    died = Outcome(False, "", "ProcessDied", "the process ended with exit code 3\nand more", died=True)
    monkeypatch.setattr(subprocess_cells, "in_subprocess", lambda s, **_: Outcomes([died] * len(s)))
    graded = lab.capture_quiz("y" * 10)
    assert graded.score == graded.answered == 0 and "0 of 0 right" in repr(graded)
    assert repr(graded).count("could not be tried") == 10 and "exit code 3" in repr(graded)
    assert not any(line.why[:15] in repr(graded) for line in LINES)


@pytest.mark.parametrize(
    "code, verdict, words",
    [
        ("y.add_(x)", "captured", ""),
        ("x.tolist()", "refused", "Cannot copy"),
        ("print(x)", "broken", "CUDA error: operation not permitted"),
        (
            "try:\n    x.sum().item()\nexcept RuntimeError:\n    pass",
            "broken",
            "CUDA error: operation failed",
        ),
    ],
)
def test_a_trial_tells_the_three_verdicts_apart_and_leaves_the_process_sound(code, verdict, words, capsys):
    from minillm.graphs import probe

    told = trial.trial(code)
    assert told["verdict"] == verdict and told["words"].startswith(words)
    assert probe() is None and capsys.readouterr().out == ""


def test_the_form_is_for_those_who_have_widgets(monkeypatch):
    pytest.importorskip("ipywidgets")
    from minillm.lab.quiz.form import form

    box = form()
    *rows, button, result = box.children
    assert len(rows) == 10
    for line, row in zip(LINES, rows, strict=True):
        label, choice = row.children
        assert label.value.endswith(line.code) and choice.value == "?"
        assert [value for _, value in choice.options] == ["?", "y", "n"]
    asked = []
    module = importlib.import_module("minillm.lab.capture_quiz")
    monkeypatch.setattr(module, "capture_quiz", lambda letters: asked.append(letters))
    button.click()  # nothing chosen: nothing run
    assert asked == []
    rows[1].children[1].value, rows[9].children[1].value = "n", "y"
    button.click()
    assert asked == ["?n???????y"] and not button.disabled
