"""The environment that `make` works in: the active one, else .venv in the course's folder.

    python3 -m minillm.environment            makes and fills it; quick when nothing has changed
    python3 -m minillm.environment --which    prints its python

This runs on the bare python3 of a machine: standard library only, and no syntax that an old python3 would
stumble over before it is told that it is too old.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

COURSE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = (2, 8)
VERSIONS = """
import importlib.metadata, sys
torch = [d.version for d in importlib.metadata.distributions(name="torch")]
print(*sys.version_info[:2], *torch[:1])
"""


class CannotInstall(Exception):
    """What is in the way, and what to do about it, in a line or two."""


def python_of(prefix):
    """The python of the environment at `prefix`, or None when there is none."""
    names = ("Scripts/python.exe", "python.exe") if os.name == "nt" else ("bin/python",)
    paths = [os.path.join(prefix, *name.split("/")) for name in names]
    return next((path for path in paths if os.path.exists(path)), None)


def find_environment():
    """(prefix, own): the environment to work in, and whether it is the course's own .venv."""
    own = os.path.join(COURSE, ".venv")
    running_in = sys.prefix if sys.prefix != sys.base_prefix else None
    for prefix in (os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"), running_in):
        if prefix and python_of(prefix):
            return prefix, os.path.realpath(prefix) == os.path.realpath(own)
    return own, True


def make_venv(prefix):
    """Makes the course's own environment, or makes it anew where an earlier try left half of one."""
    if importlib.util.find_spec("torch"):
        print("This python3 already has a torch. To use it instead of a .venv, stop here and run:")
        print('  python3 -m pip install -e ".[lab,dev]" && python3 -m minillm run')
    print("Making .venv", flush=True)
    if subprocess.run([sys.executable, "-m", "venv", "--clear", prefix]).returncode:
        raise CannotInstall(
            "python3 could not make .venv (see above). On Debian and Ubuntu: apt install python3-venv. "
            "Or activate an environment of your own and run this again."
        )


def fingerprint():
    """What an installation depends on: this folder, and the two files that say what is in it."""
    digest = hashlib.sha256(COURSE.encode())
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(COURSE, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def has_pip(python):
    """Whether `python` exists and can run pip."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return bool(python) and subprocess.run([python, "-m", "pip", "--version"], **quiet).returncode == 0


def constraints_for(python, own, installed_before):
    """The lines for pip's -c. A torch that is there is kept, unless `make` itself put it there earlier."""
    answer = subprocess.run([python, "-c", VERSIONS], stdout=subprocess.PIPE, text=True)
    major, minor, *torch = answer.stdout.split()
    if (int(major), int(minor)) < OLDEST_PYTHON:
        raise CannotInstall(f"{python} is Python {major}.{minor}; the course needs 3.10 or newer.")
    with open(os.path.join(COURSE, "constraints.txt"), encoding="utf-8") as file:
        ours = file.read().splitlines()
    if not torch or (own and installed_before):
        return ours
    if tuple(int(part) for part in re.findall(r"\d+", torch[0])[:2]) < OLDEST_TORCH:
        raise CannotInstall(
            f"The environment of {python} has torch {torch[0]}; the course needs 2.8 or newer. "
            "It is not replaced: upgrade it yourself, or deactivate, and make builds a .venv of its own."
        )
    others = [line for line in ours if own and not line.startswith("torch==")]
    return [*others, f"torch=={torch[0]}"]


def install(python, constraints):
    """Installs the course, editable, with everything that running and testing it needs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "constraints.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(constraints) + "\n")
        print("Installing the course (torch is large: minutes the first time)", flush=True)
        command = [python, "-m", "pip", "install", "-c", path, "-e", ".[lab,dev]"]
        if subprocess.run(command, cwd=COURSE).returncode:
            raise CannotInstall("pip could not install the course; its last lines above say why.")


def main(arguments):
    """Returns the exit code."""
    try:
        if sys.version_info < OLDEST_PYTHON:
            found = ".".join(str(part) for part in sys.version_info[:2])
            raise CannotInstall(f"python3 is Python {found}; the course needs 3.10 or newer.")
        prefix, own = find_environment()
        if "--which" in arguments:
            print(python_of(prefix))
            return 0
        stamp = os.path.join(prefix, "minillm-course.stamp")
        installed = ""
        if os.path.exists(stamp):
            with open(stamp) as file:
                installed = file.read()
        if installed == fingerprint():
            return 0
        if not has_pip(python_of(prefix)):
            if not own or prefix == sys.prefix:
                raise CannotInstall(f"{python_of(prefix)} has no pip. Run: {python_of(prefix)} -m ensurepip")
            make_venv(prefix)
        install(python_of(prefix), constraints_for(python_of(prefix), own, bool(installed)))
        with open(stamp, "w") as file:
            file.write(fingerprint())
        return 0
    except (CannotInstall, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
