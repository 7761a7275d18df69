"""The launch-queue simulator with sliders, and the same information as a picture for those without them."""

from __future__ import annotations

import base64
import html

from .figures.show import png_bytes, show
from .figures.style import figure
from .figures.timeline import draw_schedule
from .wording import percent

# name -> (launch µs, kernel µs, sync every k): what each of the three bottlenecks looks like
CASES = {
    "Launch-bound": (6.0, 2.0, None),
    "GPU-bound": (3.0, 7.0, None),
    "Synchronising": (4.0, 4.0, 1),
}
KERNELS = 8


def launch_queue_widget() -> None:
    """Display sliders over `lab.launch_queue` (launch µs, kernel µs, kernels, sync every k) and a figure.

    The sliders work from the keyboard. The figure below them shows the three cases that they lead to;
    without ipywidgets it stands alone, with a line that says so.
    """
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        print(
            "The sliders need ipywidgets (pip install ipywidgets); here are the three cases that they show."
        )
    else:
        display_widget(_sliders(), "Sliders: run this cell to move them.")
    fig, alt = _static_figure()
    show(fig, alt)


def finding(launch_us: float, kernel_us: float, schedule, sync_every: int | None) -> str:
    """What a schedule shows, in a sentence: who waits for whom."""
    idle = f"the GPU is idle {percent(schedule.idle_fraction)} of the time"
    if schedule.waits:
        return f"Synchronising every {sync_every}: {idle}"
    if launch_us > kernel_us:
        return f"Launch-bound: {idle}"
    if kernel_us > launch_us:
        return f"GPU-bound: the CPU runs ahead, {idle}"
    return f"In balance: {idle}"


def _picture(launch_us: float, kernel_us: float, kernels: int, sync_every: int) -> tuple[bytes, str]:
    """PNG bytes and their alternative text; ``sync_every`` 0 means never."""
    from .launch_queue import launch_queue

    every = sync_every or None
    schedule = launch_queue(launch_us, kernel_us, kernels, every)
    title = finding(launch_us, kernel_us, schedule, every)
    fig, ax = figure(title, size=(8.0, 2.4), note="simulated, no GPU was timed")
    draw_schedule(ax, schedule, f"{kernels} kernel{'s' if kernels > 1 else ''}")
    cost = f"launches of {launch_us:g} µs, {kernels} kernel{'s' if kernels > 1 else ''} of {kernel_us:g} µs"
    alt = f"{title}; {cost}: {schedule.total_us:g} µs in all."
    return png_bytes(fig), alt


def _sliders():
    """The widget: four sliders over an HTML picture, which carries its alternative text."""
    import ipywidgets as widgets

    # A picture is drawn when a slider is let go or moved by a key, not for every dot that it is dragged over.
    look = {
        "continuous_update": False,
        "style": {"description_width": "150px"},
        "layout": widgets.Layout(width="380px"),
    }
    controls = {
        "launch_us": widgets.FloatSlider(
            value=10.0, min=0.5, max=20, step=0.5, description="launch (µs of CPU)", **look
        ),
        "kernel_us": widgets.FloatSlider(
            value=8.0, min=0.5, max=20, step=0.5, description="kernel (µs of GPU)", **look
        ),
        "kernels": widgets.IntSlider(value=12, min=1, max=40, description="kernels", **look),
        "sync_every": widgets.IntSlider(value=0, min=0, max=10, description="sync every (0: never)", **look),
    }
    picture = widgets.HTML()

    def draw(_change=None) -> None:
        png, alt = _picture(**{name: control.value for name, control in controls.items()})
        data = base64.b64encode(png).decode("ascii")
        look = "max-width:100%;width:800px"
        picture.value = f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{data}" style="{look}">'

    for control in controls.values():
        control.observe(draw, names="value")
    draw()
    sliders = list(controls.values())
    return widgets.VBox([widgets.HBox(sliders[:2]), widgets.HBox(sliders[2:]), picture])


def display_widget(widget, instead: str) -> None:
    """Display a widget; where it cannot live (GitHub, a PDF) the sentence ``instead`` stands in its place."""
    from IPython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        return
    if not hasattr(widget, "_repr_mimebundle_"):  # ipywidgets 7
        display(widget)
        return
    bundle = widget._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    display({**data, "text/plain": instead}, metadata=metadata, raw=True)


def _static_figure():
    """The three cases side by side, each under its finding; and the alternative text."""
    from .launch_queue import launch_queue

    runs = {
        name: launch_queue(launch, kernel, KERNELS, every) for name, (launch, kernel, every) in CASES.items()
    }
    worst = runs["Launch-bound"].idle_fraction
    fig, axes = figure(
        f"A GPU that waits for launches idles {percent(worst)} of the time; one with enough work hides them",
        size=(11.0, 2.6),
        columns=len(CASES),
        note="simulated, no GPU was timed",
    )
    parts = []
    for ax, (name, schedule) in zip(axes, runs.items(), strict=True):
        launch, kernel, every = CASES[name]
        draw_schedule(ax, schedule, name)
        numbers = f"launch {launch:g} µs, kernel {kernel:g} µs" + (f", sync every {every}" if every else "")
        ax.set_xlabel(f"time (µs)\n{numbers}")
        parts.append(
            f"{name} ({numbers}): {schedule.total_us:g} µs, GPU idle {percent(schedule.idle_fraction)}"
        )
    return fig, f"{KERNELS} kernels on three launch queues. " + "; ".join(parts) + "."
