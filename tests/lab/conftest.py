"""What the tests of experiments and records share: an empty registry, a pretended GPU, records.

And captured decode steps: one of the emulator, one that an H200 gave.
"""

import json
from pathlib import Path

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


@pytest.fixture(scope="session")
def captured_step():
    """(anatomy, step, marks) of the tiny preset, emulated.

    A mark is (name of a module or function, first node, one after the last node), from hooks in Python,
    which know nothing of addresses.
    """
    from minillm import decoder_layer, lab
    from minillm.graphs import anatomy, emulator
    from minillm.graphs.emulator.streams import now

    step, marks = lab.decode_step("tiny", batch=2, device="cpu"), []

    def here():
        return len(now.capture.nodes) if now.capture else 0

    begun, hooks = [], []
    for name, module in step.model.named_modules():
        hooks.append(module.register_forward_pre_hook(lambda *_: begun.append(here())))
        hooks.append(
            module.register_forward_hook(lambda *_, name=name: marks.append((name, begun.pop(), here())))
        )

    def marked(name, function):
        def call(*args, **kwargs):
            start = here()
            result = function(*args, **kwargs)
            marks.append((name, start, here()))
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder_layer, "apply_rope", marked("rope", decoder_layer.apply_rope))
        patch.setattr(decoder_layer, "paged_attention", marked("attention", decoder_layer.paged_attention))
        patch.setattr(step.kv, "write", marked("write", step.kv.write))
        g = emulator.CUDAGraph(keep_graph=True)
        with emulator.graph(g):
            step()
    for hook in hooks:
        hook.remove()
    return anatomy(g), step, marks


@pytest.fixture(scope="session")
def h200_step():
    """(anatomy, spans of the weights) of the tiny preset on an H200, cut down to two layers of its eight."""
    from minillm.graphs.anatomy import Anatomy, Node
    from minillm.lab.step_parts import Span

    data = json.loads((Path(__file__).parent / "h200_tiny_step.json").read_text(encoding="utf-8"))
    nodes = [
        Node(
            at,
            "kernel",
            *data["kernels"][kernel],
            tuple(grid),
            tuple(block),
            0,
            tuple(int(x, 16) for x in held),
        )
        for at, (kernel, grid, block, held) in enumerate(data["nodes"])
    ]
    spans = []
    for name, (start, size) in data["spans"].items():
        start = int(start, 16)
        for part, role, short in _roles(name):
            spans.append(Span(part, role, short, start, start + size))
    return Anatomy(nodes, [(i, i + 1) for i in range(len(nodes) - 1)], "cuda"), spans


def _roles(name):
    """(part, role, name in its layer) of a span of the fixture; the head is the embedding."""
    if name.startswith("layers."):
        _, layer, short = name.split(".", 2)
        return [(int(layer) + 1, "norm" if "norm" in short else "product", short)]
    if name.startswith("kv."):
        return [(int(name[-2]) + 1, "kv", name[:-3])]
    return {
        "embedding.weight": [(0, "look-up", name), (3, "product", "head.weight")],
        "cos": [(0, "look-up", name)],
        "sin": [(0, "look-up", name)],
        "norm.weight": [(3, "norm", name)],
    }.get(name, [])
