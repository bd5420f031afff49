"""Matmuls with a packed matrix, the steps of an LSTM made of them, and sums over the rows of two matrices.

Work is cut by tiles, a block of rows after the other, there a panel after the other: whatever the sizes, each thread
has its share of the tiles, and the sums are the same.
"""

from __future__ import annotations

from typing import Any

from aclnn.kernels.native.abi import (
    BLOCK_ROWS,
    DEPTH,
    FIRST_ARGUMENT,
    GATES_WORDS,
    KINDS,
    ROWS,
)
from aclnn.kernels.source.arithmetic import use_widest_vectors
from aclnn.kernels.source.calls import address_of, begin_block, call_entry, shifted
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import AT_ONCE, COLUMNS, FETCHES, LANES, multiply, whole_vectors, words
from aclnn.kernels.source.packing import clear_beyond, pack_rows, pack_tiles
from aclnn.kernels.source.panels import width_of
from aclnn.kernels.source.results import put_rows
from aclnn.kernels.source.vectors import LINE, TO_READ, TO_WRITE, fetch, move

LOW = 4  # rows of lower tiles: with them, no even number of rows from 4 on leaves any of a tile idle
PLACES = BLOCK_ROWS + ROWS
SMALL = 4096  # elements of a block that lie in the first cache beside those of the next
BEYOND_CACHES = 1 << 22  # elements of weights that no last cache holds
MANY = 8  # tiles, from which on fetching what comes next costs less than waiting for it


@inner
def low_tiles(rows: int) -> int:
    """How many tiles of some rows are lower ones, the last."""
    even = max(LOW, rows + rows % 2)
    return (ROWS - even % ROWS) // 2 % 3


@inner
def all_tiles(rows: int) -> int:
    """How many tiles some rows have."""
    even, low = max(LOW, rows + rows % 2), low_tiles(rows)
    tiles: int = low + (even - low * LOW) // ROWS
    return tiles


@inner
def first_row(tile: int, high: int) -> int:
    """Where a tile begins, if so many high ones come first."""
    return tile * ROWS if tile <= high else high * ROWS + (tile - high) * LOW


