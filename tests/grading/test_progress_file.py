"""progress.json: counted right, never lost, never in the way."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from minillm.grading import check, hint, progress, progress_file
from minillm.grading.registry import all_exercises

ROOT = Path(__file__).parents[2]
TOTAL = len(all_exercises())


def right(busy_us, wall_us):
    return 1 - busy_us / wall_us


def wrong(busy_us, wall_us):
    return busy_us / wall_us


def stub(busy_us, wall_us):
    raise NotImplementedError


def entry(path, id="0.1"):
    return json.loads(path.read_text(encoding="utf-8"))["exercises"][id]


def test_attempts_first_pass_and_misconceptions(progress_path):
    for answer in (stub, wrong, wrong):
        check("0.1", answer)
    assert entry(progress_path)["attempts"] == 2
    assert entry(progress_path)["first_pass"] is None
    check("0.1", right)
    first = entry(progress_path)["first_pass"]
    assert first.endswith("+00:00")
    check("0.1", wrong)
    found = entry(progress_path)
    assert found["attempts"] == 4 and found["first_pass"] == first and found["status"] == "FAIL"
    assert found["misconceptions"] == {"busy-fraction": 3}


def test_passing_again_keeps_the_first_time(progress_path):
    check("0.1", right)
    text = progress_path.read_text(encoding="utf-8").replace(
        entry(progress_path)["first_pass"], "2020-01-02T03:04"
    )
    progress_path.write_text(text, encoding="utf-8")
    check("0.1", right)
    assert entry(progress_path)["first_pass"] == "2020-01-02T03:04"
    assert "2020-01-02 03:04 UTC" in repr(progress())


def test_the_board_keeps_what_was_passed():
    check("0.1", right)
    check("0.1", stub)
    board = progress()
    assert f"1 of {TOTAL} exercises passed" in repr(board)
    assert next(row for row in board.rows if row[0] == "0.1")[2] == "PASS"
    html = board._repr_html_()
    assert html.count("<tr>") == TOTAL + 1 and "PASS" in html


def test_a_board_without_a_file():
    assert f"0 of {TOTAL} exercises passed" in repr(progress())


@pytest.mark.parametrize(
    "damaged",
    [
        '{"version": 1, "exercises": {"0.1": {"attempts": "many"}}}',
        '{"version": 1, "exercises": {"0.1": {"misconceptions": {"busy-fraction": "x"}}}}',
        '{"version": 1, "exercises": {"0.1": {"misconceptions": null}}}',
        "[" * 100_000,
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 99, "exercises": {}}',
        '{"version": 1, "exercises": {"0.1": 3}}',
    ],
)
def test_a_damaged_file_is_set_aside(progress_path, damaged):
    progress_path.write_text(damaged, encoding="utf-8")
    with pytest.warns(UserWarning, match="it was kept as progress.damaged-"):
        assert check("0.1", right).passed
    aside = list(progress_path.parent.glob("progress.damaged-*.json"))
    assert [path.read_text(encoding="utf-8") for path in aside] == [damaged]
    assert entry(progress_path)["attempts"] == 1


def test_two_damaged_files_are_both_kept(progress_path):
    for damaged in ("first", "second"):
        progress_path.write_text(damaged, encoding="utf-8")
        with pytest.warns(UserWarning):
            hint("0.1")
    aside = progress_path.parent.glob("progress.damaged-*.json")
    assert {path.read_text(encoding="utf-8") for path in aside} == {"first", "second"}


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("MINILLM_PROGRESS", str(tmp_path / "file" / "progress.json"))
    with pytest.warns(UserWarning, match="kept until the kernel stops"):
        assert check("0.1", right).passed
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        check("0.1", wrong)
        assert f"1 of {TOTAL} exercises passed" in repr(progress())
    assert progress_file.read()["0.1"]["attempts"] == 2


def test_a_file_that_cannot_be_read_is_not_replaced(progress_path):
    progress_path.mkdir()
    with pytest.warns(UserWarning, match="cannot be read"):
        assert check("0.1", right).passed
    assert progress_path.is_dir() and progress_file.read()["0.1"]["attempts"] == 1


def test_a_write_that_fails_leaves_the_old_file(progress_path, monkeypatch):
    check("0.1", right)
    before = progress_path.read_text(encoding="utf-8")

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.warns(UserWarning, match="No space left"):
        assert check("0.1", wrong).status == "FAIL"
    assert progress_path.read_text(encoding="utf-8") == before
    assert [path.name for path in progress_path.parent.iterdir()] == ["progress.json"]


WRITER = """
import sys
from minillm.grading import progress_file
from minillm.grading.outcome import Outcome
for _ in range(40):
    progress_file.note_outcome(Outcome(sys.argv[1], "FAIL", "", "slip"))
    progress_file.note_outcome(Outcome("0.1", "FAIL", "", "slip"))
