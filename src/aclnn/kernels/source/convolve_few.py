"""The convolutions of convolve.py where a result has few channels, at most those of a panel.

Tiles there leave lanes idle where channels do not fill vectors, and read a picture's element for every vector that they
multiply by it, which is often if there is but one. So the factors are exchanged: vectors are strips of positions that
lie side by side in the picture, with what is between two rows, and each channel of the weight is one number for all of
them. The sums are the same, to the bit.
"""

from __future__ import annotations

from typing import Any

from aclnn.kernels.native.abi import (
    ADDS_BIAS,
    BLOCKS,
    BLOCKS_TOGETHER,
    BOX,
    BOXES,
    CHAIN_LENGTH,
    COPY,
    KINDS_OF,
    OUT_CHANNELS,
    OUT_STRIDES,
    OUTPUTS,
    PANEL_TERMS,
    PER_BIT,
    PER_LOT,
    PUT,
    PUT_SIZE,
    ROOM,
    ROWS,
    SEEN,
    SHARES,
    WHOLE,
)
from aclnn.kernels.source.arithmetic import use_widest_vectors
from aclnn.kernels.source.calls import pointer, shifted
from aclnn.kernels.source.convolve import (
    ALL,
    behind,
    behind_lists,
    make_positions,
    met_blocks,
    places_in,
    say_small,
    term_of,
    weights_at,
)
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import ACROSS, COLUMNS, LANES, half_of, multiply_strips, whole_vectors, words
from aclnn.kernels.source.matrix import LOW, all_tiles, first_row, low_tiles
from aclnn.kernels.source.pair_vectors import clear_seen
from aclnn.kernels.source.panels import width_of
from aclnn.kernels.source.results import put_rows
from aclnn.kernels.source.shares import first_share, following
from aclnn.kernels.source.staging import boxes_in, brought, find_box, start_of

