"""pyproject.toml, constraints.txt and environment.yml say the same thing, and the package is whole."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # comes with pytest there

COURSE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((COURSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


def requirements(*lists) -> dict[str, SpecifierSet]:
    parsed = [Requirement(line) for lines in lists for line in lines]
    return {canonicalize_name(requirement.name): requirement.specifier for requirement in parsed}


def pinned(python: str) -> dict[str, str]:
    """Name -> version that constraints.txt pins on a Python ("3.12")."""
    marks = {"python_version": python, "python_full_version": f"{python}.9"}
    found = {}
    for line in (COURSE / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        requirement = Requirement(line)
        [specifier] = requirement.specifier
        assert specifier.operator == "==" and "*" not in specifier.version and "+" not in specifier.version, (
            line
        )
        if requirement.marker is None or requirement.marker.evaluate(marks):
            name = canonicalize_name(requirement.name)
            assert name not in found, f"{name} is pinned twice on Python {python}"
            found[name] = specifier.version
    return found


def test_the_base_is_three_packages_and_torch_is_not_pinned():
    base = requirements(PROJECT["dependencies"])
    assert set(base) == {"torch", "numpy", "matplotlib"}
    assert base["torch"] == SpecifierSet(">=2.8")
    assert not base["numpy"] and not base["matplotlib"]
    assert PROJECT["requires-python"] == ">=3.10"
    assert set(EXTRAS) == {"lab", "dev"}


@pytest.mark.parametrize("python", PYTHONS)
def test_constraints_pin_all_that_is_asked_for_to_what_is_allowed(python):
    pins = pinned(python)
    for name, allowed in requirements(PROJECT["dependencies"], *EXTRAS.values()).items():
        assert pins.get(name) in allowed, f"{name}: pinned {pins.get(name)}, allowed {allowed}"


def test_constraints_fit_every_platform():
    for name in pinned("3.12"):
        assert not name.startswith(("nvidia-", "triton", "pywin", "appnope")), name


def test_environment_yml_agrees_with_pyproject():
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load((COURSE / "environment.yml").read_text(encoding="utf-8"))
    assert set(content) == {"name", "channels", "dependencies"} and content["channels"] == ["conda-forge"]
    [pip] = [entry["pip"] for entry in content["dependencies"] if isinstance(entry, dict)]
    assert pip == ["-e .[lab,dev]"]
    conda = requirements([entry for entry in content["dependencies"] if isinstance(entry, str)])
    for conda_name, name in (("pytorch", "torch"), ("matplotlib-base", "matplotlib")):
        conda[name] = conda.pop(conda_name)
    assert conda.pop("python") == SpecifierSet(PROJECT["requires-python"])
    assert "pip" in conda and not conda.pop("pip")
    assert conda == requirements(PROJECT["dependencies"], *EXTRAS.values())


def test_what_is_built_holds_every_module_and_every_record(tmp_path):
    pytest.importorskip("setuptools")
    shutil.copytree(COURSE / "minillm", tmp_path / "minillm", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(COURSE / name, tmp_path / name)
    (tmp_path / "minillm/lab/records").mkdir(exist_ok=True)
    (tmp_path / "minillm/lab/records/test-gpu.json").write_text("{}")
    command = [
        sys.executable,
        "-c",
        "import setuptools; setuptools.setup()",
        "-q",
        "build_py",
        "--build-lib",
        "built",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    files = {path.relative_to(tmp_path) for path in (tmp_path / "minillm").rglob("*") if path.is_file()}
    built = {
        path.relative_to(tmp_path / "built") for path in (tmp_path / "built").rglob("*") if path.is_file()
    }
    assert {path for path in files if path.suffix in (".py", ".json")} <= built
    assert Path("minillm/lab/records/test-gpu.json") in built
    command = [sys.executable, "-c", "import minillm.cli; print(minillm.cli.__file__)"]
    where = subprocess.run(command, cwd=tmp_path / "built", check=True, capture_output=True, text=True).stdout
    assert Path(where.strip()).parent == tmp_path / "built/minillm"


@pytest.mark.parametrize(
    "made", [".venv/x", "report/index.html", "a/__pycache__/x.pyc", "progress.json", ".whl/x"]
)
def test_what_a_run_leaves_behind_is_ignored_by_git(made):
    if not shutil.which("git") or not (COURSE / ".git").exists():
        pytest.skip("not a git clone")
    assert subprocess.run(["git", "check-ignore", "-q", made], cwd=COURSE).returncode == 0


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_ruff_is_content(command, answered):
    pytest.importorskip("ruff")
    left_out = [part for name in answered for part in ("--exclude", name)]
    answer = subprocess.run(
        [sys.executable, "-m", "ruff", *command, *left_out, "."], cwd=COURSE, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stdout[-3000:]
