"""Convolutions as indirect matmuls: result[p, m] = Σ picture[p + (c, tap)] · weight[(c, tap), m].

Rows are positions, columns are channels of the result. A tap is a shift, and so is a channel: the picture is read where
it lies, or from a padded copy of a box of it (see staging.py), and is never written down tap by tap. Sums are cut by
shape alone, so that bits do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

from aclnn.kernels.native.abi import (
    ADDS_BIAS,
    BLOCKS,
    BLOCKS_TOGETHER,
    BOX,
    CHAIN_LENGTH,
    COLUMN_PLACES,
    COPY,
    FETCHES_RESULT,
    FETCHES_WEIGHTS,
    FIRST_TERM,
    KINDS_OF,
    MOST_KINDS,
    MOVES,
    OUT_CHANNELS,
    OUT_STRIDES,
    OUTPUTS,
    PACKED_TERMS,
    PANEL_TERMS,
    PANELS_TOGETHER,
    PER_BIT,
    PER_LOT,
    PLACES,
    POSITIONS_TOGETHER,
    PUT,
    PUT_SIZE,
    REGROUPS,
    ROOM,
    ROWS,
    SEEN,
    SHARES,
    SPLITS,
    TERMS,
    TOGETHER,
    WATCHES,
    WHOLE,
)
from aclnn.kernels.source.arithmetic import is_strange, use_widest_vectors
from aclnn.kernels.source.calls import address_of, pointer, shifted
from aclnn.kernels.source.elements import floats
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import COLUMNS, multiply, whole_vectors, words
from aclnn.kernels.source.packing import pack_tiles
from aclnn.kernels.source.pair_vectors import clear_seen, least_exponent
from aclnn.kernels.source.pairs import LEAST_OF_PICTURES, terms_in
from aclnn.kernels.source.panels import width_of
from aclnn.kernels.source.results import put_listed
from aclnn.kernels.source.shares import first_share, following
from aclnn.kernels.source.staging import as_words, boxes_in, brought, find_box, find_places, start_of
from aclnn.kernels.source.vectors import LINE, TO_READ_LATER, TO_WRITE, fetch

TILES, FILLED = POSITIONS_TOGETHER // ROWS, POSITIONS_TOGETHER + ROWS  # of positions that are made together
ALL = -1  # a mask


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
    """Items are lots: each takes shares of the boxes of all groups, and of the panels of their results. found[0] = 1 if
    an element is not finite and that is asked, or too small for pairs."""
    use_widest_vectors()
    box, shares = words(BOX), pointer(table[SHARES])
    clear_seen(shifted(box, SEEN))
    count, splits = boxes_in(boxes), table[SPLITS]
    per_group = whole_vectors(table[OUTPUTS]) * table[PANEL_TERMS]
    for lot in range(lo, hi):
        room = shifted(scratch, lot * table[PER_LOT])
        item, end = first_share(lot, shares)
        while item < end:
            group, split = item // splits // count, item % splits
            positions = find_box(item // splits % count, boxes, box)
            here = places_in(box, boxes, picture, room, table)
            x = brought(source, picture, group, box, room)
            to = out + table[PUT_SIZE] * start_of(box, group, table[OUT_CHANNELS], table, OUT_STRIDES)
            weight = shifted(packed, lot * table[COPY] + group * per_group)
            added = shifted(bias, group * table[OUT_CHANNELS])
            if make_positions(x, here, positions, rows, weight, added, to, split, behind_lists(room, table), table):
                found[0] = 1
            item, end = following(item, end, found, shares)
    say_small(box, packed, found)


@inner
def say_small(box: Any, packed: Any, found: Any) -> None:
    """found[0] = 1 if something was brought for a box that is too small for pairs. Threads write the same."""
    if terms_in(packed) > 1 and least_exponent(shifted(box, SEEN)) < LEAST_OF_PICTURES:
        found[0] = 1


@inner
def places_in(box: Any, boxes: Any, picture: Any, room: Any, table: Any) -> Any:
    """Where the positions of a box lie in the picture, of which kind they are, and where they lie in the result: lists
    behind a lot's room for the box."""
    lists = shifted(room, table[ROOM])
    places, out_places = as_words(lists), as_words(shifted(lists, table[PLACES]))
    kinds = as_words(shifted(lists, 2 * table[PLACES]))
    find_places(box, 0, picture, MOVES, places)
    find_places(box, 0, table, OUT_STRIDES, out_places)
    find_kinds(box, boxes, table, kinds)
    return places, kinds, out_places


