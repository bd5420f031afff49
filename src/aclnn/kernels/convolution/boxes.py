"""The geometry of convolutions on tiles: what positions a pass has, how they are cut into boxes, how a box is laid out.

A pass is a convolution with its own taps: the positions of its result, the stride with which it goes over the picture,
and for every tap how far it is shifted. From the narrow side to the wide one, with a stride, there is a pass for every
remainder of the stride: it has the taps that meet its positions, and goes over the picture step by step.

Where a result has few channels, which would leave most lanes of a vector idle, neighbouring positions are joined to
blocks: a pass then makes all positions of a block at once, as if they were channels. It has the shifts of all of them,
and none of the taps where a position does not meet what is there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.kernels.native.abi import STAGE_SIZE
from aclnn.kernels.shared.workspace import LINE_ELEMENTS, in_lines, spread

Triple = tuple[int, int, int]
WORTH_LEAVING_OUT = 0.01  # of all multiplications


class Axis(NamedTuple):
    """A pass along one axis."""

    size: int  # positions of the result, or blocks of them
    stride: int  # between the positions of the picture that they meet first
    before: int  # positions of padding before the picture; below 0: positions that are left out
    shifts: tuple[int, ...]  # from where a position begins to what it meets, at least 0
    taps: tuple[tuple[int | None, ...], ...]  # for every position of a block, the tap at each of the shifts
    start: int = 0  # the first position's place in the result, and the step to the next, or to the next block
    step: int = 1

    def pads(self, picture: int) -> bool:
        """Whether positions meet something beyond a picture of this size."""
        last = (self.size - 1) * self.stride + max(self.shifts, default=0) - self.before
        return bool(self.shifts) and (self.before > 0 or last >= picture)

    @property
    def reach(self) -> int:
        return max(self.shifts, default=0)

    def meets(self, picture: int) -> Array:
        """For every position and shift, whether there is something of a picture of this size."""
        places = np.add.outer(np.arange(self.size) * self.stride - self.before, np.array(self.shifts, np.int64))
        return (places >= 0) & (places < picture)

    def limits(self, picture: int) -> list[tuple[int, int]]:
        """For every shift, the first and the end of the positions that meet a picture of this size."""
        before = [self.before - shift for shift in self.shifts]
        return [(max(0, -(-b // self.stride)), min(self.size, -(-(picture + b) // self.stride))) for b in before]

    def met(self, positions: int) -> int:
        """How many positions of the picture so many neighbours meet, with all that lies between."""
        return (positions - 1) * self.stride + self.reach + 1


class Taps(NamedTuple):
    """How the taps of a convolution lie along one axis, and the sizes of its two sides."""

    kernel: int
    stride: int
    before: int
    dilation: int
    wide: int
    narrow: int

    def onto_narrow(self, block: int = 1) -> Iterator[Axis]:
        """Position u meets u·stride − before + tap·dilation. What is left behind whole blocks is a smaller one."""
        for start, size, together in _blocks(self.narrow, block):
            first = start * self.stride - self.before
            met = [
                {first + r * self.stride + q * self.dilation: q for q in range(self.kernel)} for r in range(together)
            ]
            yield _axis(met, size, block * self.stride, start, block, self.wide)

    def onto_wide(self, block: int = 1) -> Iterator[Axis]:
        """Position i meets (i + before − tap·dilation) ÷ stride where that is whole. Blocks are multiples of the
        stride; without, there is a pass for every remainder of i that meets anything."""
        if block % self.stride:
            remainders = {(q * self.dilation - self.before) % self.stride for q in range(self.kernel)}
            for r in sorted(r for r in remainders if r < self.wide):
                yield _axis([self._met_by(r)], -(-(self.wide - r) // self.stride), 1, r, self.stride, self.narrow)
            return
        for start, size, together in _blocks(self.wide, block):
            met = [self._met_by(start + r) for r in range(together)]
            yield _axis(met, size, block // self.stride, start, block, self.narrow)

    def _met_by(self, i: int) -> dict[int, int]:
        reached = {q: i + self.before - q * self.dilation for q in range(self.kernel)}
        return {place // self.stride: q for q, place in reached.items() if place % self.stride == 0}


def _blocks(positions: int, block: int) -> Iterator[tuple[int, int, int]]:
    """Whole blocks and what is left: where they start, how many there are, how many positions each has."""
    whole, rest = divmod(positions, block)
    if whole:
        yield 0, whole, block
    if rest:
        yield whole * block, 1, rest


def _axis(met: Sequence[dict[int, int]], size: int, stride: int, start: int, step: int, picture: int) -> Axis:
    """The axis of a pass whose first block meets these places, by which taps; without those that never meet a picture
    of this size."""
    first = {place: max(0, -(place // stride)) for place in set().union(*met)}  # the block that meets something
    places = sorted(p for p, block in first.items() if block < size and p + block * stride < picture)
    lowest = min(places, default=0)
    taps = tuple(tuple(by.get(place) for place in places) for by in met)
    return Axis(size, stride, -lowest, tuple(place - lowest for place in places), taps, start, step)


class Pass(NamedTuple):
    """A pass along three axes, of which the first may stand for none."""

    axes: tuple[Axis, Axis, Axis]

    @property
    def taps(self) -> list[list[tuple[int | None, ...]]]:
        """For every position of a block, the tap at each of the shifts; along an axis it may be none."""
        blocks = itertools.product(*(axis.taps for axis in self.axes))
        return [list(itertools.product(*by_axis)) for by_axis in blocks]

    @property
    def most_taps(self) -> int:
        """How many a position meets, at most."""
        return max(sum(None not in tap for tap in taps) for taps in self.taps)

    @property
    def block(self) -> int:
        """The positions of a block."""
        return math.prod(len(axis.taps) for axis in self.axes)

    @property
    def shifts(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*(axis.shifts for axis in self.axes)))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)


ONE = Axis(1, 1, 0, (0,), ((0,),))


def passes(per_axis: Sequence[Sequence[Axis]], sizes: Sequence[int]) -> list[Pass]:
    """All combinations of axes. Where some positions meet nothing, the first pass goes over all of them, without taps,
    and the others write over what they meet."""
    missing = [[ONE]] * (3 - len(per_axis))
    met = [[axis for axis in axes if axis.shifts] for axes in (*missing, *per_axis)]
    found, whole = [Pass((z, y, x)) for z, y, x in itertools.product(*met)], (*[1] * len(missing), *sizes)
    if all(sum(a.size * len(a.taps) for a in axes) == size for axes, size in zip(met, whole, strict=True)):
        return found
    z, y, x = (Axis(size, 1, 0, (), ((),)) for size in whole)
    return [Pass((z, y, x)), *found]


class Picture(NamedTuple):
    """A tensor of (batch, channels, three axes): sizes and strides."""

    batch: int
    channels: int
    sizes: Triple
    strides: tuple[int, int, int, int, int]


def as_five(spec: TensorSpec) -> Picture:
    (batch, channels, *sizes), (n, c, *strides) = spec.shape, spec.strides
    gap = 3 - len(sizes)
    z, y, x = (1,) * gap + tuple(sizes)
    dz, dy, dx = (0,) * gap + tuple(strides)
    return Picture(batch, channels, (z, y, x), (n, c, dz, dy, dx))


def outermost(over: Pass, sizes: Triple) -> int:
    """The axis, 1 or 2, along which multiplications with padding can be left out: that of the planes, or of the rows
    if one plane meets one; 0 where it does not pay. Sums then go from shift to shift along this axis, see in_order."""
    planes = over.axes[0]
    along = 1 if planes.size > 1 or len(planes.shifts) > 1 else 2
    axis, picture = over.axes[along - 1], sizes[along - 1]
    if over.block > 1 or len(axis.shifts) < 2 or not axis.pads(picture):
        return 0
    met = sum(end - first for first, end in axis.limits(picture))
    return along if met <= (1 - WORTH_LEAVING_OUT) * axis.size * len(axis.shifts) else 0


class Laid(NamedTuple):
    """How boxes of a picture lie: where they are copied to, or in the picture itself."""

    table: list[int]
    rows: Array  # where (channel, tap) begins
    room: int  # elements that a copied box takes


def lay_out(picture: Picture, given: int, over: Pass, box: Sequence[int], copied: bool, together: int = 1) -> Laid:
    """The table for source.staging, of the given channels, some of them together; who copies has yet to say how."""
    axes, channels = over.axes, -(-given // together)
    channels_last = channels_fill_lines(picture, given)  # else they are turned while they are copied
    laid = _copied_strides(channels, channels_last, over, box) if copied else picture.strides
    places = [sum(s * step for s, step in zip(shifts, laid[2:], strict=True)) for shifts in over.shifts]
    if not copied:
        places = [p - sum(a.before * s for a, s in zip(axes, picture.strides[2:], strict=True)) for p in places]
    by_axis = [[getattr(axis, name) for axis in axes] for name in ("stride", "before", "reach")]
    moves = [axis.stride * step for axis, step in zip(axes, laid[2:], strict=True)]
    table = [0, channels, *picture.sizes, *picture.strides, *itertools.chain(*by_axis), *laid, *laid[:2], *moves]
    table += [given, 0]
    assert len(table) == STAGE_SIZE
    rows = np.add.outer(np.arange(channels, dtype=np.int64) * laid[1], np.array(places, np.int64))
    return Laid(table, rows, in_lines(box[0] * laid[0]) if copied else 0)


def must_copy(source: TensorSpec, pads: bool) -> bool:
    """Whether a picture cannot be read where it lies."""
    return source.dtype is not FLOAT32 or pads


def channels_fill_lines(picture: Picture, channels: int) -> bool:
    """Whether so many channels of a position lie side by side, at least a cache line of them."""
    return picture.strides[1] == 1 and picture.strides[4] != 1 and channels >= LINE_ELEMENTS


def _copied_strides(
    channels: int, channels_last: bool, over: Pass, box: Sequence[int]
) -> tuple[int, int, int, int, int]:
    """Strides of a copied box: channels last, or before the axes."""
    z, y, x = (axis.met(b) for axis, b in zip(over.axes, box[1:], strict=True))
    if channels_last:
        position = spread(channels)
        return z * y * x * position, 1, y * x * position, x * position, position
    channel = spread(z * y * x)
    return channels * channel, channel, y * x, x, 1


def boxes_of(whole: Sequence[int], over: Pass, channels: int, most_elements: int, least: int, most: int) -> list[int]:
    """Into how many boxes (batch, z, y, x) are cut: of those with 1, 2, 4 … planes that have the longest rows, the ones
    that meet the least for each of their positions. They have the least positions whatever these take, and never more
    than the most."""

    def met(box: Sequence[int]) -> int:
        return box[0] * math.prod(axis.met(size) for axis, size in zip(over.axes, box[1:], strict=True))

    def fits(box: Sequence[int]) -> bool:
        positions = math.prod(box)
        return positions <= least or (channels * met(box) <= most_elements and positions <= most)

    begun = ([1, 1 << n, 1, 1] for n in range(whole[1].bit_length()))
    boxes = [_grown(box, whole, fits) for box in begun if fits(box)] or [[1, 1, 1, 1]]
    return largest(whole, min(boxes, key=lambda box: (-box[3], met(box) / math.prod(box))))


def largest(whole: Sequence[int], boxes: Sequence[int]) -> list[int]:
    """The size of the largest box, where a whole is cut into so many; or how many there are of that size."""
    return [-(-w // b) for w, b in zip(whole, boxes, strict=True)]


def divided_between(threads: int, boxes: Sequence[int], whole: Sequence[int], groups: int) -> list[int]:
    """Boxes that so many threads share evenly: more along the first axis where that can be, at most twice as many."""
    for axis, count in enumerate(boxes):
        others = groups * math.prod(boxes) // count
        for more in range(count, min(2 * count, whole[axis] + 1)):
            if more * others % threads == 0:
                return [*boxes[:axis], more, *boxes[axis + 1 :]]
    return [*boxes]


def _grown(begun: Sequence[int], whole: Sequence[int], fits: Callable[[Sequence[int]], bool]) -> list[int]:
    """Rows first, as many as fit, evenly; then more of what is outside only where all that is inside is whole."""
    box = [*begun]
    for d in (3, 2, 1, 0):
        low, high = box[d], whole[d]
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits([*box[:d], middle, *box[d + 1 :]]) else (low, middle - 1)
        count = -(-whole[d] // low)
        box[d] = -(-whole[d] // count)
        if count > 1:
            break
    return box
