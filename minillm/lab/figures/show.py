"""Putting a figure into a notebook: small enough for git, with words for those who cannot see it."""

from __future__ import annotations

import base64
import io
import sys

MAX_BYTES = 60_000
DPI = 200  # shown at half of that, so it is sharp on a dense screen too


def show(fig, alt: str) -> None:
    """Display ``fig`` as a PNG of at most 60 kB with the alternative text ``alt``, and close it.

    The text is kept where nbconvert looks for it (the output's metadata, under image/png) and as
    text/plain. Outside IPython it is printed. ValueError without a text.
    """
    if not alt or not alt.strip():
        raise ValueError("alt is empty; expected one or two sentences that say what the figure shows")
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        print(alt)
    else:
        if get_ipython() is None:
            print(alt)
        else:
            png = base64.b64encode(png_bytes(fig)).decode("ascii")
            display(
                {"image/png": png, "text/plain": alt},
                metadata={"image/png": {"alt": alt, "width": width_px(fig)}},
                raw=True,
            )
    if (
        "matplotlib.pyplot" in sys.modules
    ):  # else pyplot cannot hold it, and inline backends would draw it again
        sys.modules["matplotlib.pyplot"].close(fig)


def width_px(fig) -> int:
    """How wide the figure is shown: 100 dots of the page for an inch."""
    return round(fig.get_figwidth() * 100)


def png_bytes(fig, max_bytes: int = MAX_BYTES) -> bytes:
    """The figure on white as PNG, 100 dpi; fewer colours, then fewer dots, while it is over ``max_bytes``."""
    from PIL import Image

    for dpi in (DPI, 150, 100, 64):
        buffer = io.BytesIO()
        fig.savefig(buffer, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
        image = Image.open(buffer).convert("RGB")
        for colours in (256, 64, 32):
            small = io.BytesIO()
            image.quantize(colours, dither=Image.Dither.NONE).save(small, format="PNG", optimize=True)
            if small.tell() <= max_bytes:
                return small.getvalue()
    return small.getvalue()  # nothing that a lesson draws comes here; better a large picture than none
