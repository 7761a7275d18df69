"""The report of a run: report.json for programs, index.html for people, a table for the terminal."""

from __future__ import annotations

import datetime
import html
import json
from pathlib import Path

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #222; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .4rem .8rem; border-bottom: 1px solid #ddd; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.failed { color: #b00020; font-weight: 600; } .ok { color: #00695c; }
th.number { text-align: right; }
.table { overflow-x: auto; }
code { overflow-wrap: anywhere; }
"""


def write_report(out: Path, rows: list[dict], machine: dict[str, str | None]) -> None:
    """Writes report.json and index.html into ``out``; see ``runner.run_notebooks``."""
    (out / "report.json").write_text(json.dumps({"notebooks": rows}, indent=1) + "\n", encoding="utf-8")
    (out / "index.html").write_text(index_page(rows, machine), encoding="utf-8")


def summary(rows: list[dict]) -> str:
    """ "12 notebooks, 1 failed, 80.3 s"."""
    failed = sum(row["status"] != "ok" for row in rows)
    plural = "" if len(rows) == 1 else "s"
    return f"{len(rows)} notebook{plural}, {failed} failed, {sum(row['seconds'] for row in rows):.1f} s"


def table(rows: list[dict]) -> str:
    """The rows as aligned text, one line each, and under it the sum."""
    width = max((len(row["notebook"]) for row in rows), default=0)
    lines = []
    for row in rows:
        line = (
            f"{row['status']:6}  {row['notebook']:{width}}  {row['seconds']:6.1f} s  {row['cells']:3} cells"
        )
        if row["status"] != "ok":
            line += f"  {row['failing_cell'] or '-'}: {row['error']}"
        elif row["slowest_cell"]:
            line += f"  slowest {row['slowest_cell']} {row['slowest_seconds']:.1f} s"
        lines.append(line)
    return "\n".join([*lines, summary(rows)])


def index_page(rows: list[dict], machine: dict[str, str | None]) -> str:
    """The HTML page that links every executed copy; every text is escaped."""
    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
    where = machine["gpu"] or "no GPU"
    torch = f"torch {machine['torch']}" if machine["torch"] else "torch does not work here"
    about = html.escape(f"Executed {now} · {where} · backend {machine['backend']} · {torch}")
    columns = {"Notebook": "", "Status": "", "Seconds": " class=number", "Cells": " class=number"}
    columns |= {"Slowest cell": "", "Failure": ""}
    heads = "".join(f"<th{kind}>{head}</th>" for head, kind in columns.items())
    body = "\n".join(_html_row(row) for row in rows)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Course report: {html.escape(summary(rows))}</title>
<style>{STYLE}</style></head><body>
<h1>{html.escape(summary(rows))}</h1>
<p>{about}</p>
<div class="table"><table><thead><tr>{heads}</tr></thead><tbody>
{body}
</tbody></table></div></body></html>
"""


def _html_row(row: dict) -> str:
    name = html.escape(row["notebook"])
    page = row.get("page") or row.get("copy")
    link = f'<a href="{html.escape(page)}">{name}</a>' if page else name
    if row.get("page") and row.get("copy"):
        link += f' (<a href="{html.escape(row["copy"])}">.ipynb</a>)'
    slowest = (
        f"{html.escape(row['slowest_cell'])} ({row['slowest_seconds']:.1f} s)" if row["slowest_cell"] else ""
    )
    failure = ""
    if row["status"] != "ok":
        failure = f"{html.escape(row['failing_cell'] or '')} <code>{html.escape(row['error'] or '')}</code>"
    return (
        f'<tr><td>{link}<td class="{row["status"]}">{row["status"]}<td class="number">{row["seconds"]:.1f}'
        f'<td class="number">{row["cells"]}<td>{slowest}<td>{failure}</tr>'
    )