@inner
def behind_lists(room: Any, table: Any) -> Any:
    """The rest of a lot's scratch."""
    return shifted(room, table[ROOM] + 3 * table[PLACES])


@inner
def make_positions(
    x: Any, here: Any, positions: int, rows: Any, weight: Any, bias: Any, to: int, split: int, work: Any, table: Any
) -> bool:
    """The same as make_panels at all positions of a box, some after the others."""
    strange, (places, kinds, out_places) = False, here
    for first in range(0, positions, table[TOGETHER]):
        some = shifted(places, first), shifted(kinds, first), shifted(out_places, first)
        together = min(table[TOGETHER], positions - first)
        strange |= make_panels(x, some, together, rows, weight, bias, to, split, work, table)
    return strange


@inner
def make_panels(
    x: Any, here: Any, together: int, rows: Any, weight: Any, bias: Any, to: int, split: int, work: Any, table: Any
) -> bool:
    """A split of the panels of a box's result at some positions: `here` says where these lie in the picture, of
    which kind they are, and where they lie in the result. Says whether an element is not finite and that is asked."""
    grouped, alike, row_of, masks = words(FILLED), words(POSITIONS_TOGETHER), words(POSITIONS_TOGETHER), words(TILES)
    bases, kinds, out_places = here
    listed, strange, packed = 0, False, shifted(work, ROWS * COLUMNS)
    if table[REGROUPS]:
        group_positions(bases, kinds, together, grouped, alike, row_of)
        bases, kinds, listed = grouped, alike, address_of(row_of)
    if table[KINDS_OF]:
        find_masks(kinds, together, pointer(table[KINDS_OF]), masks)
    panels, sums = -(-table[OUTPUTS] // COLUMNS), shifted(packed, table[TOGETHER] * table[PACKED_TERMS])
    apart = COLUMNS * table[TOGETHER] if table[BLOCKS] > table[BLOCKS_TOGETHER] else 0
    begin, last_panel = panels * split // table[SPLITS], panels * (split + 1) // table[SPLITS]
    for first in range(begin, last_panel, table[PANELS_TOGETHER]):
        end = min(last_panel, first + table[PANELS_TOGETHER])
        afterwards = end if end < last_panel else begin  # behind the last one lies what other threads write
        for block in range(0, max(1, table[BLOCKS]), table[BLOCKS_TOGETHER]):
            near = brought_near(x, bases, together, rows, block, packed, table)
            written = to, out_places, behind(block, table) >= table[BLOCKS]
            for panel in range(first, end):
                made = shifted(sums, (panel - first) * apart)
                coming = weights_after(weight, first, panel, end, block, afterwards, table)
                add_blocks(near, together, weight, panel, block, made, work, masks, coming, written, table)
                if written[2] and finish_panel(made, together, bias, to, out_places, panel * COLUMNS, listed, table):
                    strange = True
    return strange


@inner
def behind(block: int, table: Any) -> int:
    """The first of the blocks that are not added up together with one."""
    following: int = block + table[BLOCKS_TOGETHER]
    return following


@inner
def term_of(block: int, table: Any) -> int:
    """The first term of a block."""
    first: int = table[TERMS] * block // max(1, table[BLOCKS])
    return first


@inner
def weights_at(weight: Any, panel: int, block: int, table: Any) -> Any:
    """Where the weights of a panel begin for a block of terms."""
    columns = width_of(table[OUTPUTS] - panel * COLUMNS)
    term = table[FIRST_TERM] + term_of(block, table)
    return shifted(weight, panel * COLUMNS * table[PANEL_TERMS] + term * columns)


@inner
def weights_after(weight: Any, first: int, panel: int, end: int, block: int, afterwards: int, table: Any) -> Any:
    """Where the weights begin that come after those of a panel, of which first … end − 1 take turns, and one comes
    afterwards."""
    if panel + 1 < end:
        return weights_at(weight, panel + 1, block, table)
    if behind(block, table) < table[BLOCKS]:
        return weights_at(weight, first, behind(block, table), table)
    return weights_at(weight, afterwards, 0, table)


@inner
def brought_near(x: Any, bases: Any, count: int, rows: Any, block: int, packed: Any, table: Any) -> Any:
    """Where blocks of terms are read at some positions: what they lie in, where positions do, and where terms do."""
    deep, terms, start = table[PACKED_TERMS], table[TERMS], term_of(block, table)
    if deep == 0:
        return x, bases, rows
    tiles, depth = -(-count // ROWS), term_of(behind(block, table), table) - start
    pack_tiles(x, bases, tiles, shifted(rows, start), depth, deep, packed, True)
    return packed, shifted(rows, terms + deep), shifted(rows, terms - start)


@inner
def finish_panel(
    sums: Any, count: int, bias: Any, to: int, out_places: Any, channel: int, listed: int, table: Any
) -> bool:
    """Writes the sums of a panel with the bias. Says whether one is not finite and that is asked."""
    added = address_of(bias) + 4 * channel if table[ADDS_BIAS] else 0
    if added and table[COLUMN_PLACES]:
        of_columns = floats(COLUMNS)
        for m in range(COLUMNS):
            of_columns[m] = bias[(channel + m) % table[OUT_CHANNELS]]
        added = address_of(of_columns)
    put_panel(sums, count, to, out_places, channel, listed, added, table)
    strange: bool = table[WATCHES] != 0 and is_strange(sums, count * width_of(table[OUTPUTS] - channel))
    return strange


@inner
def find_kinds(box: Any, boxes: Any, table: Any, kinds: Any) -> None:
    """Writes of which kind every position of a box is, if anything is left out."""
    if table[KINDS_OF] == 0:
        return
    of_planes = shifted(pointer(table[KINDS_OF]), MOST_KINDS)
    of_rows = shifted(of_planes, boxes[WHOLE + 1])
    of_columns, i = shifted(of_rows, boxes[WHOLE + 2]), 0
    for _ in range(box[4]):
        for z in range(box[5]):
            for y in range(box[6]):
                for x in range(box[7]):
                    kinds[i + x] = of_planes[box[1] + z] + of_rows[box[2] + y] + of_columns[box[3] + x]
                i += box[7]


@inner
def find_masks(kinds: Any, count: int, mask_of: Any, masks: Any) -> None:
    """Writes the mask of each tile: what any of its positions meets. One that meets nothing takes all, which are 0."""
    for i in range(0, count, ROWS):
        mask = 0
        for row in range(i, min(i + ROWS, count)):
            mask |= mask_of[kinds[row]]
        masks[i // ROWS] = mask if mask else ALL


@inner
def group_positions(places: Any, kinds: Any, count: int, grouped: Any, alike: Any, row_of: Any) -> None:
    """Makes tiles of positions of one kind, as many as these fill; what is left of each kind comes behind them. Writes
    where they lie then, with those that fill a tile, of which kind they are, and which of them each one has become."""
    left, tiled, behind = words(MOST_KINDS), words(MOST_KINDS), words(MOST_KINDS)
    for k in range(MOST_KINDS):
        left[k] = 0
    for i in range(count):
        left[kinds[i]] += 1
    in_tiles, rest = 0, 0
    for k in range(MOST_KINDS):
        tiled[k], behind[k] = in_tiles, rest
        in_tiles, rest = in_tiles + left[k] // ROWS * ROWS, rest + left[k] % ROWS
    for i in range(count):
        k = kinds[i]
        if left[k] % ROWS:
            row = in_tiles + behind[k]
            behind[k], left[k] = behind[k] + 1, left[k] - 1
        else:
            row = tiled[k]
            tiled[k] += 1
        row_of[i], grouped[row], alike[row] = row, places[i], k
    for more in range(ROWS):
        grouped[count + more] = grouped[count - 1]


@inner
def add_blocks(
    near: Any,
    count: int,
    weight: Any,
    panel: int,
    block: int,
    sums: Any,
    aside: Any,
    masks: Any,
    coming: Any,
    written: Any,
    table: Any,
) -> None:
    """What neighbouring blocks of terms bring to the sums of a panel at some positions. Meanwhile the weights that are
    `coming` are fetched, and where the result will be `written`."""
    columns = width_of(table[OUTPUTS] - panel * COLUMNS)
    if table[BLOCKS] == 0:
        for i in range(count * columns):
            sums[i] = 0
        return
    x, places, rows = near
    start, together, bit = term_of(block, table), table[BLOCKS_TOGETHER], block // table[PER_BIT]
    depth, within = term_of(behind(block, table), table) - start, block % table[PER_BIT] > 0
    of_each = depth // together  # they are equal
    per_tile = -(-depth * columns * ROWS // count) if table[FETCHES_WEIGHTS] else 0
    b = weights_at(weight, panel, block, table)
    for i in range(0, count, ROWS):
        first, end, begun = 0, together, block > 0
        if table[KINDS_OF]:
            first, end, begun = met_blocks(masks[i // ROWS], bit, together, within)
        for line in range(0, per_tile, LINE):
            fetch(coming, i // ROWS * per_tile + line, TO_READ_LATER)
        fetch_result(written, i, panel * COLUMNS, table)
        if first == end:
            continue
        skipped, met, to = first * of_each, (end - first) * of_each, shifted(sums, i * columns)
        at, offsets, theirs = shifted(places, i), shifted(rows, start + skipped), shifted(b, skipped * columns)
        multiply(ROWS, 1, columns, met, table[CHAIN_LENGTH], x, at, offsets, theirs, 0, to, begun, aside, b, 0)


@inner
def met_blocks(mask: int, bit: int, together: int, within: bool) -> Any:
    """Of blocks that are added up together: which the positions of a tile meet, as its mask says from a bit on, from
    the first to the last of them; and whether they met some before, as they did where a block lies within a shift's."""
    first, end = 0, together
    while first < end and not mask >> (bit + first) & 1:
        first += 1
    while first < end and not mask >> (bit + end - 1) & 1:
        end -= 1
    return first, end, within or mask & ((1 << bit) - 1) != 0


@inner
def fetch_result(written: Any, i: int, channel: int, table: Any) -> None:
    """Asks for where a tile's channels of a panel will be written, if they will be now: the positions of a tile have
    lines of their own if channels lie side by side, else those of the first do for the others."""
    to, places, now = written
    if now and table[FETCHES_RESULT]:
        size, step = table[PUT_SIZE], table[OUT_STRIDES + 1]
        by, rows = (LINE, ROWS) if step == 1 else (1, 1)
        for row in range(i, i + rows):
            for m in range(channel, min(channel + COLUMNS, table[OUTPUTS]), by):
                fetch(pointer(to + size * (places[row] + m * step)), 0, TO_WRITE)


@inner
def put_panel(sums: Any, count: int, out: int, places: Any, channel: int, listed: int, bias: int, table: Any) -> None:
    """Writes a panel of channels, whose rows come in order, or as a list at an address has them."""
    left, step = table[OUTPUTS] - channel, table[OUT_STRIDES + 1]
    to = out + table[PUT_SIZE] * channel * step
    if table[COLUMN_PLACES]:
        to, step = out, table[COLUMN_PLACES] + 8 * channel
    put_listed(table[PUT], sums, width_of(left), to, places, count, min(COLUMNS, left), step, listed, bias)
