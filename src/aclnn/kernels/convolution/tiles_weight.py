"""gradWeight on tiles: the sum over all positions in parts, cut by shape alone, and the parts joined in pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.kernels.convolution.boxes import Laid, Pass, as_five, boxes_of, largest, lay_out, must_copy, outermost
from aclnn.kernels.convolution.packing import PER_THREAD
from aclnn.kernels.convolution.padding import in_order
from aclnn.kernels.convolution.shape import Shape, tap_places
from aclnn.kernels.convolution.tiles import (
    LEAST_POSITIONS,
    MOST_POSITIONS,
    MULTIPLICATIONS_PER_THREAD,
    STAGED_ELEMENTS,
    places_of,
    stage_of,
    zeros,
)
from aclnn.kernels.matmul.tiles import columns, even_chain, packed_columns, panels_of, put_of
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import (
    EVERY_POSITION,
    MOST_PARTS,
    MOVES,
    NEAR,
    PAIRED,
    POSITIONS,
    POSITIONS_TOGETHER,
    ROWS,
    STAGE,
    WEIGHT_TABLE,
)
from aclnn.kernels.native.launch_sequence import FOUND
from aclnn.kernels.native.threads import worth
from aclnn.kernels.shared.launch import Launch, Room, shares
from aclnn.kernels.shared.workspace import gap_behind

FARTHEST = 1 << 40  # beyond all positions
LEAST_PART = 2048  # positions that pay for a part
COLUMNS_TOGETHER, TILES_TOGETHER = 256, 16  # of packed tiles: half of a second cache of 512 KB and more with both


class WeightPlan:
    """Two launches: the parts, and what joins them."""

    def __init__(self, shape: Shape, names: tuple[str, str, str], room: Room):
        """The names are those of the wide tensor, the narrow one and the result; shape.weight is the result."""
        shape, names = _cheaper(shape, names)
        self._shape, self._names, self._room = shape, names, room
        *_, over = shape.passes(onto_wide=False)
        self.launches = zeros(shape.weight, names[2], room) if _misses_taps(shape.weight, over) else []
        if not over.shifts:
            return
        wide, narrow = as_five(shape.wide), as_five(shape.narrow)
        self._inputs, self._outputs = wide.channels // shape.groups, narrow.channels // shape.groups
        (self._taps,) = tap_places(shape.weight, over)
        self._each = 2 if shape.pairs(shape.wide, shape.narrow) else 1  # positions that are multiplied together
        self._over, self._along = over, outermost(over, wide.sizes)
        self.pads = any(axis.pads(n) for axis, n in zip(over.axes, wide.sizes, strict=True))
        first, second, third = (a._replace(stride=1, before=0, taps=((0,),), shifts=(0,)) for a in over.axes)
        plain = Pass((first, second, third))
        whole = (wide.batch, *over.sizes)
        boxes = boxes_of(whole, over, self._inputs, STAGED_ELEMENTS, LEAST_POSITIONS, MOST_POSITIONS)
        box = self._pairs_of(largest(whole, boxes))
        paired = self._pairs_met()
        met = [*box[:3], box[3] * self._each] if paired == EVERY_POSITION else box
        copied, copied_too = must_copy(shape.wide, self.pads), must_copy(shape.narrow, pads=False)
        pictures = (
            lay_out(wide, self._inputs, over, met, copied),
            lay_out(narrow, self._outputs, plain, box, copied_too),
        )
        for laid, spec, is_copied in zip(pictures, (shape.wide, shape.narrow), (copied, copied_too), strict=True):
            laid.table[STAGE] = stage_of(spec.dtype, self._each) if is_copied else 0
        if self._each > 1:
            inner, outer = (laid.table for laid in pictures)
            inner[PAIRED], outer[PAIRED] = paired, POSITIONS
            inner[MOVES + 4] *= self._each if paired == EVERY_POSITION else 1
        self.launches += self._launches(whole, boxes, pictures)

    def _launches(self, whole: Sequence[int], boxes: Sequence[int], pictures: tuple[Laid, Laid]) -> list[Launch]:
        groups, put, box = self._shape.groups, self._room.numbers.put, self._pairs_of(largest(whole, boxes))
        inner, outer = pictures
        terms, packs = inner.rows.size, self._packs_tiles(inner)
        tiles = -(-terms // ROWS)
        multiplications = math.prod(whole) * groups * terms * self._outputs // self._each
        threads = worth(multiplications, MULTIPLICATIONS_PER_THREAD, self._room.threads)
        wide, high = (COLUMNS_TOGETHER, TILES_TOGETHER) if packs else (columns(), tiles)
        made = groups * ROWS * tiles * packed_columns(self._outputs)
        parts = self._parts(math.prod(whole), math.prod(boxes), made)
        splits = min(tiles, -(-threads // (parts * groups)))
        positions = math.prod(box)
        summed = even_chain(math.prod(self._pairs_of(whole)), -(-positions // -(-positions // NEAR)), each=self._each)
        lots, places = min(threads, parts * groups * splits), places_of(box)
        per_lot = inner.room + outer.room + 2 * places + NEAR * wide + ROWS * columns() + packs * high * ROWS * NEAR
        per_lot += gap_behind(inner.room + outer.room, self._inputs) if lots > 1 else 0
        scratch, sums = self._room.arena.reserve(4 * per_lot * lots), self._room.arena.reserve(4 * made * parts)
        taken = put(shares(parts * groups * splits, lots))
        table = [taken, per_lot, inner.room, places, self._outputs, terms, splits, summed]
        table += [*put_of(self._shape.weight.dtype), parts, outer.room, wide, high, int(packs)]
        table += [int(self.pads or self._each > 1), self._along, put(self._limits(terms))]
        assert len(table) == WEIGHT_TABLE
        rows = self._in_order(inner.rows, packs).tolist()
        rows += [rows[-1]] * (ROWS * tiles - terms) + [*range(ROWS), *range(0, ROWS * NEAR, ROWS)]
        numbers = put(table)
        tables = put(inner.table), put(outer.table), put([*whole, *boxes, groups]), put(rows), numbers
        operands = (*self._names[:2], sums, scratch, FOUND)
        for place, elements in ((scratch, per_lot * lots), (sums, made * parts)):
            self._room.arena.release(place, 4 * elements)
        return [
            Launch("convolve_weights.weights", f"iiF{jit.factors(self._each)}IIIIII", lots, operands, tables, lots),
            self._join(sums, terms, numbers, packs, worth(made * parts, PER_THREAD, threads)),
        ]

    def _pairs_met(self) -> int:
        """Which positions of the wide tensor are pairs: those of a box, if nothing else of their rows is met."""
        along = self._over.axes[2]
        alone = (
            along.reach == 0 and along.stride == 1 and along.before == 0 and not along.pads(self._shape.wide.shape[-1])
        )
        return POSITIONS if alone else EVERY_POSITION

    def _pairs_of(self, sizes: Sequence[int]) -> list[int]:
        """Sizes whose last is of pairs, if it is."""
        *others, row = sizes
        return [*others, -(-row // self._each)]

    def _packs_tiles(self, picture: Laid) -> bool:
        """Whether rows are channels that lie side by side: read where they are, every one of the positions would bring
        a cache line near for a tile's few elements of it, and again for every panel."""
        to_next_channel, to_next_position = picture.table[MOVES + 1], picture.table[MOVES + 4]
        return to_next_channel == 1 != to_next_position and self._outputs > columns()

    def _in_order(self, rows: Array, channels_last: bool) -> Array:
        """(channel, tap), or (tap, channel) so that neighbours are rows of one tile."""
        ordered = in_order(rows, self._over, (self._along - 1,) if self._along else ())
        return (ordered.swapaxes(1, 2) if channels_last else ordered).ravel()

    def _limits(self, terms: int) -> Array:
        """The positions along the outermost axis that tiles meet: those of their first and of their last row."""
        tiles = np.arange(-(-terms // ROWS))
        if not self._along:
            return np.tile([-FARTHEST, FARTHEST], len(tiles))
        axis, picture = self._over.axes[self._along - 1], as_five(self._shape.wide).sizes[self._along - 1]
        limits, per_shift = np.array(axis.limits(picture)), terms // len(axis.shifts)
        first, last = tiles * ROWS // per_shift, np.minimum(tiles * ROWS + ROWS - 1, terms - 1) // per_shift
        return np.stack([limits[last, 0], limits[first, 1]], 1).ravel()

    def _join(self, sums: int, terms: int, table: int, packs: bool, threads: int) -> Launch:
        result, groups, put = self._shape.weight, self._shape.groups, self._room.numbers.put
        narrow_stride, wide_stride = result.strides[:2]
        places = np.add.outer(np.arange(self._inputs, dtype=np.int64) * wide_stride, self._taps)
        made = self._in_order(places, packs)
        rows = np.argsort(made)
        numbers = (
            groups,
            put(np.concatenate([made[rows], rows])),
            put([narrow_stride * self._outputs, narrow_stride]),
            table,
        )
        operands = (sums, self._names[2], FOUND)
        items = groups * panels_of(self._outputs) * -(-terms // POSITIONS_TOGETHER)
        return Launch("convolve_weights.join", "FiIiIII", items, operands, numbers, threads)

    def _parts(self, positions: int, boxes: int, made: int) -> int:
        """Into how many parts the sum is cut, a power of two: by shape alone, in no more memory than the tensors."""
        parts, most = 1, self._shape.wide.size + self._shape.narrow.size
        while 2 * parts <= min(MOST_PARTS, boxes, positions // LEAST_PART) and 2 * parts * made <= most:
            parts *= 2
        return parts


def _misses_taps(weight: TensorSpec, over: Pass) -> bool:
    """Whether there are taps that meet nothing."""
    return len(over.shifts) < math.prod(weight.shape[2:])


def _cheaper(shape: Shape, names: tuple[str, str, str]) -> tuple[Shape, tuple[str, str, str]]:
    """The same sum with fewer channels to pack: where there is one tap, the two tensors can change places."""
    wide, narrow, weight, window, groups, in_pairs = shape
    same = wide.shape[2:] == narrow.shape[2:] and set(window.padding_before) == {0} and set(window.stride) == {1}
    if groups > 1 or weight.shape[2:] != (1,) * (weight.rank - 2) or not same or narrow.shape[1] <= wide.shape[1]:
        return shape, names
    order = (1, 0, *range(2, weight.rank))
    turned = TensorSpec(weight.dtype, tuple(weight.shape[i] for i in order), tuple(weight.strides[i] for i in order))
    return Shape(narrow, wide, turned, window, groups, in_pairs), (names[1], names[0], names[2])
