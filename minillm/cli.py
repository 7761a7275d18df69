"""The course's commands: ``python -m minillm doctor | run | test | lab | bench | build``.

Each command imports what it needs when it is called: the help, and a word about a missing package, come
at once. Exit codes: 0 all well, 1 something failed, 2 the command could not begin, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

HELP = """usage: python -m minillm COMMAND

  doctor                 what will run on this machine, and what to do about what will not
  run [NB ...]           execute notebooks (all, unless some are named) and write report/index.html
  test [PYTEST ARGS]     run the tests
  lab [JUPYTER ARGS]     open the course in JupyterLab
  bench engine           serve requests eagerly and with graphs, and compare (on a GPU; else its record)
  build [--check]        make exercises/ from solutions/, or check that they agree

python -m minillm COMMAND --help says more about one of them.
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; ``arguments`` default to the command line's. Returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A Windows console that cannot print µ gets a question mark, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    command, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if command in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if command not in COMMANDS:
        print(f"There is no command {command!r}.\n\n{HELP}", end="", file=sys.stderr)
        return 2
    try:
        return COMMANDS[command](rest)
    except ModuleNotFoundError as problem:
        if (problem.name or "minillm").split(".")[0] == "minillm":
            raise
        print(f'{problem.name} is not installed. Run: python -m pip install -e ".[lab,dev]"', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def course_folder() -> Path:
    """The course's folder; where there is none, the current one."""
    from minillm.lab.course import course_root

    try:
        return course_root()
    except FileNotFoundError:
        return Path.cwd()


def doctor(arguments: list[str]) -> int:
    """What will run on this machine."""
    argparse.ArgumentParser("python -m minillm doctor", description=doctor.__doc__).parse_args(arguments)
    from minillm.lab.doctor import doctor as examine

    report = examine()
    print(report)
    return 0 if report.ok else 1


def run(arguments: list[str]) -> int:
    """Execute notebooks; write executed copies and a report. The notebooks stay as they are."""
    parser = argparse.ArgumentParser("python -m minillm run", description=run.__doc__)
    parser.add_argument(
        "notebooks", nargs="*", metavar="NB", help="notebooks or folders; default: lessons, exercises"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="where to write the report (default: report/ of the course)"
    )
    parser.add_argument(
        "--record", action="store_true", help="write outputs and timings into the lessons (GPU only)"
    )
    parser.add_argument(
        "--timeout", type=float, default=600, metavar="SECONDS", help="that one cell may take"
    )
    parser.add_argument("--jobs", type=_count, metavar="N", help="notebooks at the same time")
    options = parser.parse_args(arguments)
    from minillm.lab.report import table
    from minillm.lab.runner import CannotRun, run_notebooks

    course = course_folder()
    folders = ["notebooks"] if options.record else ["notebooks", "exercises"]
    named = [Path(name) for name in options.notebooks] or [course / folder for folder in folders]
    paths = [path for name in named for path in (sorted(name.glob("*.ipynb")) if name.is_dir() else [name])]
    out = Path(options.out) if options.out else course / "report"
    try:
        if not paths:
            raise CannotRun(
                "no notebook found. Start from a folder inside the course, or name the notebooks."
            )
        rows = run_notebooks(paths, out, options.record, options.timeout, options.jobs, _say)
    except CannotRun as problem:
        print(problem, file=sys.stderr)
        return 2
    print(f"\n{table(rows)}\n{out / 'index.html'}")
    return 1 if any(row["status"] != "ok" for row in rows) else 0


def test(arguments: list[str]) -> int:
    """Run the tests; the arguments are pytest's."""
    return _module("pytest", arguments, extra="dev")


def lab(arguments: list[str]) -> int:
    """Open the course in JupyterLab; the arguments are JupyterLab's."""
    start = "notebooks/00_start_here.ipynb"
    opens = [f"--LabApp.default_url=/lab/tree/{start}"] if (course_folder() / start).exists() else []
    return _module("jupyterlab", [f"--ServerApp.root_dir={course_folder()}", *opens, *arguments], extra="lab")


def bench(arguments: list[str]) -> int:
    """Measure on this GPU what the lessons speak of."""
    from minillm.lab.bench import main as bench_main

    return bench_main(arguments)


def build(arguments: list[str]) -> int:
    """Make exercises/ from solutions/."""
    from minillm.grading.build import main as build_main

    return build_main(arguments)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of notebooks; give 1 or more")
    return int(text)


def _say(line: str) -> None:
    print(line, flush=True)


def _module(module: str, arguments: list[str], extra: str) -> int:
    if not importlib.util.find_spec(module):
        print(f'{module} is not installed. Run: python -m pip install -e ".[{extra}]"', file=sys.stderr)
        return 2
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=course_folder()).returncode


COMMANDS = {"doctor": doctor, "run": run, "test": test, "lab": lab, "bench": bench, "build": build}
