"""The first code cell of every notebook: finds ``minillm``, or says which one command brings it.

A notebook is opened in many places: in a clone (the package lies above it), beside an installed package, or
alone on a cloud machine, perhaps without git or a network. So the text stands in the notebook itself, needs
only the standard library, and is short enough to be read. A test holds that every notebook begins with it.
"""

CELL_ID = "first-cell"

FIRST_CELL = """\
# Finds the course: above this notebook, else installed, else at MINILLM_SOURCE (a wheel, zip or folder).
import os
import subprocess
import sys
from importlib import invalidate_caches, util
from pathlib import Path


def found(package):
    return getattr(util.find_spec(package), "origin", None)  # None for a mere folder of that name, too


above = [folder for folder in (Path.cwd(), *Path.cwd().parents) if (folder / "minillm/__init__.py").exists()]
sys.path[:0] = [str(folder) for folder in above[:1]]
if not found("minillm") and os.environ.get("MINILLM_SOURCE"):
    keep_torch = ["--no-deps"] if found("torch") else []
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *keep_torch, os.environ["MINILLM_SOURCE"]])
    invalidate_caches()
if not found("minillm"):
    raise SystemExit("minillm is not here. First run:  %pip install COURSE-FOLDER-OR-WHEEL")"""
