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
LEAST_POSITIONS = 256  # of a box, whatever it takes: fewer would leave columns of tiles idle

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
    def phases(self) -> int:
        return min(self.stride, max(self.shifts, default=0) + 1)

    @property
    def beyond(self) -> int:
        return max(self.shifts, default=0) // self.stride


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


def lay_out(picture: Tensor, channels: int, over: Pass, box: Sequence[int], copied: bool, slack: int) -> Laid:
    """The table for nopython.staging. `slack` elements behind a copied box are read, but mean nothing."""
    axes = over.axes
    if copied:
        lengths = [b + axis.beyond for b, axis in zip(box[1:], axes, strict=True)]
        z, y = lengths[1] * lengths[2], lengths[2]
        whole = lengths[0] * z
        phases = (axes[1].phases * axes[2].phases * whole, axes[2].phases * whole, whole)
        channel = axes[0].phases * phases[0]
        laid = (channels * channel, channel, z, y, 1)
    else:
        phases, laid = (0, 0, 0), picture.steps
    places = [
        sum(
            shift % axis.stride * phase + shift // axis.stride * step
            for shift, axis, phase, step in zip(shifts, axes, phases, laid[2:], strict=True)
        )
        for shifts in over.shifts
    ]
    if not copied:
        places = [p - sum(a.before * s for a, s in zip(axes, picture.steps[2:], strict=True)) for p in places]
    by_axis = [[getattr(axis, name) for axis in axes] for name in ("stride", "before", "phases", "beyond")]
    table = [int(copied), channels, *picture.sizes, *picture.steps, *itertools.chain(*by_axis), *laid, *phases]
    assert len(table) == STAGE_SIZE
    rows = np.add.outer(np.arange(channels, dtype=np.int64) * laid[1], np.array(places, np.int64)).ravel()
    room = box[0] * laid[0] + slack if copied else 0
    return Laid(table, rows, -(-room // LINE_ELEMENTS) * LINE_ELEMENTS)


def box_of(whole: Sequence[int], over: Pass, channels: int, most_elements: int, most_positions: int) -> list[int]:
    """The size of boxes (batch, z, y, x): rows first, as many as fit, evenly; 1 where those inside are not whole."""
    box = [1, 1, 1, 1]
    taken = channels * math.prod(axis.phases for axis in over.axes)
    beyond = [0, *(axis.beyond for axis in over.axes)]

    def fits(d: int, size: int) -> bool:
        trial = [*box[:d], size, *box[d + 1 :]]
        elements = taken * math.prod(b + more for b, more in zip(trial, beyond, strict=True))
        positions = math.prod(trial)
        return positions <= LEAST_POSITIONS or (elements <= most_elements and positions <= most_positions)

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


def joined_axes(over: Pass, picture: Tensor, out_steps: Sequence[int]) -> tuple[Pass, Tensor, tuple[int, ...]]:
    """The same with axes joined that are one in memory, where there is one tap: long rows instead of short ones."""
    one_tap = all(a.taps and a.stride == 1 and a.before == 0 and set(a.shifts) == {0} for a in over.axes)
    sizes, steps, out = list(picture.sizes), list(picture.steps), list(out_steps)
    if not one_tap or tuple(sizes) != over.sizes:
        return over, picture, tuple(out)
    for d in (1, 0):  # each joins the last axis
        if sizes[d] != 1 and (steps[2 + d], out[2 + d]) != (steps[4] * sizes[2], out[4] * sizes[2]):
            break
        sizes[2], sizes[d] = sizes[2] * sizes[d], 1
    axes = [axis._replace(size=n) for axis, n in zip(over.axes, sizes, strict=True)]
    return Pass((axes[0], axes[1], axes[2])), picture._replace(sizes=(sizes[0], sizes[1], sizes[2])), tuple(out)