"""


def test_kernels_that_write_at_the_same_time_lose_nothing(progress_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITER]
    running = [subprocess.Popen([*command, id], env=environment) for id in ("1.1", "1.2")]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    assert entry(progress_path, "1.1")["attempts"] == entry(progress_path, "1.2")["attempts"] == 40
    assert entry(progress_path)["attempts"] == 80


def test_the_file_lies_in_the_course_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("MINILLM_PROGRESS")
    course = tmp_path / "course"
    (course / "exercises" / "deeper").mkdir(parents=True)
    monkeypatch.chdir(course / "exercises" / "deeper")
    assert progress_file.location() == Path.cwd() / "progress.json"
    (course / "notebooks").mkdir()
    assert progress_file.location() == course / "progress.json"


def test_a_chosen_file_in_a_new_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINILLM_PROGRESS", str(tmp_path / "new" / "mine.json"))
    check("0.1", right)
    assert entry(tmp_path / "new" / "mine.json")["status"] == "PASS"


GOOD = {"status": "PASS", "attempts": 2, "first_pass": "2020-01-02T03:04:05+00:00"}


def test_good_entries_go_on_beside_a_bad_one(progress_path):
    damaged = json.dumps({"version": 1, "exercises": {"0.1": {"attempts": "many"}, "1.2": GOOD}})
    progress_path.write_text(damaged, encoding="utf-8")
    with pytest.warns(UserWarning, match="0.1: attempts is 'many'.*kept as progress.damaged-"):
        assert f"1 of {TOTAL} exercises passed" in repr(progress())
    assert entry(progress_path, "1.2")["attempts"] == 2  # it is back at once, not at the next check
    (aside,) = progress_path.parent.glob("progress.damaged-*.json")
    assert aside.read_text(encoding="utf-8") == damaged


def test_the_mark_of_an_editor_is_no_damage(progress_path):
    text = json.dumps({"version": 1, "exercises": {"1.2": GOOD}})
    progress_path.write_text("\ufeff" + text, encoding="utf-8")
    check("0.1", right)
    assert entry(progress_path, "1.2")["attempts"] == 2
    assert [path.name for path in progress_path.parent.iterdir()] == ["progress.json"]


@pytest.mark.skipif(os.name == "nt", reason="links and modes are those of POSIX")
def test_a_link_and_the_files_mode_stay(tmp_path, monkeypatch):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text(json.dumps({"version": 1, "exercises": {}}), encoding="utf-8")
    real.chmod(0o664)
    link.symlink_to(real)
    monkeypatch.setenv("MINILLM_PROGRESS", str(link))
    check("0.1", right)
    assert link.is_symlink() and entry(real)["status"] == "PASS"
    assert real.stat().st_mode & 0o777 == 0o664


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_a_new_file_has_the_mode_of_any_new_file(progress_path):
    (progress_path.parent / "another").write_text("", encoding="utf-8")
    check("0.1", right)
    assert progress_path.stat().st_mode == (progress_path.parent / "another").stat().st_mode


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("MINILLM_PROGRESS", "~/mine.json")
    check("0.1", right)
    assert entry(tmp_path / "mine.json")["status"] == "PASS"
