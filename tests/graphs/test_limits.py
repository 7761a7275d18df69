"""The list of what the emulator cannot do is one list, and lesson 00 shows it."""

from minillm.graphs import limits


def test_the_list_is_numbered_and_names_the_clock():
    lines = str(limits()).splitlines()
    numbers = [int(line.split(".")[0]) for line in lines if line[:1].isdigit()]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 5
    assert lines[0].startswith("1. Time.") and "``" not in limits()


def test_a_terminal_prints_it_and_a_notebook_folds_it():
    assert repr(limits()) == str(limits()) and str(limits()) in limits()._repr_markdown_()
    assert limits()._repr_markdown_().startswith("<details><summary>")
