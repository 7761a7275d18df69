"""An executed notebook as one HTML page that shows its figures without a kernel and without a network."""

from __future__ import annotations

import copy
import html

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def flatten_widgets(notebook):
    """A copy of ``notebook`` without its widgets, which are dead on a page, and with described pictures.

    The static figure in the same cell says what a widget said.
    """
    notebook = copy.deepcopy(notebook)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if WIDGET_VIEW not in output.get("data", {})]
            for output in cell.outputs:
                describe_image(output)
    return notebook


def describe_image(output) -> None:
    """Gives a picture its alternative text: nbconvert's "lab" template does not read it from the metadata."""
    about, png = output.get("metadata", {}).get("image/png", {}), output.get("data", {}).get("image/png")
    if png and about.get("alt"):
        size = "".join(f' {name}="{about[name]}"' for name in ("width", "height") if name in about)
        src = "data:image/png;base64," + png.replace("\n", "")
        output.data["text/html"] = f'<img alt="{html.escape(about["alt"])}"{size} src="{src}">'


TEMPLATE = """{% extends "lab/index.html.j2" %}
{% block html_head_js_requirejs %}{% endblock %}
{% block html_head_js_mathjax %}{% endblock %}
{% block html_head_js_mermaidjs %}{% endblock %}
{% block html_head_css %}<style>
.jp-RenderedHTMLCommon pre { font-family: var(--jp-code-font-family, monospace); }
body.jp-Notebook main { max-width: 1200px; margin: 0 auto; }
</style>{% endblock %}
"""


def html_page(notebook) -> str | None:
    """The page, or None where nbconvert is not installed (the executed .ipynb is then all there is)."""
    try:
        from nbconvert import HTMLExporter
    except ImportError:
        return None
    from jinja2 import DictLoader

    exporter = HTMLExporter(
        template_name="lab",
        template_file="minillm.html.j2",
        extra_loaders=[DictLoader({"minillm.html.j2": TEMPLATE})],
    )
    flat, about = flatten_widgets(notebook), notebook.metadata.get("minillm", {})
    flat.metadata.setdefault("title", f"{about.get('lesson', '')} {about.get('title', 'Exercises')}".strip())
    body, _ = exporter.from_notebook_node(flat)
    return body
