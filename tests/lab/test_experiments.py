"""Names, parameters and hashes of experiments; where `lab.run` takes its numbers from."""

import importlib.util
import json
import subprocess
import sys
import textwrap

import pytest

from minillm import lab
from minillm.lab import records
from minillm.lab.experiments import (
    CannotMeasure,
    DoesNotFit,
    experiment,
    find,
    registered,
    source_hash,
)


def put_record(folder, name, data, run, source=None):
    records.write(folder / f"{records.slug(run['gpu'])}.json", name, source or source_hash(name), data, run)


# ---- names


def test_parameters_come_from_the_name(registry):
    @experiment("toy/step/{preset}/B={batch}")
    def step(preset, batch):
        return {}

    found, parameters = find("toy/step/llama-1b/B=32")
    assert found.function is step and parameters == {"preset": "llama-1b", "batch": 32}
    assert find("toy/step/8/B=-1")[1] == {"preset": 8, "batch": -1}
    assert find("toy/step/x/B=1.5")[1]["batch"] == "1.5"


@pytest.mark.parametrize(
    "name", ["toy/step/a/b/B=1", "toy/step/B=1", "toy/step/a/B=", "nowhere/x", "", "../x"]
)
def test_a_name_that_nothing_answers_to(registry, name):
    experiment("toy/step/{preset}/B={batch}")(lambda preset, batch: {})
    with pytest.raises(LookupError, match="expected one of"):
        find(name)


def test_the_error_lists_what_the_topic_has(registry):
    experiment("toy/step/{preset}")(lambda preset: {})
    with pytest.raises(LookupError, match=r"toy/step/\{preset\}"):
        find("toy/stp/a")


def test_two_that_answer_to_one_name(registry):
    def first(a):
        return {}

    def second(b):
        return {}

    experiment("toy/{a}")(first)
    experiment("toy/{b}")(second)
    with pytest.raises(LookupError, match="2 experiments"):
        find("toy/x")


def test_dots_in_a_template_are_dots(registry):
    experiment("toy/v1.5")(lambda: {})
    with pytest.raises(LookupError):
        find("toy/v1x5")


def test_parameters_must_match_the_function(registry):
    with pytest.raises(ValueError, match="batch"):
        experiment("toy/{batch}")(lambda preset: {})


def test_a_template_has_one_owner_but_may_be_defined_again(registry):
    def make():
        def one():
            return {}

        return one

    def other():
        return {}

    experiment("toy/one")(make())
    experiment("toy/one")(make())  # the same cell run again
    with pytest.raises(ValueError, match="taken by"):
        experiment("toy/one")(other)


def test_a_topic_is_loaded_when_it_is_asked_for(registry, monkeypatch, tmp_path):
    from minillm.lab import experiments

    (tmp_path / "newtopic.py").write_text(
        "from minillm.lab.experiments import experiment\n"
        "@experiment('newtopic/a')\ndef a():\n    return {'x': 1}\n"
    )
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "minillm.lab.experiments.newtopic", raising=False)
    assert "newtopic/a" not in registered()
    assert list(registered("newtopic")) == ["newtopic/a"]
    sys.modules.pop("minillm.lab.experiments.newtopic")


