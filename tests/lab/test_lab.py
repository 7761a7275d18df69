"""The public names of the lab: all there, loaded on use, not shadowed by modules of the same name."""

import subprocess
import sys

import pytest

from minillm import lab


@pytest.mark.parametrize("name", lab.__all__)
def test_every_name_is_there(name):
    import types

    assert not isinstance(getattr(lab, name), types.ModuleType)
    assert name in dir(lab)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no 'mesure'; it has: .*measure"):
        lab.mesure  # noqa: B018


WAYS = ("import minillm.lab.{0}", "from minillm.lab.{0} import __doc__", "from minillm import lab; lab.{0}")
CODE = """
import sys, types
import torch
for way in WAYS:
    for loaded in [name for name in sys.modules if name.startswith("minillm")]:
        del sys.modules[loaded]
    for name in SHARED:
        exec(way.format(name))
    from minillm import lab
    for name in SHARED:
        assert not isinstance(getattr(lab, name), types.ModuleType), (way, name)
    from minillm.lab.profile import timeline_from_trace
    from minillm.lab import profile
    assert callable(profile), way
"""


def test_the_name_wins_over_the_module_whichever_comes_first():
    shared = [name for name, place in lab.PUBLIC.items() if place.partition(":")[0] == name]
    assert {"profile", "source", "launch_queue", "doctor", "devices"} <= set(shared)
    code = f"WAYS, SHARED = {WAYS!r}, {shared!r}\n{CODE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
