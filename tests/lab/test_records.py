"""The record files: what is written is whole, merged and readable; what is read is fresh and well chosen."""

import json
import os

import pytest

from minillm.lab import provenance, records


def test_slug():
    assert records.slug("NVIDIA H200") == "nvidia-h200"
    assert records.slug("NVIDIA A100-SXM4-80GB") == "nvidia-a100-sxm4-80gb"
    assert records.slug("NVIDIA H100 80GB HBM3 (MIG)") == "nvidia-h100-80gb-hbm3-mig"


def test_writing_merges_and_forgets_runs_that_nothing_refers_to(tmp_path, run_info):
    path = tmp_path / "folder" / "nvidia-h200.json"
    later = {**run_info, "date": "2026-12-24"}
    records.write(path, "a/x", "s1", {"v": [1, 2]}, run_info)
    records.write(path, "a/y", "s2", {"v": "µs"}, run_info)
    assert len(json.loads(path.read_text(encoding="utf-8"))["runs"]) == 1
    records.write(path, "a/y", "s3", {"v": 3}, later)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert len(content["runs"]) == 2
    assert content["experiments"]["a/x"]["data"] == {"v": [1, 2]}
    assert content["experiments"]["a/y"] == {
        "run": provenance.run_id(later),
        "source": "s3",
        "data": {"v": 3},
    }
    records.write(path, "a/x", "s1", {"v": 4}, later)
    assert list(json.loads(path.read_text(encoding="utf-8"))["runs"].values()) == [later]
    assert os.listdir(path.parent) == ["nvidia-h200.json"]  # no temporary files left


def test_a_new_recording_changes_one_line(tmp_path, run_info):
    path = tmp_path / "r.json"
    for name in ("c/z", "a/x", "b/y"):
        records.write(path, name, "s", {"v": 1}, run_info)
    before = path.read_text().splitlines()
    records.write(path, "b/y", "s", {"v": 2}, run_info)
    changed = [
        (old, new) for old, new in zip(before, path.read_text().splitlines(), strict=True) if old != new
    ]
    assert len(changed) == 1 and '"b/y"' in changed[0][0]
    assert [line.split('"')[1] for line in before if '"source"' in line] == ["a/x", "b/y", "c/z"]


def test_a_failure_while_writing_leaves_the_old_file(tmp_path, run_info, monkeypatch):
    path = tmp_path / "r.json"
    records.write(path, "a/x", "s", {"v": 1}, run_info)
    before = path.read_bytes()

    def no_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(records.os, "replace", no_disk)
    with pytest.raises(OSError, match="no space"):
        records.write(path, "a/x", "s", {"v": 2}, run_info)
    assert path.read_bytes() == before


def test_one_file_is_one_gpu(tmp_path, run_info):
    path = tmp_path / "r.json"
    records.write(path, "a/x", "s", {"v": 1}, run_info)
    with pytest.raises(ValueError, match="NVIDIA H200.*Tesla T4"):
        records.write(path, "a/x", "s", {"v": 1}, {**run_info, "gpu": "Tesla T4"})


@pytest.fixture
def shelf(tmp_path, monkeypatch, run_info):
    """Records of one experiment on several GPUs and days; data say which."""
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    for gpu, date, source in (
        ("Tesla T4", "2026-11-30", "s"),
        ("NVIDIA A100-SXM4-80GB", "2026-11-01", "s"),
        ("NVIDIA A100-PCIE-40GB", "2026-12-01", "s"),
        ("NVIDIA GeForce GTX 1650", "2027-01-01", "s"),
        ("NVIDIA H200", "2026-10-01", "old source"),
    ):
        run = {**run_info, "gpu": gpu, "date": date}
        records.write(tmp_path / f"{records.slug(gpu)}.json", "a/x", source, {"gpu": gpu}, run)
    return tmp_path


def order(gpu=""):
    fresh, stale = records.look_up("a/x", "s", gpu)
    assert all(run["gpu"] == data["gpu"] for run, data in fresh)
    return [run["gpu"] for run, _ in fresh], stale


def test_the_order_of_preference(shelf):
    wanted = ["NVIDIA A100-PCIE-40GB", "NVIDIA A100-SXM4-80GB", "Tesla T4", "NVIDIA GeForce GTX 1650"]
    assert order() == (wanted, True)  # the newer A100 first; the H200's is stale
    assert order("Tesla T4")[0] == ["Tesla T4", *[gpu for gpu in wanted if gpu != "Tesla T4"]]
    assert order("NVIDIA L4")[0] == wanted


def test_nothing_recorded(shelf):
    assert records.look_up("a/other", "s") == ([], False)


@pytest.mark.parametrize(
    "text", ["{not json", "[]", '{"gpu": "x"}', '{"gpu": 1, "runs": 3, "experiments": 4}']
)
def test_a_damaged_file_is_named_and_the_others_are_used(shelf, text):
    (shelf / "broken.json").write_text(text)
    with pytest.warns(UserWarning, match="broken.json.*--record"):
        assert len(order()[0]) == 4


def test_records_that_are_shipped_can_be_read_and_say_where_they_come_from(recwarn):
    for path in records.FOLDER.glob("*.json"):
        content = records.read(path)
        assert path.stem == records.slug(content["gpu"])
        for run in content["runs"].values():
            assert set(run) == {
                "gpu", "compute_capability", "driver", "torch", "cuda", "python", "cpu", "add_us", "date"
            }  # fmt: skip
        for name, entry in content["experiments"].items():
            assert entry["run"] in content["runs"], name
    assert not recwarn.list


def test_provenance_needs_a_gpu():
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match="needs a CUDA GPU"):
        provenance.provenance()


def test_runs_of_one_day_are_told_apart(run_info):
    assert provenance.run_id(run_info) == provenance.run_id(dict(reversed(run_info.items())))
    assert provenance.run_id(run_info) != provenance.run_id({**run_info, "add_us": 12.4})
    assert provenance.run_id(run_info).startswith("2026-11-29-")