def test_importing_the_lab_loads_no_experiment_and_no_matplotlib():
    code = (
        "import sys; from minillm import lab; lab.run; lab.palette; "
        "late = ('minillm.lab.experiments.', 'matplotlib', 'IPython'); "
        "print([m for m in sys.modules if m.startswith(late)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


# ---- hashes

FIRST = """
from minillm.lab.experiments import experiment

SIZES = (1, 2)

def helper():
    return 1

@experiment("toy/a", claim="C1", uses=[helper, SIZES])
def a():
    '''What it says.'''
    return {"x": helper()}

def unused():
    return 1
"""


def hash_of(tmp_path, text):
    """The hash of toy/a when its module reads ``text``."""
    from minillm.lab import experiments

    experiments._registered.clear()
    number = len(list(tmp_path.glob("*.py")))  # a new file each time: Python caches a module's source
    path = tmp_path / f"module_{number}.py"
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location("toy_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return source_hash("toy/a")


@pytest.mark.parametrize(
    "old, new",
    [
        ('{"x": helper()}', '{"x": helper() + 1}'),
        ("def helper():\n    return 1", "def helper():\n    return 2"),
        ("SIZES = (1, 2)", "SIZES = (1, 2, 4)"),
    ],
)
def test_the_hash_changes_with_what_is_run(registry, tmp_path, old, new):
    assert old in FIRST
    assert hash_of(tmp_path, FIRST) != hash_of(tmp_path, FIRST.replace(old, new))


@pytest.mark.parametrize(
    "old, new",
    [
        ("def unused():\n    return 1", "def unused():\n    return 2"),
        ('claim="C1"', 'claim="C2"'),
        ("def a():\n", "def a():   \n"),
        ("What it says.", "What it says,\n    in more words."),
        ("says.'''\n", "says.'''\n\n    # and a remark\n"),
        ("def helper():\n", 'def helper():\n    """Documented."""\n'),
        ("import experiment\n", "import experiment\n\n\n# further down\n"),
    ],
)
def test_the_hash_ignores_what_does_not_matter(registry, tmp_path, old, new):
    assert old in FIRST
    assert hash_of(tmp_path, FIRST) == hash_of(tmp_path, FIRST.replace(old, new))


def test_every_name_of_a_template_has_its_hash(registry):
    experiment("toy/{n}")(lambda n: {})
    assert source_hash("toy/1") == source_hash("toy/2")


# ---- running


def test_without_a_gpu_and_without_a_record(registry):
    experiment("toy/a")(lambda: pytest.fail("must not run without a GPU"))
    result = lab.run("toy/a")
    assert result.data is None and result.missing and result.recorded == []
    assert (result.origin.kind, result.origin.label) == ("missing", "to be recorded on a GPU")
    with pytest.raises(RuntimeError, match="no GPU"):
        lab.run("toy/a", live=True)


def test_without_a_gpu_the_record_is_shown(registry, run_info):
    experiment("toy/a")(lambda: {})
    put_record(registry, "toy/a", {"x": 7}, run_info)
    result = lab.run("toy/a")
    assert result.data == {"x": 7}
    assert result.origin.kind == "recorded"
    assert result.origin.label == "recorded on NVIDIA H200 · 2026-11-29 · torch 2.11.0"
    assert result.origin.run == run_info and result.recorded == []


def test_a_stale_record_counts_as_missing(registry, run_info):
    experiment("toy/a")(lambda: {})
    put_record(registry, "toy/a", {"x": 7}, run_info, source="another source")
    result = lab.run("toy/a")
    assert result.missing and result.origin.label == "record is stale: to be recorded again on a GPU"


def test_the_others_stand_beside_the_best_record(registry, run_info):
    experiment("toy/a")(lambda: {})
    for gpu, x in (("Tesla T4", 1), ("NVIDIA H200", 2), ("NVIDIA L4", 3)):
        put_record(registry, "toy/a", {"x": x}, {**run_info, "gpu": gpu})
    result = lab.run("toy/a")
    assert result.data == {"x": 2}
    assert [other.data["x"] for other in result.recorded] == [3, 1]
    assert result.sources == [result, *result.recorded]


def test_on_a_gpu_it_runs_once_and_the_records_stand_beside(on_h200, run_info):
    calls = []

    @experiment("toy/a/{n}")
    def a(n):
        calls.append(n)
        return {"n": n, "pair": (1, 2), 3: "three"}

    put_record(on_h200, "toy/a/5", {"n": 99}, run_info)
    first, second = lab.run("toy/a/5"), lab.run("toy/a/5")
    assert calls == [5] and first.data == second.data
    assert first.data == {"n": 5, "pair": [1, 2], "3": "three"}  # as a record would give it back
    assert (
        first.origin.kind == "live" and first.origin.label == "live · NVIDIA H200 · 2026-11-29 · torch 2.11.0"
    )
    assert [other.data for other in first.recorded] == [{"n": 99}]
    lab.run("toy/a/6")
    assert calls == [5, 6]
    lab.run("toy/a/5", live=True)
    assert calls == [5, 6, 5]
    assert lab.run("toy/a/5", live=False).data == {"n": 99}
    assert calls == [5, 6, 5]


def test_nothing_is_written_unless_asked(on_h200):
    experiment("toy/a")(lambda: {"x": 1})
    lab.run("toy/a")
    assert list(on_h200.iterdir()) == []


def test_recording(on_h200, monkeypatch, run_info):
    @experiment("toy/a/{n}")
    def a(n):
        return {"n": n}

    monkeypatch.setenv("MINILLM_RECORD", str(on_h200))
    for n in (1, 2):
        result = lab.run(f"toy/a/{n}")
        assert result.recorded == []  # the record of this GPU is this very result
    content = json.loads((on_h200 / "nvidia-h200.json").read_text())
    assert content["gpu"] == "NVIDIA H200"
    assert list(content["runs"].values()) == [run_info]
    assert {name: entry["data"]["n"] for name, entry in content["experiments"].items()} == {
        "toy/a/1": 1,
        "toy/a/2": 2,
    }
    assert content["experiments"]["toy/a/1"]["source"] == source_hash("toy/a/1")
    monkeypatch.setattr("minillm.lab.live_or_recorded.on_gpu", lambda: False)
    assert lab.run("toy/a/2").data == {"n": 2}


def test_recording_into_one_file(on_h200, monkeypatch, tmp_path):
    experiment("toy/a")(lambda: {"x": 1})
    monkeypatch.setenv("MINILLM_RECORD", str(tmp_path / "new" / "mine.json"))
    lab.run("toy/a")
    assert json.loads((tmp_path / "new" / "mine.json").read_text())["experiments"]["toy/a"]["data"] == {
        "x": 1
    }


def test_what_does_not_fit_shows_the_record_and_why(on_h200, run_info):
    @experiment("toy/big")
    def big():
        raise DoesNotFit("26 GB are needed, 15 are free")

    missing = lab.run("toy/big")
    assert missing.missing and "26 GB" in missing.note
    put_record(on_h200, "toy/big", {"x": 1}, {**run_info, "gpu": "NVIDIA B200"})
    shown = lab.run("toy/big")
    assert shown.origin.kind == "recorded" and shown.data == {"x": 1} and "26 GB" in str(shown)


def test_running_out_of_gpu_memory_is_not_fitting(on_h200):
    import torch

    @experiment("toy/big")
    def big():
        raise torch.OutOfMemoryError("CUDA out of memory")

    assert "out of GPU memory" in lab.run("toy/big").note


def test_any_other_failure_is_not_hidden(on_h200, run_info):
    @experiment("toy/broken")
    def broken():
        raise ZeroDivisionError("a bug")

    put_record(on_h200, "toy/broken", {"x": 1}, run_info)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        lab.run("toy/broken")


@pytest.mark.parametrize(
    "data, error", [([1], TypeError), ({"x": object()}, TypeError), ({"x": float("nan")}, ValueError)]
)
def test_data_that_a_record_cannot_hold(on_h200, data, error):
    experiment("toy/bad")(lambda: data)
    with pytest.raises(error, match="toy/bad"):
        lab.run("toy/bad")


# ---- results


def test_values_by_path(registry, run_info):
    experiment("toy/a")(lambda: {})
    data = {
        "rows": [{"batch": 1, "us": {"eager": 5}}, {"batch": 2, "us": {"eager": 6}}],
        "busy": 3,
        "wall": 12,
    }
    put_record(registry, "toy/a", data, run_info)
    result = lab.run("toy/a")
    assert result.value("rows.batch") == [1, 2]
    assert result.value("rows.us.eager") == [5, 6]
    assert result.value(lambda data: data["busy"] / data["wall"]) == 0.25
    assert (
        result.say("{idle:.0%} of {wall} µs", idle=lambda data: 1 - data["busy"] / data["wall"])
        == "75% of 12 µs"
    )
    with pytest.raises(LookupError, match="batch, us"):
        result.value("rows.size")


def test_a_missing_result_says_so_in_place_of_its_sentence(registry):
    experiment("toy/a")(lambda: {})
    result = lab.run("toy/a")
    assert result.say("{wall} µs", wall=lambda data: data["wall"]) == "toy/a: to be recorded on a GPU"
    with pytest.raises(LookupError, match="result.missing"):
        result.value("wall")


def test_what_cannot_be_measured_shows_its_record_and_says_why(on_h200, run_info, monkeypatch):
    @experiment("toy/a")
    def a():
        raise CannotMeasure("the profiler is not allowed to run")

    put_record(on_h200, "toy/a", {"x": 7}, run_info)
    result = lab.run("toy/a")
    assert result.data == {"x": 7} and result.origin.kind == "recorded"
    assert result.note == "the profiler is not allowed to run"
    monkeypatch.setenv("MINILLM_RECORD", str(on_h200))
    with pytest.raises(CannotMeasure):  # a recording that lacks a measurement must not look complete
        lab.run("toy/a")


def test_a_damaged_record_is_not_written_over(on_h200, monkeypatch):
    experiment("toy/a")(lambda: {"x": 1})
    monkeypatch.setenv("MINILLM_RECORD", str(on_h200))
    path = on_h200 / "nvidia-h200.json"
    path.write_text('{"gpu": "NVIDIA H200", "runs": {')
    with pytest.raises(ValueError, match="cannot be read"):
        lab.run("toy/a")
    assert path.read_text() == '{"gpu": "NVIDIA H200", "runs": {'
