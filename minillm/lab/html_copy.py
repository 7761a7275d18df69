"""An executed notebook as one HTML page that shows its figures without a kernel and without a network."""

from __future__ import annotations

import copy

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


def flatten_widgets(notebook):
    """A copy of ``notebook`` in which each widget is replaced by the outputs that it had captured.

    A widget without any (a slider alone) leaves its text form, if it has one, else nothing: the static figure
    of the same cell says it all.
    """
    import nbformat

    notebook = copy.deepcopy(notebook)
    models = notebook.metadata.pop("widgets", {}).get(WIDGET_STATE, {}).get("state", {})

    def captured(model_id: str) -> list:
        state = models.get(model_id, {}).get("state", {})
        outputs = [nbformat.from_dict(output) for output in state.get("outputs", ())]
        for child in state.get("children", ()):
            outputs += captured(child.removeprefix("IPY_MODEL_"))
        return outputs

    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        outputs = []
        for output in cell.outputs:
            view = output.get("data", {}).pop(WIDGET_VIEW, None)
            outputs += (captured(view["model_id"]) or [output]) if view else [output]
        cell.outputs = [output for output in outputs if output.get("data") != {}]
    return notebook


def html_page(notebook) -> str | None:
    """The page, or None where nbconvert is not installed (the executed .ipynb is then all there is)."""
    try:
        from nbconvert import HTMLExporter
    except ImportError:
        return None
    body, _ = HTMLExporter(template_name="lab").from_notebook_node(flatten_widgets(notebook))
    return body
