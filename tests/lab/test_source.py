"""`lab.source` names the file and line and shows the code, highlighted in a notebook."""

import functools
import inspect
import re

import pytest

from minillm import lab
from minillm.lab import timing


def test_printed_outside_ipython(capsys):
    lab.source(timing.Stat)
    head, _, rest = capsys.readouterr().out.partition("\n")
    line = next(
        n for n, text in enumerate(open(timing.__file__, encoding="utf-8"), 1) if "class Stat" in text
    )
    assert head in (
        f"# minillm/lab/timing.py, line {line}",
        f"# minillm/lab/timing.py, line {line - 1}",
    )  # 3.12: decorator
    assert "class Stat:" in rest and "def of(cls" in rest and "class Timing" not in rest


def test_a_module_and_a_wrapped_function(capsys):
    lab.source(timing)
    assert capsys.readouterr().out.startswith("# minillm/lab/timing.py, line 1\n")

    @functools.wraps(timing.measure)
    def wrapper():
        pass

    lab.source(wrapper)
    assert "def measure(fn" in capsys.readouterr().out


@pytest.mark.parametrize("thing", [len, 3, "text"])
def test_what_has_no_source(thing):
    with pytest.raises(TypeError, match="no Python source"):
        lab.source(thing)


def test_html_is_readable_on_any_background():
    from minillm.lab.source import _html

    text = inspect.getsource(timing.Stat)
    html = _html("a <file>.py, line 3", text)
    assert "a &lt;file&gt;.py, line 3" in html and "background:#ffffff" in re.search("<pre[^>]*>", html)[0]
    assert "class=" not in html.replace('<div class="highlight"', "")  # colours are in the tags themselves
    assert "color:" in html and "interquartile" in html
