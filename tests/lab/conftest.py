"""What the tests of experiments and records share: an empty registry, a pretended GPU, records."""

import pytest

RUN = {
    "gpu": "NVIDIA H200",
    "torch": "2.11.0+cu130",
    "date": "2026-11-29",
    "compute_capability": "9.0",
    "driver": "580.1",
    "cuda": "13.0",
    "python": "3.12.3",
    "cpu": "a CPU",
    "add_us": 12.3,
}


@pytest.fixture
def run_info():
    return dict(RUN)


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """Experiments of this test alone, and a folder of records that is empty; no GPU."""
    from minillm.lab import experiments, live_or_recorded, records

    folder = tmp_path / "records"
    folder.mkdir()
    monkeypatch.setattr(experiments, "_registered", {})
    monkeypatch.setattr(live_or_recorded, "_live", {})
    monkeypatch.setattr(records, "FOLDER", folder)
    monkeypatch.delenv("MINILLM_RECORD", raising=False)
    monkeypatch.setattr(live_or_recorded, "on_gpu", lambda: False)
    return folder


@pytest.fixture
def on_h200(registry, monkeypatch):
    """Pretends that this process runs on an H200."""
    from minillm.lab import live_or_recorded

    monkeypatch.setattr(live_or_recorded, "on_gpu", lambda: True)
    monkeypatch.setattr(
        live_or_recorded, "live_run", lambda: {key: RUN[key] for key in ("gpu", "torch", "date")}
    )
    monkeypatch.setattr(live_or_recorded, "provenance", lambda: dict(RUN))
    return registry


@pytest.fixture
def change_the_experiment(registry):
    """Registers toy/step/{preset}/B={batch} and toy/add; calling it gives the first another source."""
    from minillm.lab import experiments

    @experiments.experiment("toy/step/{preset}/B={batch}")
    def step(preset, batch):
        return {"x": 1}

    @experiments.experiment("toy/add")
    def add():
        return {}

    def change():
        del experiments._registered["toy/step/{preset}/B={batch}"]

        @experiments.experiment("toy/step/{preset}/B={batch}")
        def step(preset, batch):
            return {"x": 2}

    return change
