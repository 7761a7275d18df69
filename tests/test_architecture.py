"""The house rules that a machine can hold: arrows, light and portable imports, docstrings, short files."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

COURSE = Path(__file__).resolve().parents[1]
PACKAGE = COURSE / "minillm"

# A module may import its own layer and those after it. graphs stands beside them: any may import it.
LAYERS = ("commands", "grading", "lab", "engine", "model files", "kernels")
FOLDERS = {"grading": "grading", "lab": "lab", "engine": "engine", "kernels": "kernels", "graphs": "graphs"}
COMMANDS = {"cli", "__main__", "environment"}

# Imported inside the functions that need them: a base install has only some of them, and all take time.
LAZY = {
    "matplotlib",
    "IPython",
    "ipywidgets",
    "nbformat",
    "nbclient",
    "nbconvert",
    "jupyter_client",
    "cuda",
    "triton",
}
POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty", "syslog"}

# A file is one concept, in about 120 lines. The emulator follows CUDA's own rules and may take more.
LINES, EMULATOR_LINES = 160, 200


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path, root: Path) -> str:
    """ "lab.timing" of minillm/lab/timing.py, "lab" of minillm/lab/__init__.py, "" of minillm/__init__.py."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(name: str) -> str | None:
    """The layer of a module; None for the package itself, which holds nothing but its version."""
    head = name.split(".")[0]
    if not head:
        return None
    return "commands" if head in COMMANDS else FOLDERS.get(head, "model files")


def imported(path: Path, root: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it, by name, relatively or as a string."""
    found, package = set(), ["minillm", *path.relative_to(root).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            # `from . import x` may name a module, `from .x import y` a module's content: both count as given.
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("minillm.")
        ):
            found.add(node.value)  # for importlib
    return {
        name.removeprefix("minillm").removeprefix(".") for name in found if name.split(".")[0] == "minillm"
    }


def wrong_arrows(root: Path) -> list[str]:
    """ "lab.x imports grading.y" for each import against the arrows."""
    wrong = []
    for path in sorted(root.rglob("*.py")):
        name = module_name(path, root)
        mine = layer(name)
        for other in sorted(imported(path, root)):
            theirs = layer(other)
            if theirs is None or theirs == mine:
                continue
            against = mine == "graphs" or (
                theirs != "graphs" and (mine is None or LAYERS.index(theirs) < LAYERS.index(mine))
            )
            if against:
                wrong.append(f"{name or 'minillm'} imports {other}")
    return wrong


def test_the_arrows_point_one_way():
    assert wrong_arrows(PACKAGE) == []


@pytest.mark.parametrize(
    "file, text, found",
    [
        ("lab/x.py", "from minillm.grading import check", True),
        ("lab/x.py", "def f():\n    from ..grading.core import check", True),
        ("lab/x.py", "from .. import cli", True),
        ("lab/deep/x.py", "from ... import grading", True),
        ("lab/x.py", "importlib.import_module('minillm.grading.core')", True),
        ("model.py", "from .lab import timing", True),
        ("kernels/x.py", "from ..model import Transformer", True),
        ("graphs/x.py", "from ..model import Transformer", True),
        ("__init__.py", "from . import model", True),
        ("environment.py", "from . import cli", False),
        ("grading/x.py", "from ..lab import timing\nfrom ..model import Transformer", False),
        (
            "model.py",
            "from .kernels import fused\nfrom .graphs import cuda\nfrom .layers import RMSNorm",
            False,
        ),
        ("kernels/x.py", "import torch\nfrom minillm.graphs import cuda", False),
        ("lab/deep/x.py", "from ..timing import measure\nfrom . import y", False),
    ],
)
def test_an_arrow_the_wrong_way_is_found(tmp_path, file, text, found):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert bool(wrong_arrows(tmp_path)) is found


def at_import_time(path: Path) -> set[str]:
    """The top-level packages that importing the file imports."""
    found, nodes = set(), list(ast.parse(path.read_text(encoding="utf-8")).body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_slow_optional_or_posix_only_is_imported_at_import_time(path):
    assert at_import_time(path) & (LAZY | POSIX_ONLY) == set()


@pytest.mark.parametrize(
    "statement, unwanted",
    [
        ("import minillm", ["torch", "numpy", *sorted(LAZY)]),
        ("import minillm.cli", ["torch", "numpy", *sorted(LAZY)]),
        ("import minillm.lab", ["numpy.random", *sorted(LAZY)]),
        ("from minillm.graphs import cuda, device", sorted(LAZY - {"triton"})),
        ("import minillm.grading", sorted(LAZY - {"triton"})),
    ],
)
def test_an_import_brings_no_more_than_it_says(statement, unwanted):
    code = f"{statement}\nimport sys\nprint([name for name in {unwanted} if name in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=COURSE, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_public_says_what_it_is(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    without = [node.name for node in public if not ast.get_docstring(node)]
    assert ast.get_docstring(tree) or not tree.body, f"{path.name} has no docstring"
    # An exercise's check is described by its title and its named mistakes, which register it.
    assert without == [] or "checks" in path.parts


def test_files_are_short_or_say_why_not():
    long = {}
    for path in modules():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > (EMULATOR_LINES if "emulator" in path.parts else LINES):
            long[path.relative_to(PACKAGE).as_posix()] = lines
    assert long == {}


@pytest.mark.parametrize("words", [("/ro" + "ot/", "/wo" + "rk/")])
def test_no_path_of_somebodys_machine_is_written_down(words):
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=COURSE, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git clone")
    for name in listed.stdout.splitlines():
        path = COURSE / name
        if path.is_file() and path.suffix in (".py", ".md", ".ipynb", ".toml", ".yml", ".txt", ".json", ""):
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not [word for word in words if word in text], name
