"""The bytes that a tensor reaches, and memory cut into pieces that are written as a whole or not at all."""

import bisect
import collections
import itertools
import math

# start, stop: addresses of the first byte and of the one after the last; stride: in elements, as torch's.
Extent = collections.namedtuple("Extent", "start stop shape dtype stride")

MOST_RUNS = 4096  # a view in more pieces than this counts as all the bytes from its first to its last


def extent(t):
    """Where tensor ``t`` lies, from its first element to its last, with its shape, dtype and strides."""
    reach = 1 + sum((n - 1) * s for n, s in zip(t.size(), t.stride(), strict=True))
    start = t.data_ptr()
    return Extent(start, start + reach * t.itemsize, tuple(t.shape), t.dtype, t.stride())


def runs(span):
    """The stretches without a hole that an extent is made of: (start, stop) in bytes, in order.

    One for a tensor that fills its memory, one a row for a slice of columns.
    """
    itemsize = length = span.dtype.itemsize
    outer = []
    for stride, n in sorted((s * itemsize, n) for n, s in zip(span.shape, span.stride, strict=True)):
        if not outer and stride <= length:
            length += (n - 1) * stride
        elif n > 1:
            outer.append(range(0, n * stride, stride))
    if math.prod(map(len, outer)) > MOST_RUNS:
        return [(span.start, span.stop)]
    starts = sorted(span.start + sum(offsets) for offsets in itertools.product(*outer))
    return [(start, start + length) for start in starts]


class Pieces:
    """All memory, cut wherever a run of one of the extents ``written`` begins or ends."""

    def __init__(self, written):
        self.cuts = sorted({edge for span in written for run in runs(span) for edge in run})

    def __len__(self):
        return len(self.cuts) + 1

    def of(self, span):
        """The pieces in which ``span`` has a byte, as slices of a list with one entry a piece."""
        for start, stop in runs(span):
            yield slice(bisect.bisect_right(self.cuts, start), bisect.bisect_left(self.cuts, stop) + 1)


def shares_a_byte(x, y):
    """Whether two extents have a byte in common; two columns of a matrix have none."""
    if y.start >= x.stop or x.start >= y.stop:
        return False
    pieces = Pieces([x])
    of_x = {i for s in pieces.of(x) for i in range(s.start, s.stop)}
    return any(of_x.intersection(range(s.start, s.stop)) for s in pieces.of(y))
