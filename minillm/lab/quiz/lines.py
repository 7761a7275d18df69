"""The ten lines of the quiz. What becomes of each is not written here: it is tried on the running backend."""

from __future__ import annotations

from dataclasses import dataclass

SETTING = "x = torch.tensor([3.0, -1.0, 2.0, 0.0], device=device)\ny = torch.zeros(4, device=device)"


@dataclass(frozen=True)
class Line:
    """``code`` runs in a capture, with ``x``, ``y``, ``torch`` and ``device``; ``why`` is told afterwards."""

    code: str
    why: str


LINES = (
    Line(
        "y = x * torch.tensor(3.0)",
        "A 0-dim host tensor goes to the kernel as a number, without a copy. It is frozen: every replay "
        "multiplies by 3.",
    ),
    Line(
        "n = x.sum().item()",
        ".item() gives Python a number, so the CPU has to wait for a GPU that runs nothing yet.",
    ),
    Line(
        "y = torch.where(x > 0, x, 0.0)",
        "The shape of the result does not depend on the values, so nobody waits. This is the cure for masks.",
    ),
    Line(
        "y = x[x > 0]",
        "How long is the result? That depends on the values, and the CPU has to wait for it to allocate y.",
    ),
    Line(
        "y[x > 0] = 7.0",
        "Writing one number through a mask is a masked fill: no shape depends on the values, unlike reading.",
    ),
    Line(
        "y[0] = 7.0",
        "An element is set by a copy from a host tensor that holds 7.0, and that memory is not pinned. "
        "y[:1] = 7.0 is a fill, and can be captured.",
    ),
    Line(
        "y = torch.tensor([1.0, 2.0], device=device)",
        "The list becomes a host tensor first, then a copy from pageable memory. Make it before the capture.",
    ),
    Line(
        "y = torch.randn(4, device=device)",
        "The default generator is registered with every graph: each replay takes its current seed and "
        "offset, so the numbers differ from replay to replay.",
    ),
    Line(
        "print(x)",
        "To print the values they must be on the host, so the CPU waits. print(x.shape) asks nobody.",
    ),
    Line(
        "y = x + 1 if x.shape[0] > 2 else x - 1",
        "A shape is known to Python, so nobody waits. The branch is taken once, at capture, and frozen.",
    ),
)
