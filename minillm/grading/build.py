"""`python -m minillm build`: what is generated, from the one source that each thing has.

solutions/*.ipynb  ->  exercises/*.ipynb, and minillm/grading/reference/lessonNN.py
lab.first_cell     ->  the first code cell of every notebook
notebooks/*.ipynb      a recorded output that is stale gives way to "to be recorded on a GPU"

A learner's exercise notebook is never overwritten: each carries a hash of what was built, and one that
differs from its hash was edited.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minillm.grading.build_exercises import build_lesson, edited
from minillm.grading.build_files import write
from minillm.grading.build_lessons import missing_outputs, refreshed
from minillm.grading.solution_cells import BuildError

UP_TO_DATE = "Everything is built."
GENERATED = "differs from what solutions/ gives"


@dataclass
class Target:
    """One generated file: its text now, and why it would change."""

    path: Path
    text: str
    why: str


def main(arguments: list[str] | None = None, root: str | Path | None = None) -> int:
    """Make exercises/ and the reference solutions from solutions/.

    `arguments` default to the command line's, `root` to the checkout around here. Returns the exit code.
    """
    parser = argparse.ArgumentParser("python -m minillm build", description=main.__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    parser.add_argument("--release", action="store_true", help="with --check: missing recordings fail, too")
    options = parser.parse_args(arguments)
    if options.release and not options.check:
        parser.error("--release goes with --check")
    return build(root, options.check, options.release)


def build(
    root: str | Path | None = None,
    check: bool = False,
    release: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """Build the course in `root` (looked for upwards from here if left out).

    With `check` nothing is written, and each file that would change is one line. Returns 0 if all is well, 1
    if a check found something or a source breaks a rule, 2 if there is nothing that could be built.
    """
    try:
        import nbformat  # noqa: F401  the [lab] extra
    except ImportError:
        say('nbformat is not installed. Run: python -m pip install -e ".[lab]"')
        return 2
    folder = Path(root).resolve() if root else find_root()
    if folder is None or not (folder / "solutions").is_dir():
        say(
            "There is no solutions/ folder here or above, so there is nothing to build. Start inside a "
            "checkout of the course; an installed minillm comes with its exercises built."
        )
        return 2
    if not any(folder.glob("solutions/*.ipynb")) and not any(folder.glob("notebooks/*.ipynb")):
        say(f"There is no notebook in solutions/ or notebooks/ of {folder}: nothing to build here.")
        return 2
    try:
        targets, kept = plan(folder)
    except BuildError as error:
        say(str(error))
        return 1
    found = [f"{target.path.relative_to(folder).as_posix()}: {target.why}" for target in targets]
    found += [f"exercises/{path.name}: edited by hand, so build leaves it as it is" for path in kept]
    if not check:
        if not found:
            say(UP_TO_DATE)
        for target in targets:
            write(target.path, target.text)
        for line in found:
            say(line)
        if kept:
            say("To get a fresh one, rename yours and build again. The course changes them in solutions/.")
        return 0
    found += without_source(folder)
    if release:
        found += [f"notebooks/{line}" for line in missing_outputs(folder)]
    for line in found or [UP_TO_DATE]:
        say(line)
    if targets:
        say("Run: python -m minillm build")
    return 1 if found else 0


def find_root() -> Path | None:
    """The checkout that the current folder lies in."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "solutions").is_dir() and (folder / "minillm" / "grading").is_dir():
            return folder
    return None


def plan(folder: Path) -> tuple[list[Target], list[Path]]:
    """What has to be written, and the exercise notebooks that were edited and so must not be."""
    targets, kept = [], []
    for path in sorted((folder / "solutions").glob("*.ipynb")):
        lesson = _of(path, build_lesson)
        targets += _changed(path, lesson.solution, "its first cell or its outputs are not as they should be")
        exercise = folder / "exercises" / path.name
        if edited(exercise):
            kept.append(exercise)
        else:
            targets += _changed(exercise, lesson.exercise, GENERATED)
        reference = folder / "minillm" / "grading" / "reference" / f"lesson{lesson.number}.py"
        targets += _changed(reference, lesson.reference, GENERATED)
    for path in sorted((folder / "notebooks").glob("*.ipynb")):
        targets += _changed(path, *_of(path, refreshed))
    return targets, kept


def _of(path: Path, make: Callable):
    """make(path), with the file's name in front of what is wrong with it."""
    try:
        return make(path)
    except BuildError as error:
        raise BuildError(f"{path.parent.name}/{path.name}: {error}") from None


def _changed(path: Path, text: str, why: str) -> list[Target]:
    now = path.read_text(encoding="utf-8") if path.exists() else None
    if now == text:
        return []
    return [Target(path, text, "is missing" if now is None else why)]


def without_source(folder: Path) -> list[str]:
    """One line for each generated file whose solution notebook is gone; build never deletes."""
    exercises = {path.name for path in (folder / "solutions").glob("*.ipynb")}
    return [
        f"exercises/{path.name}: there is no solutions/{path.name}; delete one or write the other"
        for path in sorted((folder / "exercises").glob("*.ipynb"))
        if path.name not in exercises
    ]
