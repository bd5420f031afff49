"""The geometry of convolutions on tiles: what positions a pass has, how they are cut into boxes, how a box is laid out.

A pass is a convolution with its own taps: the positions of its result, the stride with which it goes over the picture,
and for every tap how far it is shifted. From the narrow side to the wide one, with a stride, there is a pass for every
remainder of the stride: it has the taps that meet its positions, and goes over the picture step by step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.kernels.nopython.agreed import STAGE_SIZE

LINE_ELEMENTS = 16  # of a cache line: rooms begin with one
LEAST_POSITIONS = 256  # of a box, whatever it takes: sums and panels of the weight come near once per box

Triple = tuple[int, int, int]


class Axis(NamedTuple):
    """A pass along one axis."""

    size: int  # positions of the result
    stride: int  # between the positions of the picture that they meet first
    before: int  # positions of padding before the picture; below 0: positions that are left out
    taps: tuple[int, ...]
    shifts: tuple[int, ...]  # of the taps, at least 0
    start: int = 0  # the first position's place in the result, and the step to the next
    step: int = 1

    def pads(self, picture: int) -> bool:
        """Whether positions meet something beyond a picture of this size."""
        last = (self.size - 1) * self.stride + max(self.shifts, default=0) - self.before
        return bool(self.taps) and (self.before > 0 or last >= picture)

    @property
    def reach(self) -> int:
        return max(self.shifts, default=0)

    def met(self, positions: int) -> int:
        """How many positions of the picture so many neighbours meet, with all that lies between."""
        return (positions - 1) * self.stride + self.reach + 1


def onto_narrow(narrow: int, kernel: int, stride: int, before: int, dilation: int) -> Axis:
    """Position u meets u·stride − before + tap·dilation."""
    return Axis(narrow, stride, before, tuple(range(kernel)), tuple(q * dilation for q in range(kernel)))


def onto_wide(wide: int, kernel: int, stride: int, before: int, dilation: int) -> Iterator[Axis]:
    """Position i meets (i + before − tap·dilation) ÷ stride where that is whole: a pass for every remainder of i."""
    for r in range(min(stride, wide)):
        taps = tuple(q for q in range(kernel) if (r + before - q * dilation) % stride == 0)
        met = [(r + before - q * dilation) // stride for q in taps]
        lowest = min(met, default=0)
        yield Axis(-(-(wide - r) // stride), 1, -lowest, taps, tuple(u - lowest for u in met), r, stride)


class Pass(NamedTuple):
    """A pass along three axes, of which the first may stand for none."""

    axes: tuple[Axis, Axis, Axis]

    @property
    def taps(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*(axis.taps for axis in self.axes)))

    @property
    def shifts(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*(axis.shifts for axis in self.axes)))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)


ONE = Axis(1, 1, 0, (0,), (0,))


def passes(per_axis: Sequence[Sequence[Axis]]) -> list[Pass]:
    missing = [[ONE]] * (3 - len(per_axis))
    return [Pass((z, y, x)) for z, y, x in itertools.product(*missing, *per_axis)]


class Tensor(NamedTuple):
    """A tensor of (batch, channels, three axes): sizes and strides."""

    batch: int
    channels: int
    sizes: Triple
    steps: tuple[int, int, int, int, int]


def as_five(spec: TensorSpec) -> Tensor:
    (batch, channels, *sizes), (n, c, *steps) = spec.shape, spec.strides
    gap = 3 - len(sizes)
    z, y, x = (1,) * gap + tuple(sizes)
    dz, dy, dx = (0,) * gap + tuple(steps)
    return Tensor(batch, channels, (z, y, x), (n, c, dz, dy, dx))


class Laid(NamedTuple):
    """How boxes of a picture lie: where they are copied to, or in the picture itself."""

    table: list[int]
    rows: Array  # where (channel, tap) begins
    room: int  # elements that a copied box takes


def lay_out(picture: Tensor, channels: int, over: Pass, box: Sequence[int], copied: bool) -> Laid:
    """The table for nopython.staging; who copies has yet to say how."""
    axes = over.axes
    laid = _copied_steps(picture, channels, over, box) if copied else picture.steps
    places = [sum(s * step for s, step in zip(shifts, laid[2:], strict=True)) for shifts in over.shifts]
    if not copied:
        places = [p - sum(a.before * s for a, s in zip(axes, picture.steps[2:], strict=True)) for p in places]
    by_axis = [[getattr(axis, name) for axis in axes] for name in ("stride", "before", "reach")]
    moves = [axis.stride * step for axis, step in zip(axes, laid[2:], strict=True)]
    table = [0, channels, *picture.sizes, *picture.steps, *itertools.chain(*by_axis), *laid, *laid[:2], *moves]
    assert len(table) == STAGE_SIZE
    rows = np.add.outer(np.arange(channels, dtype=np.int64) * laid[1], np.array(places, np.int64)).ravel()
    return Laid(table, rows, in_lines(box[0] * laid[0]) if copied else 0)


def _copied_steps(picture: Tensor, channels: int, over: Pass, box: Sequence[int]) -> tuple[int, int, int, int, int]:
    """Strides of a copied box: channels last if they lie side by side in the picture, else before the axes."""
    z, y, x = (axis.met(b) for axis, b in zip(over.axes, box[1:], strict=True))
    if picture.steps[1] == 1 and picture.steps[4] != 1:
        position = spread(channels)
        return z * y * x * position, 1, y * x * position, x * position, position
    channel = spread(z * y * x)
    return channels * channel, channel, y * x, x, 1


def spread(elements: int) -> int:
    """As many elements in an odd number of cache lines: what lies so far apart gets different places of the first
    cache, where an even number, in the end a power of two, would bring all to a few."""
    return (in_lines(elements) // LINE_ELEMENTS | 1) * LINE_ELEMENTS


def in_lines(elements: int) -> int:
    """As many elements in whole cache lines."""
    return -(-elements // LINE_ELEMENTS) * LINE_ELEMENTS


def box_of(whole: Sequence[int], over: Pass, channels: int, most_elements: int, most_positions: int) -> list[int]:
    """The size of boxes (batch, z, y, x): rows first, as many as fit, evenly; 1 where those inside are not whole."""
    box = [1, 1, 1, 1]

    def fits(d: int, size: int) -> bool:
        trial = [*box[:d], size, *box[d + 1 :]]
        met = math.prod(axis.met(b) for axis, b in zip(over.axes, trial[1:], strict=True))
        positions = math.prod(trial)
        return positions <= LEAST_POSITIONS or (
            channels * trial[0] * met <= most_elements and positions <= most_positions
        )

    for d in (3, 2, 1, 0):
        low, high = 1, whole[d]
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(d, middle) else (low, middle - 1)
        count = -(-whole[d] // low)
        box[d] = -(-whole[d] // count)
        if count > 1:
            break
    return box