@inner
def tile_at(place: int, at: int, across: int, tiles: int) -> int:
    """The first of some tiles, each `across` long, the first at `at`, that does not begin before a place."""
    return min(tiles, max(0, -((at - place) // across)))


def matmul(
    lo: int,
    hi: int,
    a: Any,
    c: Any,
    packed: Any,
    scratch: Any,
    offsets: Any,
    pitch: int,
    rows: int,
    depth: int,
    columns: int,
    chain: int,
    lots: int,
    per_lot: int,
    adds: int,
) -> None:
    """c = a·b or, if it `adds`, c += a·b. Rows of a are `pitch` apart, those of c dense. Items are lots, each with a
    scratch of its own."""
    use_widest_vectors()
    bases, far = words(PLACES), columns * depth >= BEYOND_CACHES
    vectors, tail = whole_vectors(columns) // LANES, rows % BLOCK_ROWS
    all_of_them = vectors * (rows // BLOCK_ROWS * (BLOCK_ROWS // ROWS) + (all_tiles(tail) if tail else 0))
    for lot in range(lo, hi):
        work, begin, end = shifted(scratch, lot * per_lot), all_of_them * lot // lots, all_of_them * (lot + 1) // lots
        at = 0
        for first in range(0, rows, BLOCK_ROWS):
            count = min(BLOCK_ROWS, rows - first)
            tiles, high = all_tiles(count), all_tiles(count) - low_tiles(count)
            for i in range(PLACES):
                bases[i] = pitch * min(i, count - 1)
            for channel in range(0, columns, COLUMNS):
                width = width_of(columns - channel)
                across = width // LANES
                some, beyond = tile_at(begin, at, across, tiles), tile_at(end, at, across, tiles)
                at += tiles * across
                if some < beyond:
                    top, bottom = first_row(some, high), min(count, first_row(beyond, high))
                    to, near = shifted(c, (first + top) * columns + channel), shifted(a, first * pitch)
                    whole = width <= columns - channel
                    if adds:
                        copy_panel(to, columns, work, width, bottom - top, min(width, columns - channel), whole)
                    b = shifted(packed, channel * depth)
                    sum_tiles(near, bases, offsets, b, some, beyond, high, width, depth, chain, work, adds != 0, far)
                    copy_panel(work, width, to, columns, bottom - top, min(width, columns - channel), whole)


@inner
def sum_tiles(
    a: Any,
    bases: Any,
    offsets: Any,
    b: Any,
    first: int,
    last: int,
    high: int,
    width: int,
    depth: int,
    chain: int,
    work: Any,
    add: bool,
    far: bool,
) -> None:
    """The sums of a panel in the tiles first … last − 1, row after row; a tile's room is needed behind them."""
    blocks, top = -(-depth // DEPTH), first_row(first, high)
    aside = shifted(work, (first_row(last, high) - top) * width)
    for block in range(blocks):
        start, stop = depth * block // blocks, depth * (block + 1) // blocks
        near, places, adds = shifted(b, start * width), shifted(offsets, start), add or block > 0
        count = stop - start
        for t in range(first, min(last, high)):
            rows, to = shifted(bases, t * ROWS), shifted(work, (t * ROWS - top) * width)
            coming, by = to_fetch(aside, shifted(near, count * width), count, width, t - first, last - first, far)
            multiply(ROWS, 1, width, count, chain, a, rows, places, near, 0, to, adds, aside, coming, by)
        for t in range(max(first, high), last):
            row = first_row(t, high)
            rows, to = shifted(bases, row), shifted(work, (row - top) * width)
            multiply(LOW, 1, width, count, chain, a, rows, places, near, 0, to, adds, aside, near, 0)


@inner
def to_fetch(near: Any, b: Any, count: int, width: int, part: int, parts: int, far: bool) -> Any:
    """Where one of some tiles begins to fetch its part of the block that comes next, if that is `far`, and how far it
    goes for AT_ONCE terms of its own (0.97 to 1.0 of the time); else what is `near`, or it is fetched here at once."""
    if parts < MANY:
        return near, 0
    if FETCHES and far:
        return shifted(b, count * width * part // parts), -(-AT_ONCE * width // parts)
    if count * width <= SMALL:
        fetch_part(b, count * width, part, parts)
    return near, 0


@inner
def fetch_part(b: Any, elements: int, part: int, parts: int) -> None:
    """Asks for one of equal parts of so many elements."""
    for line in range(elements * part // parts, elements * (part + 1) // parts, LINE):
        fetch(b, line, TO_READ)


@inner
def sum_row(
    panels: int,
    a: Any,
    bases: Any,
    offsets: Any,
    b: Any,
    to_next: int,
    width: int,
    depth: int,
    chain: int,
    work: Any,
    add: bool,
) -> None:
    """The sums of a single row in one panel or in KINDS at once, which would wait for each other in one; cut like the
    others."""
    blocks, aside = -(-depth // DEPTH), shifted(work, KINDS * width)
    for block in range(blocks):
        start, stop = depth * block // blocks, depth * (block + 1) // blocks
        near, places, adds = shifted(b, start * width), shifted(offsets, start), add or block > 0
        if panels == KINDS:
            multiply(1, KINDS, width, stop - start, chain, a, bases, places, near, to_next, work, adds, aside, near, 0)
        else:
            multiply(1, 1, width, stop - start, chain, a, bases, places, near, 0, work, adds, aside, near, 0)


@inner
def copy_panel(source: Any, pitch: int, target: Any, to_pitch: int, rows: int, columns: int, whole: bool) -> None:
    """Rows from one place to another; whole vectors if the columns are."""
    for i in range(rows):
        start, to = i * pitch, i * to_pitch
        if whole:
            for j in range(0, columns, LANES):
                move(LANES, source, start + j, target, to + j)
        else:
            for j in range(columns):
                target[to + j] = source[start + j]


def step(
    lo: int,
    hi: int,
    a: Any,
    first: int,
    rows: int,
    packed: Any,
    scratch: Any,
    x: Any,
    x_packed: Any,
    bases: Any,
    offsets: Any,
    x_bases: Any,
    batch: int,
    depth: int,
    x_depth: int,
    units: int,
    kinds: int,
    chain: int,
    lots: int,
    per_lot: int,
    together: int,
    gates: int,
    block: Any,
) -> None:
    """A step of an LSTM: the rows first … rows − 1 of a by `kinds` packed matrices, as wide as there are units, with
    the same rows of x by as many others, if these have a depth; and what the gates make of the sums. The rows behind,
    up to the end of the batch, have no sums. Items are lots; each calls the gates, for some units `together`, with a
    copy of their block, whose first arguments say where the sums lie and of how many rows, panel by panel and there
    kind by kind, then which rows and units they are for, and whether there are any."""
    use_widest_vectors()
    own, vectors, count = words(GATES_WORDS), whole_vectors(units) // LANES, max(0, rows - first)
    for m in range(GATES_WORDS):
        own[m] = block[m]
    begin_block(own, 1)
    tiles, places, x_places = all_tiles(count), shifted(bases, first), shifted(x_bases, first)
    far = units * kinds * (depth + x_depth) >= BEYOND_CACHES
    high, to_next, x_to_next = tiles - low_tiles(count), whole_vectors(units) * depth, whole_vectors(units) * x_depth
    for lot in range(lo, hi):
        begin, end, at = vectors * tiles * lot // lots, vectors * tiles * (lot + 1) // lots, 0
        work = shifted(scratch, lot * per_lot)
        for unit in range(0, units, together):
            wide = min(together, units - unit)
            across = whole_vectors(wide) // LANES
            some, beyond = tile_at(begin, at, across, tiles), tile_at(end, at, across, tiles)
            at += tiles * across
            if some < beyond:
                top, bottom = first_row(some, high), min(count, first_row(beyond, high))
                height, b = 1 if count == 1 else first_row(beyond, high) - top, shifted(packed, unit * depth)
                x_b = shifted(x_packed, unit * x_depth)
                if count == 1:
                    of_state, of_input = (a, places, b, to_next, depth), (x, x_places, x_b, x_to_next, x_depth)
                    sum_units(of_state, of_input, offsets, wide, kinds, chain, work)
                elif count > 0:
                    for channel in range(0, wide, COLUMNS):
                        width, to = width_of(wide - channel), shifted(work, channel * kinds * height)
                        for kind in range(kinds):
                            right = shifted(b, kind * to_next + channel * depth)
                            into = shifted(to, kind * height * width)
                            sum_tiles(
                                a, places, offsets, right, some, beyond, high, width, depth, chain, into, False, far
                            )
                            right = shifted(x_b, kind * x_to_next + channel * x_depth)
                            sum_tiles(
                                x, x_places, offsets, right, some, beyond, high, width, x_depth, chain, into, True, far
                            )
                call_gates(gates, own, work, height, first + top, first + bottom, unit, wide, 1)
                if some == 0:
                    call_gates(gates, own, work, height, first + count, batch, unit, wide, 0)


@inner
def sum_units(of_state: Any, of_input: Any, offsets: Any, wide: int, kinds: int, chain: int, work: Any) -> None:
    """The sums of a single row: KINDS panels at once, of each kind one or, where there is but one kind, neighbours."""
    channel, four = 0, KINDS * COLUMNS
    while channel < wide:
        width, to, add = width_of(wide - channel), shifted(work, channel * kinds), False
        several = kinds == KINDS or wide - channel >= four
        for a, bases, b, to_next, depth in (of_state, of_input):
            right, apart = shifted(b, channel * depth), to_next if kinds == KINDS else COLUMNS * depth
            sum_row(KINDS if several else 1, a, bases, offsets, right, apart, width, depth, chain, to, add)
            add = True
        channel += four if several and kinds < KINDS else COLUMNS


@inner
def call_gates(
    gates: int, block: Any, sums: Any, together: int, first: int, last: int, unit: int, units: int, summed: int
) -> None:
    if first < last:
        block[FIRST_ARGUMENT], block[FIRST_ARGUMENT + 1] = address_of(sums), together
        block[FIRST_ARGUMENT + 2], block[FIRST_ARGUMENT + 3] = first, last
        block[FIRST_ARGUMENT + 4], block[FIRST_ARGUMENT + 5], block[FIRST_ARGUMENT + 6] = unit, units, summed
        call_entry(gates, address_of(block))


def row_sums(
    lo: int,
    hi: int,
    a: Any,
    b: Any,
    more: Any,
    made: Any,
    scratch: Any,
    c: int,
    c_more: int,
    numbers: Any,
    puts: Any,
    sizes: Any,
) -> None:
    """c = aᵀ·b and c_more = aᵀ·more, sums over all rows, some at a time. Items are lots: each has its share of the
    columns of a as tiles, packs them and all columns of the others, and sums up in `made`, or in the room of a tile if
    all rows are done at once; sums are written as soon as they are whole. The numbers: the columns of a, of which the
    last fills a tile, then where DEPTH rows begin in a, in b, in more and in a packed tile, then ROWS from 0 on. `puts`
    says how the results are written: entry, size of an element, and strides, of each. The sizes: rows, how far apart
    they lie in a, lots, elements of a lot's scratch, how long chains are, then the columns of a, of b and of more."""
    use_widest_vectors()
    rows, pitch, lots, per_lot = sizes[0], sizes[1], sizes[2], sizes[3]
    columns, b_columns, more_columns = sizes[5], sizes[6], sizes[7]
    tiles, beside = -(-columns // ROWS), whole_vectors(b_columns)
    wide, a_places = beside + whole_vectors(more_columns), shifted(numbers, tiles * ROWS)
    b_places, more_places = shifted(a_places, DEPTH), shifted(a_places, 2 * DEPTH)
    in_tile, more_puts = shifted(a_places, 3 * DEPTH), shifted(puts, 4)
    for lot in range(lo, hi):
        first, last = tiles * lot // lots, tiles * (lot + 1) // lots
        a_packed, high = shifted(scratch, lot * per_lot), (last - first) * ROWS
        b_packed, sums = shifted(a_packed, high * DEPTH), shifted(made, first * ROWS * wide)
        aside, some = shifted(b_packed, wide * DEPTH), shifted(numbers, first * ROWS)
        more_packed, more_sums = shifted(b_packed, beside * DEPTH), shifted(sums, beside * high)
        for start in range(0, rows, DEPTH):
            count, here = min(DEPTH, rows - start), (first, last, start)
            pack_tiles(shifted(a, start * pitch), some, last - first, a_places, count, DEPTH, a_packed, False)
            pack_panels(shifted(b, start * b_columns), b_places, count, b_columns, b_packed)
            pack_panels(shifted(more, start * more_columns), more_places, count, more_columns, more_packed)
            add_rows(a_packed, b_packed, b_columns, here, sums, aside, in_tile, c, puts, sizes)
            add_rows(a_packed, more_packed, more_columns, here, more_sums, aside, in_tile, c_more, more_puts, sizes)


@inner
def add_rows(
    a: Any,
    b: Any,
    b_columns: int,
    here: Any,
    sums: Any,
    aside: Any,
    in_tile: Any,
    out: int,
    how: Any,
    sizes: Any,
) -> None:
    """What DEPTH packed rows from `start` on, or those that there are, bring to the tiles first … last − 1 of one
    result; with the last row these are whole, and written. `here` is these three."""
    first, last, start = here
    rows, chain, columns = sizes[0], sizes[4], sizes[5]
    count = min(DEPTH, rows - start)
    places, tile_rows, at_once = words(ROWS), shifted(in_tile, DEPTH), shifted(aside, ROWS * COLUMNS)
    for channel in range(0, b_columns, COLUMNS):
        width, panel = width_of(b_columns - channel), shifted(b, channel * DEPTH)
        to = shifted(sums, channel * (last - first) * ROWS)
        for t in range(last - first):
            into = shifted(to, t * ROWS * width) if rows > DEPTH else at_once
            if start > 0:
                for line in range(0, ROWS * width, 16):
                    fetch(into, line, TO_WRITE)
            tile = shifted(a, t * ROWS * DEPTH)
            multiply(ROWS, 1, width, count, chain, tile, tile_rows, in_tile, panel, 0, into, start > 0, aside, panel, 0)
            if start + DEPTH >= rows:
                for i in range(ROWS):
                    places[i] = ((first + t) * ROWS + i) * how[2]
                there, high = out + how[1] * channel * how[3], min(ROWS, columns - (first + t) * ROWS)
                put_rows(how[0], into, width, there, places, high, min(COLUMNS, b_columns - channel), how[3])


@inner
def pack_panels(source: Any, places: Any, count: int, columns: int, target: Any) -> None:
    """`count` rows as panels of DEPTH rows each."""
    for channel in range(0, columns, COLUMNS):
        to, width = shifted(target, channel * DEPTH), width_of(columns - channel)
        channels = min(COLUMNS, columns - channel)
        clear_beyond(to, count, width, channels, width)
        pack_rows(shifted(source, channel), 1, places, count, channels, to, width)
