"""What one line of the index knows: how an error reads, why it comes, what to do, where it is shown."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

CUDA_TYPES = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
CUDA_GRAPHS = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"
PYTORCH = "https://github.com/pytorch/pytorch"
CUDA_GRAPH_CPP = f"{PYTORCH}/blob/main/aten/src/ATen/cuda/CUDAGraph.cpp"
GENERATOR_CPP = f"{PYTORCH}/blob/main/aten/src/ATen/cuda/CUDAGeneratorImpl.cpp"


@dataclass(frozen=True)
class Entry:
    """One family of errors.

    ``says``: what is in its message, the first as the index shows it. "…" stands for anything within a line;
    blanks match line breaks as well, since terminals wrap. ``cell``: "02 unjoined" is the lesson and the id
    of the cell that shows it, "05" a lesson alone. ``source``: a public page, or a file of this package.
    ``emulated``: fragments by which the emulator names this cause in an error that is its consequence
    ("what broke it was: …"). ``consequence``: something else went wrong before, and that is to be found.
    """

    name: str
    says: tuple[str, ...]
    cause: str
    cure: str
    cell: str
    source: str
    emulated: tuple[str, ...] = ()
    consequence: bool = False


def cuda_error(number: int, words: str, constant: str) -> tuple[str, ...]:
    """The ways in which an error of the CUDA runtime is written: by torch, by its number, by its name."""
    driver = "CUDA_ERROR_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", constant).upper()
    return f"CUDA error: {words}", words, f"CUDA error {number}", f"cudaError{constant}", driver


@functools.cache
def pattern(words: str) -> re.Pattern:
    """The regular expression for one of ``Entry.says``: whole words, any case, any blanks."""
    parts = [re.escape(part) for part in re.split(r"[ \n]+", words)]
    text = r"\s+".join(parts).replace("…", r"[^\n]*?")
    start = r"(?<!\w)" if words[0].isalnum() else ""
    return re.compile(start + text + (r"(?!\w)" if words[-1].isalnum() else ""), re.IGNORECASE)
