"""Convolutions as indirect matmuls: result[p, m] = Σ picture[p + (c, tap)] · weight[(c, tap), m].

Rows are positions, columns are channels of the result. A tap is a shift, and so is a channel: the picture is read where
it lies, or from a padded copy of a box of it (see staging.py), and is never written down tap by tap. Sums are cut by
shape alone, so that bits do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import (
    ADDS,
    ADDS_BIAS,
    ALONG,
    BOXES,
    CHAIN_LENGTH,
    COLUMN_PLACES,
    DEPTHS,
    GROUPS,
    LOTS,
    MOVES,
    NO_PLACE,
    OUT_CHANNELS,
    OUT_STRIDES,
    OUTPUTS,
    PACKS,
    PER_LOT,
    PLACES,
    POSITIONS_TOGETHER,
    PUT,
    PUT_SIZE,
    ROOM,
    ROWS,
    SPAN_OF,
    SPLITS,
    TERMS,
    TOGETHER,
    WATCHES,
)
from aclnn.kernels.source.arithmetic import bits_of, use_widest_vectors
from aclnn.kernels.source.calls import floats_at, pointer, shifted
from aclnn.kernels.source.elements import floats, read
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import (
    COLUMNS,
    LANES,
    multiply,
    pack_rows,
    pack_tiles,
    put_rows,
    turn,
    whole_vectors,
    words,
)
from aclnn.kernels.source.staging import as_words, brought, find_box, find_places, start_of
from aclnn.kernels.source.vectors import move

WORTH_TURNING = 3  # terms side by side
SQUARE = LANES * LANES


@inner
def width_of(channels: int) -> int:
    """The columns of a panel that begins where so many channels are left: whole vectors."""
    width: int = min(COLUMNS, whole_vectors(channels))
    return width


def pack_weight(
    lo: int, hi: int, weight: Any, packed: Any, outputs: int, terms: int, places: Any, strides: Any
) -> None:
    """Panels of b, [term][columns]: an item is one. Strides are those of groups and outputs in `weight`."""
    use_widest_vectors()
    for item in range(lo, hi):
        source, to, columns, channels = begin_panel(item, weight, packed, outputs, terms, strides)
        pack_rows(source, strides[1], places, terms, channels, to, columns)


def pack_taps(lo: int, hi: int, weight: Any, packed: Any, outputs: int, terms: int, places: Any, strides: Any) -> None:
    """The same of channels and taps: places are those of the terms, in order, then the rows that they become."""
    use_widest_vectors()
    for item in range(lo, hi):
        source, to, columns, channels = begin_panel(item, weight, packed, outputs, terms, strides)
        pack_terms(source, strides[1], places, terms, channels, to, columns)


@inner
def begin_panel(item: int, weight: Any, packed: Any, outputs: int, terms: int, strides: Any) -> Any:
    """Where a panel comes from and goes to, its columns, and its channels: what is beyond them is 0."""
    panels = -(-outputs // COLUMNS)
    group, channel = item // panels, item % panels * COLUMNS
    columns, channels = width_of(outputs - channel), min(COLUMNS, outputs - channel)
    to = shifted(packed, (group * whole_vectors(outputs) + channel) * terms)
    if channels < columns:
        for i in range(terms * columns):
            to[i] = 0
    return shifted(weight, group * strides[0] + channel * strides[1]), to, columns, channels


@inner
def pack_terms(source: Any, step: int, places: Any, count: int, channels: int, target: Any, columns: int) -> None:
    """The rows of one panel. Terms that lie side by side, as the taps of a channel often do, are turned together: what
    lies behind them is read as well, as long as it is part of the weight."""
    square, rows, i = floats(SQUARE), shifted(places, count), 0
    while i < count:
        together, done = 1, channels // LANES * LANES
        while together < LANES and i + together < count and places[i + together] == places[i] + together:
            together += 1
        if step == 1:
            together = 1
            for m in range(0, done, LANES):
                move(LANES, source, places[i] + m, target, rows[i] * columns + m)
        elif together >= WORTH_TURNING and places[i] + LANES <= places[count - 1] + 1:
            for m in range(0, done, LANES):
                turn(1, source, places[i] + m * step, step, square, 0, LANES)
                for r in range(together):
                    move(LANES, square, r * LANES, target, rows[i + r] * columns + m)
        else:
            done = 0
        for r in range(i, i + together):
            for m in range(done, channels):
                target[rows[r] * columns + m] = read(source, places[r] + m * step)
        i += together


def pack_blocks(
    lo: int, hi: int, weight: Any, packed: Any, columns: int, terms: int, places: Any, strides: Any, channels: int
) -> None:
    """The same where the positions of a block lie side by side in a row, each with its channels; places are those of
    one after the other, below all that there are where a position has no tap."""
    use_widest_vectors()
    panels = -(-columns // COLUMNS)
    for item in range(lo, hi):
        group, first = item // panels, item % panels * COLUMNS
        width = width_of(columns - first)
        to = shifted(packed, (group * whole_vectors(columns) + first) * terms)
        for j in range(width):
            position, channel = (first + j) // channels, (first + j) % channels
            start = group * strides[0] + channel * strides[1]
            for term in range(terms):
                element = np.float32(0)
                if first + j < columns and places[position * terms + term] > NO_PLACE:
                    element = read(weight, start + places[position * terms + term])
                to[term * width + j] = element


def data(
    lo: int,
    hi: int,
    source: int,
    out: int,
    packed: Any,
    bias: Any,
    scratch: Any,
    found: Any,
    picture: Any,
    boxes: Any,
    rows: Any,
    table: Any,
) -> None:
    """Items are lots: each does its share of the boxes of all groups, and of the panels of their results. found[0] = 1
    if an element is not finite and that is asked."""
    use_widest_vectors()
    box = words(8)
    count, splits = boxes[BOXES] * boxes[BOXES + 1] * boxes[BOXES + 2] * boxes[BOXES + 3], table[SPLITS]
    items, per_group = count * boxes[GROUPS] * splits, whole_vectors(table[OUTPUTS]) * table[TERMS]
    for lot in range(lo, hi):
        room = shifted(scratch, lot * table[PER_LOT])
        lists = shifted(room, table[ROOM])
        places, out_places = as_words(lists), as_words(shifted(lists, table[PLACES]))
        spans, work = as_words(shifted(lists, 2 * table[PLACES])), shifted(lists, 3 * table[PLACES])
        for item in range(items * lot // table[LOTS], items * (lot + 1) // table[LOTS]):
            group, split = item // splits // count, item % splits
            positions = find_box(item // splits % count, boxes, box)
            find_places(box, table[ALONG], picture, MOVES, places)
            find_places(box, table[ALONG], table, OUT_STRIDES, out_places)
            find_spans(box, positions, table, spans)
            x = brought(source, picture, group, box, room)
            to = out + table[PUT_SIZE] * start_of(box, group, table[OUT_CHANNELS], table, OUT_STRIDES)
            weight, added = shifted(packed, group * per_group), shifted(bias, group * table[OUT_CHANNELS])
            for first in range(0, positions, table[TOGETHER]):
                here = shifted(places, first), shifted(spans, first // ROWS * 2), shifted(out_places, first)
                together = min(table[TOGETHER], positions - first)
                if make_panels(x, here, together, rows, weight, added, to, split, work, table):
                    found[0] = 1


@inner
def make_panels(
    x: Any, here: Any, together: int, rows: Any, weight: Any, bias: Any, to: int, split: int, work: Any, table: Any
) -> bool:
    """A split of the panels of a box's result at some positions: `here` says where these lie in the picture, which
    blocks of the sum they take, and where they lie in the result. Says whether
    an element is not finite and that is asked."""
    bases, spans, out_places = here
    near, offsets, strange = x, rows, False
    outputs = table[OUTPUTS]
    panels = -(-outputs // COLUMNS)
    if table[PACKS]:
        near, offsets = shifted(work, (POSITIONS_TOGETHER + ROWS) * COLUMNS), shifted(rows, table[TERMS])
        pack_tiles(x, bases, -(-together // ROWS), rows, table[TERMS], table[TERMS], near)
        bases = shifted(offsets, table[TERMS])
    for panel in range(panels * split // table[SPLITS], panels * (split + 1) // table[SPLITS]):
        channel = panel * COLUMNS
        sum_up(near, bases, together, offsets, weight, channel, work, spans, table)
        if table[ADDS_BIAS]:
            add_bias(work, together, bias, channel, table)
        if table[WATCHES] and is_strange(work, together * width_of(outputs - channel)):
            strange = True
        if table[ADDS]:
            add_present(work, together, to, out_places, channel, table)
        put_panel(work, together, to, out_places, channel, table)
    return strange


@inner
def find_spans(box: Any, positions: int, table: Any, spans: Any) -> None:
    """Writes the first and the end of the blocks of a sum that each tile takes: in the others, all its positions meet
    nothing but padding. A tile that meets nothing takes all of them, and so becomes 0."""
    along, span_of = table[ALONG], pointer(table[SPAN_OF])
    per_place = positions // box[4 + along]
    for i in range(0, positions, ROWS):
        first, end = 0, table[DEPTHS]
        if along:
            here, last = i // per_place, min(i + ROWS - 1, positions - 1) // per_place
            first, end = span_of[2 * (box[along] + last)], span_of[2 * (box[along] + here) + 1]
        spans[i // ROWS * 2], spans[i // ROWS * 2 + 1] = (first, end) if first < end else (0, table[DEPTHS])


@inner
def sum_up(
    x: Any, places: Any, count: int, rows: Any, weight: Any, channel: int, sums: Any, spans: Any, table: Any
) -> None:
    """The sums of a panel of channels at some positions."""
    terms, depths = table[TERMS], table[DEPTHS]
    columns = width_of(table[OUTPUTS] - channel)
    aside = shifted(sums, POSITIONS_TOGETHER * COLUMNS)
    b = shifted(weight, channel * terms)
    if depths == 0:
        for i in range(count * columns):
            sums[i] = 0
    for block in range(depths):
        start, stop = terms * block // depths, terms * (block + 1) // depths
        for i in range(0, count, ROWS):
            c, first = shifted(sums, i * columns), spans[i // ROWS * 2]
            if block < first or block >= spans[i // ROWS * 2 + 1]:
                continue
            multiply(
                ROWS,
                1,
                columns,
                stop - start,
                table[CHAIN_LENGTH],
                x,
                shifted(places, i),
                shifted(rows, start),
                shifted(b, start * columns),
                0,
                c,
                block > first,
                aside,
            )


@inner
def is_strange(sums: Any, count: int) -> bool:
    """Whether one of them is not finite."""
    worst = np.int32(0)
    for i in range(count):
        worst = max(worst, bits_of(sums[i]) & np.int32(0x7F800000))
    strange: bool = worst == np.int32(0x7F800000)
    return strange


@inner
def add_bias(sums: Any, count: int, bias: Any, channel: int, table: Any) -> None:
    outputs, channels = table[OUTPUTS], table[OUT_CHANNELS]
    columns = width_of(outputs - channel)
    for m in range(min(columns, outputs - channel)):
        added = bias[(channel + m) % channels]
        for i in range(count):
            sums[i * columns + m] += added


@inner
def add_present(sums: Any, count: int, out: int, places: Any, channel: int, table: Any) -> None:
    """What the result has already."""
    outputs, step = table[OUTPUTS], table[OUT_STRIDES + 1]
    columns, present = width_of(outputs - channel), floats_at(out + 4 * channel * step)
    for i in range(count):
        for m in range(min(columns, outputs - channel)):
            sums[i * columns + m] += present[places[i] + m * step]


@inner
def put_panel(sums: Any, count: int, out: int, places: Any, channel: int, table: Any) -> None:
    """Writes a panel of channels."""
    left, step = table[OUTPUTS] - channel, table[OUT_STRIDES + 1]
    to = out + table[PUT_SIZE] * channel * step
    if table[COLUMN_PLACES]:
        to, step = out, table[COLUMN_PLACES] + 8 * channel
    put_rows(table[PUT], sums, width_of(left), to, places, count, min(COLUMNS, left), step)
