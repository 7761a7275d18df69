"""A stamp changes with the cell, its experiments, its figures and the code it lists; with nothing else."""

import nbformat
import pytest

from minillm.lab.figures import launch
from minillm.lab.stamp import cell_stamp, experiments_named

CELL = 'result = lab.run("toy/step/llama-1b/B=1")\nlab.show(fig, "words")'


pytestmark = pytest.mark.usefixtures("change_the_experiment")


def cell(source, **metadata):
    return nbformat.v4.new_code_cell(source, metadata=metadata)


def stamp(source, before=(), **metadata):
    return cell_stamp(cell(source, **metadata), [cell(one) for one in before])


def test_blanks_at_line_ends_do_not_matter():
    assert stamp(CELL) == stamp(CELL.replace("\n", "   \n") + "\n\n")
    assert stamp(CELL) != stamp(CELL.replace("lab.show", "  lab.show"))
    assert stamp(CELL) != stamp(CELL.replace("words", "other words"))


@pytest.mark.parametrize(
    "source, named",
    [
        (CELL, ["toy/step/{preset}/B={batch}"]),
        ("lab.run('toy/add')", ["toy/add"]),
        ('lab.run(f"toy/step/{preset}/B={b}")', ["toy/step/{preset}/B={batch}"]),
        ('{b: lab.run(f"toy/step/llama-1b/B={b}") for b in (1, 2)}', ["toy/step/{preset}/B={batch}"]),
        ('%matplotlib inline\n!nvidia-smi\nlab.run("toy/add")', ["toy/add"]),
        ('lab.run("toy/add"', ["toy/add"]),  # does not parse: looked for as text
        ('# lab.run("toy/add")', []),
        ('open("data/x.csv"); "toy/none"; "http://toy/add"; "toy/step/a"', []),
        ("toy/add", []),
    ],
)
def test_experiments_named_in_a_cell(source, named):
    assert sorted(experiments_named(source)) == named


def test_a_named_experiment_counts_and_no_other(change_the_experiment):
    named, other = stamp(CELL), stamp('lab.run("toy/add")')
    change_the_experiment()
    assert stamp(CELL) != named and stamp('lab.run("toy/add")') == other


def test_a_cell_says_what_it_draws(change_the_experiment):
    draws = {"draws": ["toy/step/llama-1b/B=1"]}
    drawn, plain = stamp("draw(result)", minillm=draws), stamp("draw(result)")
    change_the_experiment()
    assert stamp("draw(result)", minillm=draws) != drawn and stamp("draw(result)") == plain


IMPORTS = "from minillm import lab\nfrom minillm.lab.figures import launch as draw"


def test_a_changed_figure_counts_where_it_is_called(monkeypatch):
    def redrawn(result):
        """Something else."""
        return 1

    before = {text: stamp(text, [IMPORTS]) for text in ("draw.chain(one)", "draw.where(one)", "x = draw")}
    monkeypatch.setattr(launch, "chain", redrawn)
    changed = [text for text, old in before.items() if stamp(text, [IMPORTS]) != old]
    assert changed == ["draw.chain(one)"]
    assert stamp("draw.chain(one)") == stamp(
        "draw.chain(one)", ["import math"]
    )  # a name that nothing explains


@pytest.mark.parametrize(
    "listed",
    ["lab.source(launch.where)", "from minillm.lab.experiments import launch\nlab.source(launch.where)"],
)
def test_code_that_is_listed_counts_with_its_words(monkeypatch, listed):
    from minillm.lab.experiments import launch as experiments_launch

    above = [IMPORTS, "from minillm.lab.experiments import launch"]
    old = stamp(listed, above)

    def where() -> dict:
        """Other words."""

    monkeypatch.setattr(experiments_launch, "where", where)
    assert stamp(listed, above) != old


def test_the_list_of_what_is_not_imitated_counts_where_it_is_shown(monkeypatch):
    from minillm.graphs import emulator

    before, listed, other = "from minillm import graphs", "graphs.limits()", "graphs.probe()"
    old = [stamp(source, [before]) for source in (listed, other)]
    monkeypatch.setattr(emulator, "__doc__", emulator.__doc__ + "99. One thing more.\n")
    new = [stamp(source, [before]) for source in (listed, other)]
    assert new[0] != old[0] and new[1] == old[1]
