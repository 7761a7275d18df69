"""A captured decode step whose tokens are known in advance, and the cases of exercise 3.5."""

from dataclasses import dataclass

import torch

from minillm.grading.registry import Wrong
from minillm.graphs import cuda, device, warm_up


@dataclass(frozen=True)
class Case:
    """One call. `rows[r][s]` is the token that step s (from 0) chooses for row r, also after its end.

    block         the first of the steps in which all rows show the end token at once; 0 if there is none
    """

    rows: list[list[int]]
    prompt: list[int]
    end_token: int
    max_steps: int
    check_every: int
    block: int = 0

    @property
    def truth(self) -> list[list[int]]:
        """Each row up to its first end token, with it."""
        return [row[: self.end_of(row)] for row in self.rows]

    def end_of(self, row: list[int]) -> int:
        return row.index(self.end_token) + 1 if self.end_token in row else self.max_steps

    @property
    def ends(self) -> list[int]:
        """After how many steps each row is done."""
        return [self.end_of(row) for row in self.rows]

    @property
    def needed(self) -> int:
        return max(self.ends)

    def __str__(self):
        return (
            f"{len(self.rows)} rows, end_token={self.end_token}, max_steps={self.max_steps}, "
            f"check_every={self.check_every}"
        )


class ScriptedStep:
    """`step()` replays a graph that writes the next token of every row into `tokens`, int64 [B]."""

    def __init__(self, case: Case):
        self.calls, self._most = 0, case.max_steps
        self._script = torch.tensor(case.rows).T.contiguous().to(device)  # [max_steps, B]
        self._at = torch.zeros(1, dtype=torch.int64, device=device)
        self.tokens = torch.tensor(case.prompt, device=device)
        warm_up(self._choose)
        self._at.zero_()
        self._graph = cuda.CUDAGraph()
        with cuda.graph(self._graph):
            self._choose()
        self.tokens.copy_(torch.tensor(case.prompt))

    def _choose(self):
        self.tokens.copy_(self._script.index_select(0, self._at)[0])
        self._at.add_(1)

    def __call__(self):
        if self.calls == self._most:
            raise Wrong("beyond-max", f"max_steps is {self._most}, and this is one step more.")
        self.calls += 1
        self._graph.replay()


def make_cases(rng) -> list[Case]:
    """Ends at the checks; ends between them, and a prompt that ends in the end token; a row without an end;
    a check in each step; one check at most."""
    end = rng.randrange(1, 90)
    return [
        _case(rng, end, ends=[8, 4, 12, 8], max_steps=30, check_every=4, block=20, again=(1, 6)),
        _case(
            rng, end, ends=[3, 14, 7, 9], max_steps=37, check_every=5, block=25, prompt_ends=1, again=(0, 4)
        ),
        _case(rng, end, ends=[2, None, 5], max_steps=10, check_every=3),
        _case(rng, end, ends=[5], max_steps=9, check_every=1),
        _case(rng, end, ends=[2, 3], max_steps=6, check_every=50),
    ]


def _case(rng, end, ends, max_steps, check_every, block=0, prompt_ends=None, again=None) -> Case:
    """`again` is (row, step): where a row that has ended shows the end token once more, between checks."""
    others = [token for token in range(100) if token != end]
    rows = [[rng.choice(others) for _ in range(max_steps)] for _ in ends]
    prompt = [rng.choice(others) for _ in ends]
    for number, (row, last) in enumerate(zip(rows, ends, strict=True)):
        # The first two tokens of a row differ from each other and from its prompt.
        row[:2] = rng.sample([token for token in others if token != prompt[number]], 2)
        if last is not None:
            row[last - 1] = end
        if block:
            row[block - 1 : block - 1 + check_every] = [end] * check_every
    if again is not None:
        rows[again[0]][again[1] - 1] = end
    if prompt_ends is not None:
        prompt[prompt_ends] = end
    return Case(rows, prompt, end, max_steps, check_every, block)
