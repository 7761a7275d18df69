"""The report: what it links exists, what it quotes is escaped, pages need neither a kernel nor a network."""

import html
import json
import re

import pytest

from minillm.lab import report
from minillm.lab.html_copy import flatten_widgets, html_page

MACHINE = {"backend": "emulated", "gpu": None, "torch": "2.13.0"}
OK = {"notebook": "notebooks/00.ipynb", "status": "ok", "seconds": 3.25, "cells": 4, "failing_cell": None}
OK |= {"slowest_cell": "plot", "slowest_seconds": 1.0, "error": None, "backend": "emulated", "gpu": None}
OK |= {"copy": "notebooks/00.ipynb", "page": "notebooks/00.html"}
FAILED = {
    **OK,
    "notebook": "exercises/00.ipynb",
    "status": "failed",
    "failing_cell": "boom",
    "copy": None,
    "page": None,
}
FAILED |= {"error": "ValueError: <script>alert('µ')</script> & more"}


def test_report_json_holds_the_rows(tmp_path):
    report.write_report(tmp_path, [OK, FAILED], MACHINE)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == {"notebooks": [OK, FAILED]}


def test_the_page_escapes_what_notebooks_say_and_links_only_what_was_written(tmp_path):
    report.write_report(tmp_path, [OK, FAILED], MACHINE)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert set(re.findall(r'href="([^"]+)"', page)) == {"notebooks/00.html", "notebooks/00.ipynb"}
    assert "no GPU" in page and "torch 2.13.0" in page and "2 notebooks, 1 failed" in page


def test_the_table_has_a_line_a_notebook_and_names_the_failing_cell():
    lines = report.table([OK, FAILED]).splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:2] == ["ok", "notebooks/00.ipynb"] and "slowest plot 1.0 s" in lines[0]
    assert "boom: ValueError" in lines[1]
    assert lines[2] == "2 notebooks, 1 failed, 6.5 s"


def test_a_notebook_without_a_cell_run_has_a_line_too():
    row = {**FAILED, "failing_cell": None, "slowest_cell": None, "error": "cannot be read"}
    assert "cannot be read" in report.table([row])
    assert "cannot be read" in report.index_page([row], {**MACHINE, "torch": None})


VIEW = "application/vnd.jupyter.widget-view+json"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def lesson():
    nbformat = pytest.importorskip("nbformat")
    shown = [
        ({VIEW: {"model_id": "box"}, "text/plain": "Sliders: run this cell to move them."}, {}),
        ({"image/png": PNG, "text/plain": "Two bars."}, {"image/png": {"alt": 'Two "bars".', "width": 800}}),
        ({"text/plain": "42"}, {}),
    ]
    outputs = [nbformat.v4.new_output("display_data", data=data, metadata=about) for data, about in shown]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=outputs)])
    notebook.metadata |= {"widgets": {"state": {}}, "minillm": {"lesson": "01", "title": "Launches"}}
    return notebook


def test_a_page_has_no_widgets_and_the_notebook_keeps_them():
    notebook = lesson()
    flat = flatten_widgets(notebook)
    assert [list(output.data) for output in flat.cells[0].outputs][1] == ["text/plain"]
    assert len(flat.cells[0].outputs) == 2 and "widgets" not in flat.metadata
    assert VIEW in notebook.cells[0].outputs[0].data and "widgets" in notebook.metadata


def test_a_page_describes_its_pictures_and_needs_no_network():
    pytest.importorskip("nbconvert")
    page = html_page(lesson())
    [picture] = re.findall(r"<img[^>]+>", page)
    assert 'Two "bars".' in html.unescape(picture) and PNG in picture and 'width="800"' in picture
    assert "<title>01 Launches</title>" in page
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', page)
