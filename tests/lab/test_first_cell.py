"""The first cell, run by a python that knows nothing of the course, in the four situations it is made for."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from minillm.lab.first_cell import CELL_ID, FIRST_CELL

COURSE = Path(__file__).resolve().parents[2]
TELL = "\nimport minillm; print('found', minillm.WHERE)"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """The python of a new, empty environment, with pip."""
    home = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    return next(path for path in (home / "bin/python", home / "Scripts/python.exe") if path.exists())


def package(folder: Path, where: str) -> Path:
    """A package `minillm` in `folder` that says where it lies."""
    (folder / "minillm").mkdir(parents=True)
    (folder / "minillm" / "__init__.py").write_text(f"WHERE = {where!r}\n")
    return folder


def run_cell(python: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MINILLM"))}
    command = [str(python), "-c", FIRST_CELL + TELL]
    return subprocess.run(command, cwd=folder, env=clean | environment, capture_output=True, text=True)


def site_packages(python: Path) -> Path:
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def test_in_a_clone_the_package_above_the_notebook_wins_over_an_installed_one(bare_python, tmp_path):
    installed = package(tmp_path / "site", "installed")
    (package(tmp_path / "my course", "above") / "notebooks").mkdir()
    answer = run_cell(bare_python, tmp_path / "my course/notebooks", PYTHONPATH=str(installed))
    assert answer.stdout == "found above\n", answer.stderr


def test_elsewhere_the_installed_package_is_found(bare_python, tmp_path):
    installed = package(tmp_path / "site", "installed")
    (tmp_path / "downloads").mkdir()
    answer = run_cell(bare_python, tmp_path / "downloads", PYTHONPATH=str(installed))
    assert answer.stdout == "found installed\n", answer.stderr


def wheel(folder: Path) -> Path:
    """A wheel of a package `minillm` that requires a torch of its own, which nothing could satisfy."""
    path = folder / "minillm-9.9-py3-none-any.whl"
    info = "minillm-9.9.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("minillm/__init__.py", "WHERE = 'wheel'\n")
        requires = "Requires-Dist: torch==0.0.0.dev1"
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: minillm\nVersion: 9.9\n{requires}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_a_wheel_is_installed_and_the_torch_that_is_there_stays(bare_python, tmp_path):
    torch = site_packages(bare_python) / "torch" / "__init__.py"
    torch.parent.mkdir()
    torch.write_text("")
    source = wheel(tmp_path)
    try:
        answer = run_cell(bare_python, tmp_path, MINILLM_SOURCE=str(source), PIP_NO_INDEX="1")
        assert answer.stdout.splitlines()[-1:] == ["found wheel"], answer.stderr
        assert torch.read_text() == ""
    finally:
        subprocess.run([bare_python, "-m", "pip", "uninstall", "-y", "-q", "minillm"], check=True)
        torch.unlink()
        torch.parent.rmdir()


@pytest.mark.parametrize("source", [None, "no-such-wheel-here.whl"])
def test_otherwise_one_command_is_named_and_no_traceback_hides_it(bare_python, tmp_path, source):
    (tmp_path / "minillm").mkdir()  # a mere folder of that name (a clone, say) is not the package
    environment = {"MINILLM_SOURCE": source, "PIP_NO_INDEX": "1"} if source else {}
    answer = run_cell(bare_python, tmp_path, **environment)
    assert answer.returncode == 1 and "found" not in answer.stdout
    assert "%pip install" in answer.stderr.splitlines()[-1]
    assert "Traceback" not in answer.stderr


def test_in_ipython_the_message_is_short(bare_python, tmp_path):
    pytest.importorskip("IPython")
    libraries = Path(sysconfig.get_path("purelib"))
    if not (libraries / "IPython").exists() or (libraries / "minillm").exists():
        pytest.skip("needs a Python whose libraries hold IPython and not minillm")
    # On PYTHONPATH, .pth files do not count: this python has IPython, and not the course's editable install.
    code = "from IPython.core.interactiveshell import InteractiveShell as S; import sys\n"
    code += f"sys.exit(not S.instance().run_cell({FIRST_CELL!r}).error_in_exec)"
    environment = dict(os.environ, PYTHONPATH=str(libraries), IPYTHONDIR=str(tmp_path / "ipython"))
    for name in ("MINILLM_SOURCE", "VIRTUAL_ENV"):  # IPython also looks into the environment that is active
        environment.pop(name, None)
    command = [str(bare_python), "-W", "ignore", "-c", code]
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    said = (answer.stdout + answer.stderr).strip().splitlines()
    assert answer.returncode == 0 and any("minillm is not here" in line for line in said), said
    assert len(said) <= 6 and not any("Traceback" in line for line in said), said


def test_every_notebook_begins_with_it():
    paths = [p for f in ("notebooks", "exercises", "solutions") for p in sorted((COURSE / f).glob("*.ipynb"))]
    assert paths, "the course has no notebooks"
    for path in paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        first = next(cell for cell in cells if cell["cell_type"] == "code")
        assert "".join(first["source"]) == FIRST_CELL, path.name
        assert first["id"] == CELL_ID, path.name


def test_it_is_short_and_of_the_standard_library():
    lines = FIRST_CELL.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 110
    imported = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
