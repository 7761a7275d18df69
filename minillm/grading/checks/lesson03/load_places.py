"""Exercise 3.2: where in a static tensor something stands that should not."""

import torch


def at_the_end(after: torch.Tensor, own: torch.Tensor) -> bool:
    """Whether the batch stands in the last rows, or in the last columns."""
    rows, places = slice(len(own)), [(slice(-len(own), None), *[slice(each) for each in own.shape[1:]])]
    places += [(rows, slice(-own.shape[1], None))] if own.dim() == 2 else []
    return any(torch.equal(after[place], own) for place in places)


def left_over(now: torch.Tensor, old: torch.Tensor, wrong: torch.Tensor) -> bool:
    """Whether something is wrong here, and all that is was there before."""
    return bool(wrong.any()) and bool((now == old)[wrong].all())


def one_behind(count: int, width: int, wrong: dict[str, torch.Tensor], names: list[str]) -> bool:
    """Whether only the first row, and the first column, that needed clearing was left out, of several."""
    table = wrong["block_tables"]
    rows, columns = [wrong[name][count:] for name in names], table[:count, width:]
    if any(bool(each[1:].any()) for each in rows) or bool(columns[:, 1:].any()):
        return False
    several_rows, several_columns = table.shape[0] - count > 1, table.shape[1] - width > 1
    row_missed, column_missed = any(bool(each.any()) for each in rows), bool(columns.any())
    return (several_rows or not row_missed) and (several_columns or not column_missed)
