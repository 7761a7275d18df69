"""torch.linalg within a capture, and tensors that are not dense: what waits, and what is refused."""

import torch
from torch import linalg

from . import program, table
from .helpers import capture, inside, plain


def square(x):
    """[2, 2], symmetric and positive definite, from x of four floats."""
    a = x.view(2, 2)
    return a @ a.t() + torch.eye(2, device=x.device)


LINEAR_ALGEBRA = {
    "cholesky": lambda x: linalg.cholesky(square(x)),
    "cond": lambda x: linalg.cond(square(x)),
    "eig": lambda x: linalg.eig(square(x)).eigenvalues.real,
    "inv": lambda x: linalg.inv(square(x)),
    "lu_factor": lambda x: linalg.lu_factor(square(x)).LU,
    "matrix_rank": lambda x: linalg.matrix_rank(square(x)),
    "pinv": lambda x: linalg.pinv(square(x)),
    "solve": lambda x: linalg.solve(square(x), x[:2]),
    "svd": lambda x: linalg.svd(square(x)).S,
    "svdvals": lambda x: linalg.svdvals(square(x)),
    "norm": lambda x: linalg.norm(x),
    "vector_norm": lambda x: linalg.vector_norm(x, ord=1),
    "matrix_power": lambda x: linalg.matrix_power(x.view(2, 2), 3),
    "cross": lambda x: linalg.cross(x[:3], x[1:]),
}
table("linalg", inside, LINEAR_ALGEBRA)

LIKE_OTHERS = {
    "lazily conjugated": lambda x: (torch.complex(x, x).conj() * 2).imag + 0,
    "lazily negated": lambda x: torch.complex(x, x).conj().imag * 2,
    "resolved": lambda x: (torch.complex(x, x).conj().resolve_conj() * 2).abs(),
    "conjugated before a product": lambda x: (torch.complex(x, x).view(2, 2).conj().sum(0)).abs(),
    "complex": lambda x: (torch.complex(x, x) * 2).abs(),
}
table("dense", inside, LIKE_OTHERS)


@program("dense: a sparse tensor", unfaithful="item 15: the emulator captures dense tensors only")
def _(cuda, device):
    x = torch.eye(2, device=device).to_sparse()
    made = capture(cuda, lambda: x * 2)
    if not made.errors:
        made.graph.replay()
    return made.errors, made.out is not None and plain(made.out.to_dense())
