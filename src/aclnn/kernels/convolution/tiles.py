"""Convolutions on tiles of our own: how a pass is launched. See source/convolve.py for what it computes.

Planning is arithmetic: boxes that fit the second cache, sums cut by shape alone, a few buffers in the workspace.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32, DType
from aclnn.base.geometry import Array
from aclnn.base.taps import Window
from aclnn.base.tensor import TensorSpec, dense
from aclnn.kernels.convolution import strips
from aclnn.kernels.convolution.boxes import (
    Laid,
    Pass,
    as_five,
    boxes_of,
    channels_fill_lines,
    divided_between,
    largest,
    lay_out,
    must_copy,
)
from aclnn.kernels.convolution.packing import PackedPass, WeightPacking
from aclnn.kernels.convolution.padding import Order, Read, in_order, order_of
from aclnn.kernels.convolution.shape import Shape
from aclnn.kernels.matmul.tiles import columns, panels_of, put_of
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import DATA_TABLE, FAR_WEIGHTS, MOVES, NEAR, POSITIONS_TOGETHER, ROWS, STAGE
from aclnn.kernels.native.launch_sequence import FOUND
from aclnn.kernels.native.threads import worth
from aclnn.kernels.shared.launch import Launch, Room, shares
from aclnn.kernels.shared.workspace import LINE_ELEMENTS, gap_behind, in_lines

STAGED_ELEMENTS = 56 * 1024  # of a box: half of a second cache of 512 KB, beside what is packed
MOST_POSITIONS = 4096  # of a box
BOXES_PER_THREAD = 4  # at least, so that threads end together
KEPT_ELEMENTS = 96 * 1024  # of tiles that are packed at a time, and of sums that are not whole yet
PACKED_PANELS, PACKED_TERMS = 2, 64  # at least, that are made of them, and terms of their sums
MANY_CHANNELS = 256  # a line of each is most of a first cache
MANY_PANELS = 24  # that pay for packing where several taps use these lines: to pack takes about as long as one panel
FIRST_CACHE_ELEMENTS = 8 * 1024
NEAR_ELEMENTS = 1 << 16  # of a result that the second caches of threads have, with all that makes it
FAR_ELEMENTS = 1 << 20  # of one that no cache keeps until it is read
FEW_TERMS = 256  # of a sum that is sooner made than where it will be written comes near
LEAST_SHARE = 96  # positions of a box, for all that
LEAST_POSITIONS = 256  # of a box, whatever it takes: sums and panels of the weight come near once per box
MULTIPLICATIONS_PER_THREAD = 1 << 17  # that do so too
FEW_CHANNELS = 2  # vectors of them: with fewer, blocks of positions may pay
BLOCKS = (1, 2, 3, 4, 5, 8, 16)  # how many positions, or as many times the stride, blocks may have along an axis
WORTH_JOINING = 0.8  # of the cost without blocks
READING = 0.5  # the cost of an element that is read for these
PASS = 2000  # the cost of a pass, in multiplications of vectors
PACKING = 6  # that of an element of a block's weight


def places_of(box: Sequence[int]) -> int:
    """Elements that the list of a box's places takes, a number of 8 bytes each, with those that fill a tile."""
    return in_lines(2 * (math.prod(box) + ROWS))


def cheapest_passes(shape: Shape, onto_wide: bool, channels: int) -> list[Pass]:
    """The passes that take the fewest multiplications of vectors: with blocks only where there are few channels, and
    where they save more than what is left over at their edges might cost."""
    alone = shape.passes(onto_wide)
    if channels >= FEW_CHANNELS * jit.vectors().lanes:
        return alone
    sizes = (shape.wide if onto_wide else shape.narrow).shape[2:]
    strides = shape.window.stride if onto_wide else (1,) * len(sizes)
    choices = [sorted({1, *(s * n for n in BLOCKS if s * n <= size)}) for s, size in zip(strides, sizes, strict=True)]
    choices[:-2] = [c[:2] for c in choices[:-2]]
    found = [shape.passes(onto_wide, blocks) for blocks in itertools.product(*choices)]
    best = min(found, key=lambda overs: _cost(overs, shape, onto_wide, channels))
    joined, single = (_cost(overs, shape, onto_wide, channels) for overs in (best, alone))
    return best if joined < WORTH_JOINING * single else alone


