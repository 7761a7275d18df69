"""The launch-queue widget: its sliders redraw its picture; the static figure needs none of it."""

import base64
import builtins
import re

import pytest

from minillm import lab
from minillm.lab import widgets


def test_each_slider_redraws_the_picture_and_its_words():
    box = widgets._sliders()
    sliders = [slider for row in box.children[:-1] for slider in row.children]
    picture = box.children[-1]
    seen = [picture.value]
    for slider, value in zip(sliders, (1.0, 9.0, 20, 4), strict=True):
        slider.value = value
        seen.append(picture.value)
    assert len(set(seen)) == 5
    words = [re.search(r'alt="([^"]*)"', html)[1] for html in seen]
    assert words[0].startswith("Launch-bound") and "Synchronising every 4" in words[-1]
    # 4 launches of 1 µs, 4 kernels of 9 µs: 37 µs a round, five rounds
    assert "20 kernels of 9 µs: 185 µs in all" in words[-1]
    png = base64.b64decode(re.search(r"base64,([^\"]*)", seen[-1])[1])
    assert png.startswith(b"\x89PNG")


def test_sliders_are_described_and_wait_until_they_are_let_go():
    box = widgets._sliders()
    sliders = [slider for row in box.children[:-1] for slider in row.children]
    assert [s.description for s in sliders] == [
        "launch (µs of CPU)", "kernel (µs of GPU)", "kernels", "sync every (0: never)"
    ]  # fmt: skip
    assert not any(s.continuous_update for s in sliders)


@pytest.mark.parametrize(
    "launch, kernel, every, start",
    [
        (6, 2, None, "Launch-bound"),
        (2, 6, None, "GPU-bound"),
        (2, 6, 1, "Synchronising every 1"),
        (3, 3, None, "In balance"),
    ],
)
def test_findings(launch, kernel, every, start):
    schedule = lab.launch_queue(launch, kernel, 8, every)
    text = widgets.finding(launch, kernel, schedule, every)
    assert text.startswith(start) and f"{100 * schedule.idle_fraction:.0f}\N{NO-BREAK SPACE}%" in text


def test_the_static_figure_names_its_three_cases():
    fig, alt = widgets._static_figure()
    fig.draw_without_rendering()
    heads = [ax.texts[0].get_text() for ax in fig.axes]
    # by hand, 8 kernels: 8 x 6 + 2; 3 + 8 x 7; 8 x (4 + 4)
    for head, name, total in zip(heads, widgets.CASES, (50, 59, 64), strict=True):
        assert head.startswith(f"{name}: {total} µs, GPU idle ")
        assert f"{name} (launch" in alt and f"{total} µs" in alt
    assert "GPU idle 68" in alt and "GPU idle 5\N{NO-BREAK SPACE}%" in alt and "GPU idle 50" in alt


def test_without_ipywidgets_the_figure_stands_alone(monkeypatch, capsys):
    real = builtins.__import__

    def no_widgets(name, *args, **kwargs):
        if name.startswith("ipywidgets"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_widgets)
    assert lab.launch_queue_widget() is None
    out = capsys.readouterr().out
    assert "pip install ipywidgets" in out and "8 kernels on three launch queues" in out


def test_in_a_notebook_the_widget_comes_first_then_the_static_figure(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cell = nbformat.v4.new_code_cell("from minillm import lab\nlab.launch_queue_widget()")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    first, second = notebook.cells[0].outputs
    assert "application/vnd.jupyter.widget-view+json" in first.data
    assert first.data["text/plain"] == "Sliders: run this cell to move them."
    assert "image/png" in second.data and "three launch queues" in second.metadata["image/png"]["alt"]
