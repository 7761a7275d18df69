"""The sizes that are captured: a ladder of batch sizes, and one of block-table widths."""

from __future__ import annotations

from bisect import bisect_left


def batch_ladder(max_batch: int) -> list[int]:
    """1, 2, 4, 8, then every 16th up to ``max_batch``, which is always the last: captured sizes in sequences.

    As vLLM and SGLang have it, in coarser steps (theirs go by 8):
    https://docs.vllm.ai/en/latest/design/cuda_graphs.html
    """
    if max_batch < 1:
        raise ValueError(f"max_batch is {max_batch}; expected 1 or more")
    sizes = [1, 2, 4, 8, *range(16, max_batch, 16)]
    return [size for size in sizes if size < max_batch] + [max_batch]


def width_ladder(max_blocks: int, least: int = 16) -> list[int]:
    """``least`` blocks, doubled up to ``max_blocks``, which is always the last: captured table widths.

    The plain attention reads as many slots as the table is wide, whatever the context, so a narrow table is
    worth a graph of its own. A kernel that reads the pages in place needs one width only.
    """
    if max_blocks < 1:
        raise ValueError(f"max_blocks is {max_blocks}; expected 1 or more")
    sizes = []
    while least < max_blocks:
        sizes.append(least)
        least *= 2
    return [*sizes, max_blocks]


def checked_ladder(what: str, sizes, maximum: int) -> list[int]:
    """``sizes`` in rising order, each once. ValueError when there is none, or one outside 1 … ``maximum``."""
    sizes = sorted(set(sizes))
    if not sizes or sizes[0] < 1 or sizes[-1] > maximum:
        raise ValueError(f"{what} is {sizes}; expected one size or more, each from 1 to {maximum}")
    return sizes


def rung(size: int, ladder: list[int]) -> int | None:
    """The smallest captured size that holds ``size``; None when it is over the top."""
    at = bisect_left(ladder, size)
    return ladder[at] if at < len(ladder) else None