def _cost(overs: Sequence[Pass], shape: Shape, onto_wide: bool, channels: int) -> float:
    """Multiplications of vectors by an element, half of one for every element that is read for them, on tiles or in
    strips, whichever takes less; and what packing takes: a block has its own weight at each of its positions, which is
    packed once, however few pictures there are."""
    lanes, (source, out) = jit.vectors().lanes, shape.source_and_result(onto_wide)
    cost = 0.0
    for over in overs:
        of_tiles = -(-over.block * channels // lanes) + READING
        each = min(of_tiles, strips.cost(over, source, out, source.shape[1] // shape.groups, channels))
        packing = PACKING * over.block * channels
        cost += len(over.shifts) * (out.shape[0] * math.prod(over.sizes) * each + packing) + PASS
    return cost


def zeros(out: TensorSpec, name: str, room: Room) -> list[Launch]:
    """What fills a tensor with zeros: a convolution without taps."""
    ones = (1,) * (out.rank - 2)
    nothing = dense(FLOAT32, (out.shape[1], 1, *(0 for _ in ones)))
    shape = Shape(dense(FLOAT32, (out.shape[0], 1, *out.shape[2:])), out, nothing, Window(ones, ones, ones, ones), 1)
    return DataPlan(shape, False, (None, None, name, None), room).launches


class Kept(NamedTuple):
    """What a lot of a pass has near while it makes sums."""

    positions: int  # whose sums are made together
    panels: int  # that take turns
    summed: int  # columns whose sums it has: those of all these panels, unless one block makes a panel whole
    packed_terms: int  # of blocks that are packed; 0: none is

    @property
    def elements(self) -> int:
        return ROWS * columns() + self.positions * (self.summed + self.packed_terms)


class DataPlan:
    """A result made from a picture and the weight: all its passes.

    `onto_wide` says which side the result is: gradInput of a plain convolution, or a transposed one.
    """

    def __init__(
        self,
        shape: Shape,
        onto_wide: bool,
        names: tuple[str | None, str | None, str, str | None],
        room: Room,
    ):
        """The names are those of the picture, the weight, the result and perhaps the bias."""
        self._shape, self._onto_wide, self._names, self._room = shape, onto_wide, names, room
        source, out = shape.source_and_result(onto_wide)
        self._source, self._out = source, out
        self._given, self._outputs = source.shape[1] // shape.groups, out.shape[1] // shape.groups
        self._each = 2 if self._given > 1 and shape.pairs(source, shape.weight) else 1  # channels of an input
        self._inputs = -(-self._given // self._each)
        self.packing: list[Launch] = []
        self.launches: list[Launch] = []
        overs = cheapest_passes(shape, onto_wide, self._outputs)
        orders = list(map(self._order, overs))
        self._threads = max(map(self._threads_for, overs))
        found = FOUND if self._each > 1 or any(map(self._pads, overs)) else None
        packing = WeightPacking(shape, onto_wide, self._each, names[1], found, self._threads, room, self.packing)
        for of_a_pass in zip(overs, orders, packing.of_passes(overs, orders), strict=True):
            self._add_pass(*of_a_pass)

    def _order(self, over: Pass) -> Order:
        """The order of a pass that takes the least, on tiles or in strips."""
        picture = as_five(self._source)
        sizes, has_lines = picture.sizes, channels_fill_lines(picture, self._given)
        cost = strips.cost(over, self._source, self._out, self._inputs, self._outputs)
        of_tiles = order_of(over, sizes, self._inputs, Read(self._packs_taps(over), has_lines, self._each))
        each = strips.cost_of_tiles(self._outputs)
        if math.isinf(cost):
            return of_tiles
        in_strips = order_of(over, sizes, self._inputs, Read(each=self._each), in_strips=True)
        costs = [order.cost(over, sizes, self._inputs) for order in (in_strips, of_tiles)]
        return in_strips if cost * costs[0] < each * costs[1] else of_tiles

    def _pads(self, over: Pass) -> bool:
        return any(axis.pads(n) for axis, n in zip(over.axes, as_five(self._source).sizes, strict=True))

    def _add_pass(self, over: Pass, order: Order, packed: PackedPass) -> None:
        picture, out = as_five(self._source), as_five(self._out)
        axes = list(zip(over.axes, out.strides[2:], strict=True))
        start = sum(axis.start * step for axis, step in axes)
        out_strides = (*out.strides[:2], *(axis.step * step for axis, step in axes))
        copied = bool(over.shifts) and must_copy(self._source, self._pads(over))
        whole, threads = (out.batch, *over.sizes), self._threads_for(over)
        positions, panels = math.prod(whole) * self._shape.groups, panels_of(over.block * self._outputs)
        most = max(LEAST_SHARE, min(MOST_POSITIONS, positions // (BOXES_PER_THREAD * threads)))
        least = LEAST_POSITIONS if panels >= threads else min(LEAST_POSITIONS, -(-positions // threads))
        boxes = boxes_of(whole, over, self._inputs, STAGED_ELEMENTS, least, most)
        boxes = divided_between(threads, boxes, whole, self._shape.groups)
        laid = lay_out(picture, self._given, over, largest(whole, boxes), copied, self._each)
        laid.table[STAGE] = stage_of(self._source.dtype, self._each) if copied else 0
        self._launch(over, order, boxes, laid, out_strides, packed, start)

    def _launch(
        self,
        over: Pass,
        order: Order,
        boxes: Sequence[int],
        laid: Laid,
        out_strides: Sequence[int],
        packed: PackedPass,
        start: int,
    ) -> None:
        whole = (self._out.shape[0], *over.sizes)
        box = largest(whole, boxes)
        items, columns_made = math.prod(boxes) * self._shape.groups, over.block * self._outputs
        terms, places, threads = laid.rows.size, places_of(box), self._threads_for(over)
        splits = min(panels_of(columns_made), -(-threads // items))
        lots = min(threads, items * splits)
        kept = self._kept(over, order, laid, -(-panels_of(columns_made) // splits), math.prod(box))
        per_lot = laid.room + 3 * places + kept.elements + (gap_behind(laid.room, self._inputs) if lots > 1 else 0)
        scratch = self._room.arena.reserve(4 * per_lot * lots)
        adds_bias = self._names[3] is not None
        put, joins = self._room.numbers.put, over.block > 1
        regroups = int(2 in order.axes or (len(order.axes) > 0 and box[0] > 1))  # else neighbours are of one kind
        kinds_of = put(order.kinds(over, as_five(self._source).sizes)) if order.axes else 0
        taken = put(shares(items * splits, lots, self._out.size <= NEAR_ELEMENTS))
        table = [taken, per_lot, laid.room, places, columns_made, terms, splits, order.chain]
        table += [*put_of(self._out.dtype, self._how_to_put(over, order, out_strides)), order.blocks, order.per_shift]
        table += [order.together, regroups, kinds_of]
        column_places = put(self._column_places(over)) if joins else 0
        table += [int(adds_bias), kept.positions, kept.packed_terms, kept.panels]
        table += [packed.terms, packed.first, packed.copy, self._outputs, column_places, int(joins)]
        table += [*_what_is_fetched(terms, columns_made, joins), *out_strides]
        assert len(table) == DATA_TABLE
        rows = in_order(laid.rows, over, order.axes).ravel()
        rows = np.concatenate([rows, *_packed_places(kept.positions, kept.packed_terms)]) if kept.packed_terms else rows
        tables = put(laid.table), put([*whole, *boxes, self._shape.groups]), put(rows), put(table)
        operands = (self._names[0], self._names[2], packed.place, self._names[3], scratch, FOUND)
        starts = (0, start * self._out.dtype.itemsize, 0, 0, 0, 0)
        name = "convolve_few.data" if order.in_strips else "convolve.data"
        self.launches.append(Launch(name, f"ii{jit.factors(self._each)}FFIIIII", lots, operands, tables, lots, starts))
        self._room.arena.release(scratch, 4 * per_lot * lots)

    def _threads_for(self, over: Pass) -> int:
        """How many threads have enough to do."""
        made = self._out.shape[0] * math.prod(over.sizes) * over.block * self._out.shape[1]
        return worth(made * max(1, len(over.shifts) * self._inputs), MULTIPLICATIONS_PER_THREAD, self._room.threads)

    def _how_to_put(self, over: Pass, order: Order, out_strides: Sequence[int]) -> str:
        """What in source/results.py writes the result: past the caches if it is large, whole lines are written, and its
        sums take long enough that lines need not come near before (0.95 to 1.0 of the time; of short sums 1.0 to 1.2).
        """
        if over.block > 1:
            return "put_blocks"
        fills_lines = out_strides[1] % LINE_ELEMENTS == 0 and out_strides[4] == 1 and not order.in_strips
        is_far = self._out.dtype is FLOAT32 and self._out.size >= FAR_ELEMENTS
        if is_far and fills_lines and self._inputs * len(over.shifts) > FEW_TERMS:
            return "put_far"
        return "put_apart" if out_strides[4] == 2 * self._out.strides[-1] == 2 else "put"

    def _column_places(self, over: Pass) -> Array:
        """Where the columns of a block lie behind its first: channel by channel for each of its positions."""
        strides = as_five(self._out).strides
        positions = [range(len(axis.taps)) for axis in over.axes]
        of_positions = [sum(map(operator.mul, at, strides[2:])) for at in itertools.product(*positions)]
        return np.add.outer(of_positions, np.arange(self._outputs) * strides[1]).ravel()

    def _kept(self, over: Pass, order: Order, laid: Laid, panels: int, positions: int) -> Kept:
        """Panels take turns for every block of terms where that is packed for them, and where the block of a panel's
        weights is near: else those of one panel had better come in order."""
        packed_terms = order.terms_together(laid.rows.size) if self._packs(over, laid) else 0
        several = order.blocks > order.together
        together = panels if packed_terms or (several and _weights_are_near()) else 1
        summed = together * columns() if several else columns()
        fitting = KEPT_ELEMENTS // max(packed_terms, summed) // ROWS * ROWS
        filled = -(-positions // ROWS) * ROWS
        least = strips.rows_kept() if order.in_strips else ROWS
        return Kept(max(least, min(POSITIONS_TOGETHER, filled, fitting)), together, summed, packed_terms)

    def _packs(self, over: Pass, laid: Laid) -> bool:
        """Whether channels lie far apart, and these are many: read where they are, a tile of every channel would bring
        a cache line near for a few elements of it, and again for every panel. Positions that do not lie side by side
        are packed one by one, which pays only if else the lines drive a block of weights out of the first cache."""
        to_next_channel, to_next_position = laid.table[MOVES + 1], laid.table[MOVES + 4]
        if to_next_channel == 1:
            return False
        if len(over.shifts) > 1:
            return self._packs_taps(over)
        side_by_side = self._inputs >= PACKED_TERMS and bool(to_next_position == 1)
        many = self._inputs >= MANY_CHANNELS and _weights_are_near()
        return (side_by_side or many) and self._outputs > PACKED_PANELS * columns()

    def _packs_taps(self, over: Pass) -> bool:
        """The same of several taps: shorter blocks of terms keep their weights near as well."""
        many = self._inputs >= MANY_CHANNELS and self._outputs >= MANY_PANELS * columns()
        return len(over.shifts) > 1 and many and _weights_are_near()


def _what_is_fetched(terms: int, columns_made: int, joins: bool) -> tuple[int, int]:
    """Whether weights come near before they are met, and results before they are written."""
    return int(terms * columns_made >= FAR_WEIGHTS), int(terms <= FEW_TERMS and not joins)


def _weights_are_near() -> bool:
    """Whether the first cache has the weights of a panel for the longest block of terms."""
    return NEAR * columns() <= FIRST_CACHE_ELEMENTS


def _packed_places(positions: int, terms: int) -> tuple[Array, Array]:
    """How packed tiles lie: where the terms of a row do, and where the rows."""
    rows = np.arange(positions + ROWS)
    return ROWS * np.arange(terms), rows // ROWS * ROWS * terms + rows % ROWS


def stage_of(dtype: DType, each: int = 1) -> int:
    """What copies boxes of such a picture, so many channels as one. Raises NoNativeCodeError."""
    name = "staging_pairs.stage" if each > 1 else "staging.stage"
    return jit.load(name, jit.POINTER[dtype] + jit.factors(each) + "IIi").address
