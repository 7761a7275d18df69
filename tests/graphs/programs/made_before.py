"""Tensors made on the CPU, without ``device=``, before the capture that uses them."""

import torch
import torch.nn.functional as F

from . import table
from .helpers import capture


def before(op):
    """A program: ``op(x, host, zero)`` where ``host`` (4 floats) and ``zero`` (0-dim) were made on the CPU,
    without ``device=``, before the capture.  Both change before the second replay."""

    def run(cuda, device):
        x, host, zero = torch.ones(4, device=device), torch.arange(4.0), torch.tensor(2.0)
        made = capture(cuda, lambda: op(x, host, zero))
        if made.errors:
            cuda.set_stream(cuda.default_stream())
            return made.errors
        made.graph.replay()
        seen = [made.out.tolist()]
        host.fill_(1)
        zero.fill_(9)
        made.graph.replay()
        return [*seen, made.out.tolist()]

    return run


HOSTS = {
    "copy_": lambda x, host, zero: x.copy_(host),
    "copy_ of a number": lambda x, host, zero: x.copy_(zero),
    "copy_ to it": lambda x, host, zero: host.copy_(x),
    "to(device)": lambda x, host, zero: host.to(x.device) + x,
    "to(cpu)": lambda x, host, zero: x.to("cpu"),
    "add": lambda x, host, zero: x + host,
    "times a number": lambda x, host, zero: x * zero,
    "where with a number": lambda x, host, zero: torch.where(x > 5, x, zero),
    "index": lambda x, host, zero: x[host.long()],
    "index write": lambda x, host, zero: x.index_put_((host.long(),), x * 2),
    "slice write": lambda x, host, zero: [x[:2].copy_(host[:2]), x][1],
    "int of it": lambda x, host, zero: x[: int(zero)] + 1,
    "item of it": lambda x, host, zero: x + zero.item(),
    "tolist of it": lambda x, host, zero: x + sum(host.tolist()),
    "computed on the host": lambda x, host, zero: x + float((host * zero).sum()),
    "shape of it": lambda x, host, zero: x + host.shape[0],
    "embedding": lambda x, host, zero: F.embedding(host.long(), x[:, None]),
    "cat": lambda x, host, zero: torch.cat([x, host]),
    "printed": lambda x, host, zero: x + len(str(host)),
}
ITEM_3 = "item 3: to the emulator it is a device tensor"
MARKS = dict.fromkeys(set(HOSTS) - {"shape of it", "to(cpu)"}, ITEM_3)
table("made before", before, HOSTS, unfaithful=MARKS)
