"""gradWeight of a convolution: result[(c, tap), m] = Σ picture[(c, tap) + p] · outer[p, m], the sum over all positions.

Parts of the sum are made one by one, cut by shape alone, and joined in pairs: bits do not depend on the threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import (
    BOXES,
    CHAIN_LENGTH,
    COLUMNS_TOGETHER,
    DEPTH,
    GROUPS,
    IS_WATCHED,
    LOTS,
    MOVES,
    OUTER_ROOM,
    OUTPUTS,
    PACKS_TILES,
    PARTS,
    PER_LOT,
    PLACES,
    POSITIONS_TOGETHER,
    PUT,
    PUT_SIZE,
    ROOM,
    ROWS,
    SPLITS,
    TERMS,
    TILES_TOGETHER,
)
from aclnn.kernels.source.arithmetic import bits_of, use_widest_vectors
from aclnn.kernels.source.calls import shifted
from aclnn.kernels.source.convolve import width_of
from aclnn.kernels.source.indirect import (
    COLUMNS,
    inner,
    multiply,
    pack_rows,
    pack_tiles,
    put_rows,
    whole_vectors,
    words,
)
from aclnn.kernels.source.staging import as_words, brought, find_box, find_places


@inner
def size_of(table: Any) -> int:
    """The elements of a part of the sum, of one group."""
    size: int = -(-table[TERMS] // ROWS) * ROWS * whole_vectors(table[OUTPUTS])
    return size


def weights(
    lo: int,
    hi: int,
    source: int,
    outer: int,
    made: Any,
    scratch: Any,
    picture: Any,
    outer_picture: Any,
    boxes: Any,
    rows: Any,
    table: Any,
) -> None:
    """Items are lots: each does its share of all parts of the sum, of all groups, in all splits of the rows."""
    use_widest_vectors()
    box = words(8)
    items, splits = table[PARTS] * boxes[GROUPS] * table[SPLITS], table[SPLITS]
    count = boxes[BOXES] * boxes[BOXES + 1] * boxes[BOXES + 2] * boxes[BOXES + 3]
    tiles = -(-table[TERMS] // ROWS)
    for lot in range(lo, hi):
        room = shifted(scratch, lot * table[PER_LOT])
        outer_room = shifted(room, table[ROOM])
        places = as_words(shifted(outer_room, table[OUTER_ROOM]))
        outer_places = as_words(shifted(outer_room, table[OUTER_ROOM] + table[PLACES]))
        work = shifted(outer_room, table[OUTER_ROOM] + 2 * table[PLACES])
        for item in range(items * lot // table[LOTS], items * (lot + 1) // table[LOTS]):
            which, split = item // splits, item % splits
            part, group = which // boxes[GROUPS], which % boxes[GROUPS]
            left, right = tiles * split // splits, tiles * (split + 1) // splits
            sums, first = shifted(made, which * size_of(table)), count * part // table[PARTS]
            for index in range(first, count * (part + 1) // table[PARTS]):
                positions = find_box(index, boxes, box)
                find_places(box, picture, MOVES, places)
                find_places(box, outer_picture, MOVES, outer_places)
                g = brought(outer, outer_picture, group, box, outer_room)
                x = brought(source, picture, group, box, room)
                step = outer_picture[MOVES + 1]
                begun = index > first
                add_box(x, places, g, outer_places, step, positions, sums, work, left, right, begun, rows, table)


@inner
def add_box(
    x: Any,
    places: Any,
    outer: Any,
    outer_places: Any,
    step: int,
    positions: int,
    sums: Any,
    work: Any,
    left: int,
    right: int,
    begun: bool,
    rows: Any,
    table: Any,
) -> None:
    """What a box of positions brings to the tiles left … right − 1 of every panel."""
    outputs, rows_made = table[OUTPUTS], -(-table[TERMS] // ROWS) * ROWS
    depths, wide, high = -(-positions // DEPTH), table[COLUMNS_TOGETHER], table[TILES_TOGETHER]
    aside = shifted(work, DEPTH * wide)
    packed = shifted(aside, ROWS * COLUMNS)
    for block in range(depths):
        start, stop = positions * block // depths, positions * (block + 1) // depths
        begun_block = begun or block > 0
        for channel in range(0, outputs, wide):
            beyond = min(outputs, channel + wide)
            pack_panels(outer, step, shifted(outer_places, start), stop - start, channel, beyond, work)
            for tile in range(left, right, high):
                last = min(right, tile + high)
                if table[PACKS_TILES]:
                    pack_tiles(
                        x, shifted(rows, tile * ROWS), last - tile, shifted(places, start), stop - start, DEPTH, packed
                    )
                for panel in range(channel, beyond, COLUMNS):
                    columns = width_of(outputs - panel)
                    for t in range(tile, last):
                        near, bases, offsets = x, shifted(rows, t * ROWS), shifted(places, start)
                        if table[PACKS_TILES]:
                            near, bases = shifted(packed, (t - tile) * ROWS * DEPTH), shifted(rows, rows_made)
                            offsets = shifted(bases, ROWS)
                        multiply(
                            ROWS,
                            1,
                            columns,
                            stop - start,
                            table[CHAIN_LENGTH],
                            near,
                            bases,
                            offsets,
                            shifted(work, (panel - channel) * DEPTH),
                            0,
                            shifted(sums, panel * rows_made + t * ROWS * columns),
                            begun_block,
                            aside,
                        )


@inner
def pack_panels(outer: Any, step: int, places: Any, count: int, channel: int, beyond: int, target: Any) -> None:
    """`count` positions of the channels from one to below the other, a panel of DEPTH rows after the other."""
    for panel in range(channel, beyond, COLUMNS):
        to, channels = shifted(target, (panel - channel) * DEPTH), min(COLUMNS, beyond - panel)
        pack_rows(shifted(outer, panel * step), step, places, count, channels, to, width_of(beyond - panel))


def join(lo: int, hi: int, made: Any, out: int, found: Any, groups: int, places: Any, steps: Any, table: Any) -> None:
    """The sum of all parts, in pairs, where the first was; items are panels, some rows at a time. Steps are those of
    groups and outputs. found[0] = 1 if an element is not finite and that is asked."""
    use_widest_vectors()
    worst = np.int32(0)
    terms, outputs = table[TERMS], table[OUTPUTS]
    blocks, panels = -(-terms // POSITIONS_TOGETHER), -(-outputs // COLUMNS)
    rows_made, part_size = -(-terms // ROWS) * ROWS, groups * size_of(table)
    for item in range(lo, hi):
        group, channel = item // blocks // panels, item // blocks % panels * COLUMNS
        first = item % blocks * POSITIONS_TOGETHER
        count, columns = min(POSITIONS_TOGETHER, terms - first), width_of(outputs - channel)
        start = group * size_of(table) + channel * rows_made + first * columns
        half = table[PARTS] // 2
        while half:
            for part in range(half):
                to, other = start + part * part_size, start + (part + half) * part_size
                for i in range(count * columns):
                    made[to + i] += made[other + i]
            half //= 2
        channels = min(COLUMNS, outputs - channel)
        if table[IS_WATCHED]:
            for i in range(count):
                for m in range(channels):
                    worst = max(worst, bits_of(made[start + i * columns + m]) & np.int32(0x7F800000))
        to = out + table[PUT_SIZE] * (group * steps[0] + channel * steps[1])
        put_rows(table[PUT], shifted(made, start), columns, to, shifted(places, first), count, channels, steps[1])
    if worst == np.int32(0x7F800000):
        found[0] = 1
