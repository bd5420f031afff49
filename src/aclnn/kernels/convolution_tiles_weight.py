"""gradWeight on tiles: the sum over all positions in parts, cut by shape alone, and the parts joined in pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aclnn.kernels import jit
from aclnn.kernels.convolution_boxes import Laid, Pass, as_five, box_of, joined_axes, lay_out
from aclnn.kernels.convolution_tiles import (
    FOUND,
    IGNORED,
    MOST_POSITIONS,
    PACKED_ELEMENTS,
    PER_THREAD,
    STAGED_ELEMENTS,
    Launch,
    Room,
    Shape,
    chain,
    columns,
    must_copy,
    packed_rows,
    tap_places,
)
from aclnn.kernels.nopython.agreed import DEPTH, MOST_PARTS, TALL, WEIGHT_TABLE
from aclnn.kernels.threads import worth

LEAST_PART = 2048  # positions that pay for a part


class WeightPlan:
    """Two launches: the parts, and what joins them."""

    def __init__(self, shape: Shape, names: tuple[str, str, str], room: Room):
        """The names are those of the wide tensor, the narrow one and the result; shape.weight is the result."""
        self._shape, self._names, self._room = shape, names, room
        (over,) = shape.onto_narrow()
        wide, narrow = as_five(shape.wide), as_five(shape.narrow)
        self._inputs, self._outputs = wide.channels // shape.groups, narrow.channels // shape.groups
        self._places = tap_places(shape.weight, over)
        self.pads = any(axis.pads(n) for axis, n in zip(over.axes, wide.sizes, strict=True))
        copied, steps = must_copy(shape.wide, over, self.pads), narrow.steps
        if not copied:
            over, wide, (n, c, z, y, x) = joined_axes(over, wide, steps)
            steps = (n, c, z, y, x)
        first, second, third = (a._replace(stride=1, before=0, taps=(0,), shifts=(0,)) for a in over.axes)
        plain = Pass((first, second, third))
        whole = (wide.batch, *over.sizes)
        box = box_of(whole, over, self._inputs, STAGED_ELEMENTS, MOST_POSITIONS)
        narrow = narrow._replace(sizes=(first.size, second.size, third.size), steps=steps)
        copied_too = must_copy(shape.narrow, plain, pads=False)
        pictures = (
            lay_out(wide, self._inputs, over, box, copied, 2 * columns()),
            lay_out(narrow, self._outputs, plain, box, copied_too, 2 * columns()),
        )
        self.launches = self._launches(whole, box, pictures)

    def _launches(self, whole: Sequence[int], box: Sequence[int], pictures: tuple[Laid, Laid]) -> list[Launch]:
        groups, threads, put = self._shape.groups, self._room.threads, self._room.numbers.put
        boxes = [-(-w // b) for w, b in zip(whole, box, strict=True)]
        height, slivers = packed_rows(self._outputs), -(-len(self._places) * self._inputs // columns())
        made = groups * height * slivers * columns()
        parts = self._parts(math.prod(whole), math.prod(boxes), made)
        splits = min(slivers, -(-threads // (parts * groups)))
        lots = min(threads, parts * groups * splits)
        inner, outer = pictures
        per_lot = inner.room + outer.room + (height + TALL) * DEPTH + (DEPTH + jit.vectors().lanes) * columns()
        scratch, sums = self._room.arena.reserve(4 * per_lot * lots), self._room.arena.reserve(4 * made * parts)
        table = [lots, per_lot, inner.room, self._outputs, len(self._places), parts, splits, chain(math.prod(whole))]
        table += [outer.room, max(1, PACKED_ELEMENTS // (TALL * DEPTH))]
        assert len(table) == WEIGHT_TABLE
        numbers = put(table)
        tables = put(inner.table), put(outer.table), put([*whole, *box, *boxes, groups]), put(inner.rows), numbers
        kinds = jit.letters(self._shape.wide.dtype, self._shape.narrow.dtype) + "FFIIIII"
        operands = (*self._names[:2], sums, scratch)
        return [
            Launch("convolve_weights.weights", kinds, lots, operands, tables, lots),
            self._join(sums, numbers, worth(made * parts, PER_THREAD, threads)),
        ]

    def _join(self, sums: int, table: int, threads: int) -> Launch:
        result, put = self._shape.weight, self._room.numbers.put
        narrow_step, wide_step = result.strides[:2]
        steps = put([narrow_step * self._outputs, narrow_step, wide_step])
        numbers = (self._shape.groups, self._inputs, steps, put(self._places), table)
        operands = (sums, self._names[2], FOUND if self.pads else IGNORED)
        kinds = "F" + jit.POINTER[result.dtype] + "IiiIII"
        return Launch("convolve_weights.join", kinds, self._shape.groups * self._outputs, operands, numbers, threads)

    def _parts(self, positions: int, boxes: int, made: int) -> int:
        """Into how many parts the sum is cut, a power of two: by shape alone, in no more memory than the tensors."""
        parts, most = 1, self._shape.wide.size + self._shape.narrow.size
        while 2 * parts <= min(MOST_PARTS, boxes, positions // LEAST_PART) and 2 * parts * made <= most:
            parts *= 2
        return parts