HALF = -(-ACROSS // 2) * LANES  # columns of a panel whose chains end before those of the others: see source.indirect


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
    """As convolve.data, where it is not asked what is not finite: each position has its own sum."""
    use_widest_vectors()
    box, shares, count = words(BOX), pointer(table[SHARES]), boxes_in(boxes)
    clear_seen(shifted(box, SEEN))
    for lot in range(lo, hi):
        room = shifted(scratch, lot * table[PER_LOT])
        work = behind_lists(room, table)
        clear_gaps(room, boxes, table)
        item, end = first_share(lot, shares)
        while item < end:
            group, positions = item // count, find_box(item % count, boxes, box)
            here = places_in(box, boxes, picture, room, table)
            x = brought(source, picture, group, box, room)
            to = out + table[PUT_SIZE] * start_of(box, group, table[OUT_CHANNELS], table, OUT_STRIDES)
            weight = shifted(packed, lot * table[COPY] + group * whole_vectors(table[OUTPUTS]) * table[PANEL_TERMS])
            added = shifted(bias, group * table[OUT_CHANNELS])
            per_picture = positions // box[4]
            lowest, highest = reach_of(here[0], per_picture)
            if highest - lowest < LANES - 1:
                make_positions(x, here, positions, rows, weight, added, to, 0, work, table)
            else:
                for first in range(0, positions, per_picture):
                    last = highest + here[0][first] - here[0][0]
                    make_strips(x, here, first, first + per_picture, last, rows, weight, added, to, work, table)
            item, end = following(item, end, found, shares)
    say_small(box, packed, found)


@inner
def clear_gaps(room: Any, boxes: Any, table: Any) -> None:
    """Zeros where copies of some boxes leave out what strips go over: they all lie as the largest one does, and others
    have shorter rows, or planes with fewer."""
    shorter, lower = boxes[WHOLE + 3] % boxes[BOXES + 3] > 0, boxes[WHOLE + 2] % boxes[BOXES + 2] > 0
    if shorter or (lower and boxes[WHOLE + 1] > boxes[BOXES + 1]):
        for i in range(table[ROOM]):
            room[i] = 0


@inner
def reach_of(places: Any, count: int) -> Any:
    """The lowest and the highest of some places."""
    lowest, highest = places[0], places[0]
    for i in range(1, count):
        lowest, highest = min(lowest, places[i]), max(highest, places[i])
    return lowest, highest


@inner
def make_strips(
    x: Any,
    here: Any,
    first: int,
    beyond: int,
    last: int,
    rows: Any,
    weight: Any,
    bias: Any,
    to: int,
    work: Any,
    table: Any,
) -> None:
    """The positions of a picture from one to below the other, some strips after the others. None goes beyond the last
    place, behind which lies what nobody wrote, or nothing at all. In a view any number of positions may lie at one."""
    places, kinds, out_places = here
    starts, column_of, row_places = words(ACROSS), words(COLUMNS), words(COLUMNS)
    for m in range(table[OUTPUTS]):
        row_places[m] = m * table[OUT_STRIDES + 1]
    aside = shifted(work, COLUMNS * COLUMNS)
    while first < beyond:
        strips, i, mask = 0, first, 0
        while strips < ACROSS and i < beyond and i - first < COLUMNS:
            starts[strips] = min(places[i], last - LANES + 1)
            while i < beyond and i - first < COLUMNS and 0 <= places[i] - starts[strips] < LANES:
                column_of[i - first] = strips * LANES + places[i] - starts[strips]
                if table[KINDS_OF]:
                    mask |= pointer(table[KINDS_OF])[kinds[i]]
                i += 1
            strips += 1
        for idle in range(strips, ACROSS):
            starts[idle] = starts[0]
        sum_strips(x, starts, strips, mask if mask else ALL, rows, weight, work, aside, table)
        add_bias(work, strips * LANES, bias, table)
        put_strips(work, strips * LANES, column_of, i - first, to, shifted(out_places, first), row_places, table)
        first = i


@inner
def sum_strips(
    x: Any, starts: Any, strips: int, mask: int, rows: Any, weight: Any, sums: Any, aside: Any, table: Any
) -> None:
    """The sums of some strips, [channel][strip][position]."""
    columns, width, together = width_of(table[OUTPUTS]), strips * LANES, table[BLOCKS_TOGETHER]
    if table[BLOCKS] == 0:
        for i in range(table[OUTPUTS] * width):
            sums[i] = 0
    for block in range(0, table[BLOCKS], together):
        first, end, begun, start = 0, together, block > 0, term_of(block, table)
        of_each = (term_of(behind(block, table), table) - start) // together
        if table[KINDS_OF]:
            first, end, begun = met_blocks(mask, block // table[PER_BIT], together, block % table[PER_BIT] > 0)
        met, offsets = (end - first) * of_each, shifted(rows, start + first * of_each)
        b = shifted(weights_at(weight, 0, block, table), first * of_each * columns)
        together_ended = HALF if columns == COLUMNS else COLUMNS
        for channel in range(0, table[OUTPUTS] if met else 0, together_ended):
            beyond = min(table[OUTPUTS], channel + together_ended)
            sum_channels(x, starts, strips, offsets, b, columns, channel, beyond, met, sums, begun, aside, table)


@inner
def sum_channels(
    x: Any,
    starts: Any,
    strips: int,
    offsets: Any,
    b: Any,
    columns: int,
    channel: int,
    beyond: int,
    met: int,
    sums: Any,
    begun: bool,
    aside: Any,
    table: Any,
) -> None:
    """What some terms bring to the channels from one to below the other, which end their chains together."""
    tiles, chain = all_tiles(beyond - channel), table[CHAIN_LENGTH]
    high, first = tiles - low_tiles(beyond - channel), half_of(chain) if columns == COLUMNS and channel == 0 else chain
    for t in range(tiles):
        row = channel + first_row(t, high)
        to, those = shifted(sums, row * strips * LANES), shifted(b, row)
        if t < high:
            multiply_strips(ROWS, strips, met, first, chain, x, starts, offsets, those, columns, to, begun, aside)
        else:
            multiply_strips(LOW, strips, met, first, chain, x, starts, offsets, those, columns, to, begun, aside)


@inner
def add_bias(sums: Any, width: int, bias: Any, table: Any) -> None:
    if table[ADDS_BIAS]:
        for m in range(table[OUTPUTS]):
            for j in range(width):
                sums[m * width + j] += bias[m]


@inner
def put_strips(
    sums: Any, width: int, column_of: Any, count: int, to: int, out_places: Any, row_places: Any, table: Any
) -> None:
    """Writes the sums of some positions, those together that are neighbours both there and in the result."""
    i = 0
    while i < count:
        j = i + 1
        while j < count and column_of[j] - column_of[i] == j - i and out_places[j] - out_places[i] == j - i:
            j += 1
        some, there = shifted(sums, column_of[i]), to + table[PUT_SIZE] * out_places[i]
        put_rows(table[PUT], some, width, there, row_places, table[OUTPUTS], j - i, 1)
        i = j
