"""gradWeight of a convolution: result[(c, tap), m] = Σ picture[(c, tap) + p] · outer[p, m], the sum over all positions.

Parts of the sum are made one by one, cut by shape alone, and joined two by two: bits do not depend on the threads.
Where scratch is of pairs, positions that are neighbours in a row are multiplied together: see source.pairs.
"""

from __future__ import annotations

from typing import Any

from aclnn.kernels.native.abi import (
    BOX,
    CHAIN_LENGTH,
    COLUMNS_TOGETHER,
    GROUPS,
    IS_WATCHED,
    LIMITS_OF,
    MOVES,
    NEAR,
    OUTER_ROOM,
    OUTERMOST,
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
    SEEN,
    SHARES,
    SPLITS,
    TERMS,
    TILES_TOGETHER,
)
from aclnn.kernels.source.arithmetic import is_strange, use_widest_vectors
from aclnn.kernels.source.calls import address_of, pointer, shifted
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import COLUMNS, multiply, whole_vectors, words
from aclnn.kernels.source.packing import clear_beyond, pack_rows, pack_tiles
from aclnn.kernels.source.pair_vectors import clear_seen, least_exponent
from aclnn.kernels.source.pairs import LEAST_OF_PRODUCTS, as_floats, terms_in
from aclnn.kernels.source.panels import width_of
from aclnn.kernels.source.results import put_listed
from aclnn.kernels.source.shares import first_share, following
from aclnn.kernels.source.staging import as_words, boxes_in, brought, find_box, find_places
from aclnn.kernels.source.vectors import LINE, TO_WRITE, fetch


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
    found: Any,
    picture: Any,
    outer_picture: Any,
    boxes: Any,
    rows: Any,
    table: Any,
) -> None:
    """Items are lots: each takes shares of the parts of all groups' sums, in all splits of the rows."""
    use_widest_vectors()
    box, outer_box, shares, splits = words(BOX), words(BOX), pointer(table[SHARES]), table[SPLITS]
    count, tiles = boxes_in(boxes), -(-table[TERMS] // ROWS)
    clear_seen(shifted(box, SEEN))
    clear_seen(shifted(outer_box, SEEN))
    for lot in range(lo, hi):
        room = shifted(scratch, lot * table[PER_LOT])
        outer_room = shifted(room, table[ROOM])
        lists = shifted(outer_room, table[OUTER_ROOM])
        places, outer_places = as_words(lists), as_words(shifted(lists, table[PLACES]))
        work = shifted(lists, 2 * table[PLACES])
        item, end = first_share(lot, shares)
        while item < end:
            which, split = item // splits, item % splits
            part, group = which // boxes[GROUPS], which % boxes[GROUPS]
            some = tiles * split // splits, tiles * (split + 1) // splits
            sums, first = shifted(made, which * size_of(table)), count * part // table[PARTS]
            for index in range(first, count * (part + 1) // table[PARTS]):
                along = table[OUTERMOST]
                g = brought_box(index, boxes, outer_box, outer, outer_picture, group, outer_room, along, outer_places)
                x = brought_box(index, boxes, box, source, picture, group, room, along, places)
                other, positions = (g, outer_places, outer_picture[MOVES + 1]), box[4] * box[5] * box[6] * box[7]
                add_box(box, positions, (x, places), other, sums, work, some, index > first, rows, table)
            item, end = following(item, end, found, shares)
    say_small(box, outer_box, scratch, found)


@inner
def say_small(box: Any, outer_box: Any, room: Any, found: Any) -> None:
    """found[0] = 1 if what was brought as pairs is too small to be multiplied as such."""
    if terms_in(room) > 1:
        least = least_exponent(shifted(box, SEEN)) + least_exponent(shifted(outer_box, SEEN))
        if least < LEAST_OF_PRODUCTS:
            found[0] = 1


@inner
def brought_box(
    index: int, boxes: Any, box: Any, source: int, picture: Any, group: int, room: Any, along: int, places: Any
) -> Any:
    """Brings a box of a tensor, and lists where its positions lie: pairs of neighbours in its rows, if these were
    brought, and the box is one of these then."""
    find_box(index, boxes, box)
    there = brought(source, picture, group, box, room)
    box[7] = -(-box[7] // terms_in(room))
    find_places(box, along, picture, MOVES, places)
    return there


@inner
def add_box(
    box: Any,
    positions: int,
    picture: Any,
    other: Any,
    sums: Any,
    work: Any,
    tiles: Any,
    begun: bool,
    rows: Any,
    table: Any,
) -> None:
    """What a box of positions brings to some tiles of every panel. The picture is given with the places of the
    positions, the other tensor also with the step from channel to channel; of tiles, the first and the end."""
    outputs, depths, wide, high = table[OUTPUTS], -(-positions // NEAR), table[COLUMNS_TOGETHER], table[TILES_TOGETHER]
    outer, outer_places, step = other
    for block in range(depths):
        start, stop = positions * block // depths, positions * (block + 1) // depths
        begun_block = begun or block > 0
        for channel in range(0, outputs, wide):
            beyond = min(outputs, channel + wide)
            pack_panels(outer, step, shifted(outer_places, start), stop - start, channel, beyond, work)
            for tile in range(tiles[0], tiles[1], high):
                some = tile, min(tiles[1], tile + high)
                add_tiles(
                    box, positions, start, stop, picture, channel, beyond, some, sums, work, begun_block, rows, table
                )


@inner
def add_tiles(
    box: Any,
    positions: int,
    start: int,
    stop: int,
    picture: Any,
    channel: int,
    beyond: int,
    tiles: Any,
    sums: Any,
    work: Any,
    begun: bool,
    rows: Any,
    table: Any,
) -> None:
    """What the positions start … stop − 1 of a box bring to some tiles of the panels that are packed: each takes those
    that meet more than padding; the first time, where there are none, all of them."""
    rows_made, (x, places) = -(-table[TERMS] // ROWS) * ROWS, picture
    behind = shifted(work, NEAR * table[COLUMNS_TOGETHER])
    aside, packed = as_floats(behind), shifted(behind, ROWS * COLUMNS)
    if table[PACKS_TILES]:
        listed, near = shifted(rows, tiles[0] * ROWS), shifted(places, start)
        pack_tiles(x, listed, tiles[1] - tiles[0], near, stop - start, NEAR, packed, False)
    for panel in range(channel, beyond, COLUMNS):
        columns = width_of(table[OUTPUTS] - panel)
        for t in range(tiles[0], tiles[1]):
            low, high = met_by(t, box, positions, start, stop, table)
            if low >= high:
                if begun:
                    continue
                low, high = start, stop
            near, bases, offsets = x, shifted(rows, t * ROWS), shifted(places, low)
            if table[PACKS_TILES]:
                near, bases = shifted(packed, (t - tiles[0]) * ROWS * NEAR), shifted(rows, rows_made)
                offsets = shifted(bases, ROWS + low - start)
            made = shifted(sums, panel * rows_made + t * ROWS * columns)
            for line in range(0, ROWS * columns, LINE):
                fetch(made, line, TO_WRITE)  # it comes near while the terms are summed up
            b, chain = shifted(work, (panel - channel) * NEAR + (low - start) * columns), table[CHAIN_LENGTH]
            multiply(ROWS, 1, columns, high - low, chain, near, bases, offsets, b, 0, made, begun, aside, b, 0)


@inner
def met_by(tile: int, box: Any, positions: int, start: int, stop: int, table: Any) -> Any:
    """The first and the end of the positions start … stop − 1 that meet more than padding in a tile."""
    limits, along = pointer(table[LIMITS_OF]), table[OUTERMOST]
    begins, per_place = box[along], positions // box[4 + along]
    low, high = (limits[2 * tile] - begins) * per_place, (limits[2 * tile + 1] - begins) * per_place
    return max(start, low), min(stop, high)


@inner
def pack_panels(outer: Any, step: int, places: Any, count: int, channel: int, beyond: int, target: Any) -> None:
    """`count` positions of the channels from one to below the other, a panel of NEAR rows after the other."""
    for panel in range(channel, beyond, COLUMNS):
        to, channels = shifted(target, (panel - channel) * NEAR), min(COLUMNS, beyond - panel)
        columns = width_of(beyond - panel)
        clear_beyond(to, count, columns, channels, columns)
        pack_rows(shifted(outer, panel * step), step, places, count, channels, to, columns)


def join(lo: int, hi: int, made: Any, out: int, found: Any, groups: int, places: Any, strides: Any, table: Any) -> None:
    """The sum of all parts, in pairs, where the first was; items are panels, some rows at a time. Places are those of
    the rows of the result, in order, then where these were made. Strides are those of groups and outputs. found[0] = 1
    if an element is not finite and that is asked."""
    use_widest_vectors()
    strange = False
    terms, outputs = table[TERMS], table[OUTPUTS]
    blocks, panels = -(-terms // POSITIONS_TOGETHER), -(-outputs // COLUMNS)
    rows_made, part_size = -(-terms // ROWS) * ROWS, groups * size_of(table)
    for item in range(lo, hi):
        group, channel = item // blocks // panels, item // blocks % panels * COLUMNS
        first = item % blocks * POSITIONS_TOGETHER
        count, columns = min(POSITIONS_TOGETHER, terms - first), width_of(outputs - channel)
        start, rows = group * size_of(table) + channel * rows_made, shifted(places, terms + first)
        if table[PARTS] > 1:
            for i in range(count):
                join_parts(made, start + rows[i] * columns, part_size, table[PARTS], columns)
        channels = min(COLUMNS, outputs - channel)
        if table[IS_WATCHED]:
            for i in range(count):
                strange |= is_strange(shifted(made, start + rows[i] * columns), channels)
        to = out + table[PUT_SIZE] * (group * strides[0] + channel * strides[1])
        some, step = shifted(places, first), strides[1]
        put_listed(table[PUT], shifted(made, start), columns, to, some, count, channels, step, address_of(rows), 0)
    if strange:
        found[0] = 1


@inner
def join_parts(made: Any, start: int, part_size: int, parts: int, columns: int) -> None:
    """One row: the sum of its parts, in pairs, where the first was."""
    half = parts // 2
    while half:
        for part in range(half):
            to, other = start + part * part_size, start + (part + half) * part_size
            for i in range(columns):
                made[to + i] += made[other + i]
        half //= 2
