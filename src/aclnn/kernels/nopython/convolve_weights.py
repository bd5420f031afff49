"""gradWeight of a convolution: result[m, (c, tap)] = Σ outer[m, p] · picture[c, p + tap], the sum over all positions.

Parts of the sum are made one by one, cut by shape alone, and joined in pairs: bits do not depend on the threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.nopython.agreed import (
    BOXES,
    CHANNELS,
    DEPTH,
    GROUPS,
    LAID,
    LOTS,
    MOST_PARTS,
    OUTER_ROOM,
    OUTPUTS,
    PARTS,
    PER_LOT,
    ROOM,
    SPLITS,
    STAGED,
    TALL,
    TAPS,
    WEIGHT_CHAIN,
    WEIGHTS_AT_A_TIME,
)
from aclnn.kernels.nopython.arithmetic import bits_of, use_widest_vectors
from aclnn.kernels.nopython.convolve import packed_rows, panel, panels_of
from aclnn.kernels.nopython.half import floats, write
from aclnn.kernels.nopython.panels import COLUMNS, LANES, inner, multiply, turn, words
from aclnn.kernels.nopython.staging import brought, find_box, place_of
from aclnn.kernels.nopython.tiles import shifted

SEGMENTS = 3 * DEPTH  # numbers of a list of segments: position in the sum, place, count
STARTS = 2 * COLUMNS  # numbers of a list of columns: a panel, or at least a vector
PART_ROWS = MOST_PARTS * COLUMNS


def weights(
    lo: int,
    hi: int,
    source: Any,
    outer: Any,
    made: Any,
    scratch: Any,
    picture: Any,
    outer_picture: Any,
    boxes: Any,
    rows: Any,
    table: Any,
) -> None:
    """Items are lots: each does its share of all parts of the sum, of all groups, in all splits of the columns."""
    use_widest_vectors()
    rows_made, slivers = packed_rows(table[OUTPUTS]), -(-table[TAPS] * picture[CHANNELS] // COLUMNS)
    items, splits = table[PARTS] * boxes[GROUPS] * table[SPLITS], table[SPLITS]
    for lot in range(lo, hi):
        room = shifted(scratch, lot * table[PER_LOT])
        for item in range(items * lot // table[LOTS], items * (lot + 1) // table[LOTS]):
            which, split = item // splits, item % splits
            part, group = which // boxes[GROUPS], which % boxes[GROUPS]
            left, right = slivers * split // splits, slivers * (split + 1) // splits
            sums = shifted(made, which * rows_made * slivers * COLUMNS)
            add_part(source, outer, sums, room, part, group, left, right, picture, outer_picture, boxes, rows, table)


@inner
def add_part(
    source: Any,
    outer: Any,
    sums: Any,
    room: Any,
    part: int,
    group: int,
    left: int,
    right: int,
    picture: Any,
    outer_picture: Any,
    boxes: Any,
    rows: Any,
    table: Any,
) -> None:
    """The boxes of one part, of one group, for the slivers left … right − 1."""
    box, segments, columns = words(8), words(SEGMENTS), words(STARTS)
    count = boxes[BOXES] * boxes[BOXES + 1] * boxes[BOXES + 2] * boxes[BOXES + 3]
    outer_room = shifted(room, table[ROOM])
    work = shifted(outer_room, table[OUTER_ROOM])
    first = count * part // table[PARTS]
    for index in range(first, count * (part + 1) // table[PARTS]):
        positions = find_box(index, boxes, box)
        g = brought(outer, outer_picture, group, box, outer_room)
        x = brought(source, picture, group, box, room)
        depths = -(-positions // DEPTH)
        for block in range(depths):
            start, stop = positions * block // depths, positions * (block + 1) // depths
            runs = find_segments(start, stop, box, outer_picture, segments)
            pack_outer(g, work, segments, runs, columns, outer_picture, table)
            runs = find_segments(start, stop, box, picture, segments)
            begun = index > first or block > 0
            add_block(x, sums, work, stop - start, segments, runs, columns, left, right, begun, picture, rows, table)


@inner
def pack_outer(outer: Any, work: Any, segments: Any, runs: int, columns: Any, picture: Any, table: Any) -> None:
    """Panels of a, [position][rows], DEPTH positions apart."""
    for index in range(panels_of(table[OUTPUTS])):
        first, height = panel(index, table[OUTPUTS])
        for j in range(-(-TALL // LANES) * LANES):
            columns[j] = min(first + min(j, height - 1), table[OUTPUTS] - 1) * picture[LAID + 1]
        pack_turned(outer, picture[STAGED], columns, height, segments, runs, shifted(work, first * DEPTH))


@inner
def add_block(
    source: Any,
    sums: Any,
    work: Any,
    depth: int,
    segments: Any,
    runs: int,
    columns: Any,
    left: int,
    right: int,
    begun: bool,
    picture: Any,
    rows: Any,
    table: Any,
) -> None:
    """What a block of positions brings to the slivers of the result."""
    outputs, at_a_time, last = table[OUTPUTS], table[WEIGHTS_AT_A_TIME], table[TAPS] * picture[CHANNELS] - 1
    panels, height_of_all = panels_of(outputs), packed_rows(outputs)
    b = shifted(work, (height_of_all + TALL) * DEPTH)
    for top in range(0, panels, at_a_time):
        for sliver in range(left, right):
            for j in range(COLUMNS):
                columns[j] = rows[min(sliver * COLUMNS + j, last)]
            pack_turned(source, picture[STAGED], columns, COLUMNS, segments, runs, b)
            for index in range(top, min(panels, top + at_a_time)):
                first, height = panel(index, outputs)
                c = shifted(sums, (sliver * height_of_all + first) * COLUMNS)
                multiply(height, depth, table[WEIGHT_CHAIN], shifted(work, first * DEPTH), b, c, begun)


@inner
def find_segments(start: int, stop: int, box: Any, picture: Any, segments: Any) -> int:
    """Positions start … stop − 1 of a box as runs of neighbours: each has its first position, its place, its count."""
    count, position = 0, start
    while position < stop:
        place, left = place_of(position, box, picture, LAID)
        length = min(left, stop - position)
        last = 3 * count - 3
        if count and segments[last + 1] + segments[last + 2] == place:
            segments[last + 2] += length
        else:
            segments[3 * count], segments[3 * count + 1], segments[3 * count + 2] = position - start, place, length
            count += 1
        position += length
    return count


@inner
def pack_turned(source: Any, safe: int, columns: Any, width: int, segments: Any, count: int, target: Any) -> None:
    """A panel [position][width] of columns whose elements are neighbours in memory. Whole vectors are written, those of
    later columns and earlier positions first, so that what is too much is written over. Behind a run they are read as
    well if that is `safe`."""
    for lane in range((width - 1) // LANES * LANES, -1, -LANES):
        starts = shifted(columns, lane)
        for s in range(count):
            first, place, length = segments[3 * s], segments[3 * s + 1], segments[3 * s + 2]
            whole = -(-length // LANES) * LANES if safe else length // LANES * LANES
            for i in range(0, whole, LANES):
                turn(source, starts, place + i, target, (first + i) * width + lane, width)
            for i in range(whole, length):
                for j in range(min(LANES, width - lane)):
                    target[(first + i) * width + lane + j] = source[starts[j] + place + i]


def join(
    lo: int, hi: int, made: Any, out: Any, found: Any, groups: int, inputs: int, steps: Any, places: Any, table: Any
) -> None:
    """The sum of all parts, in pairs; items are rows of the result. found[0] = 1 if an element is not finite."""
    use_widest_vectors()
    rows, worst = floats(PART_ROWS), np.int32(0)
    height, columns = packed_rows(table[OUTPUTS]), table[TAPS] * inputs
    slivers = -(-columns // COLUMNS)
    for item in range(lo, hi):
        group, output = item // table[OUTPUTS], item % table[OUTPUTS]
        for sliver in range(slivers):
            for part in range(table[PARTS]):
                start = (((part * groups + group) * slivers + sliver) * height + output) * COLUMNS
                for j in range(COLUMNS):
                    rows[part * COLUMNS + j] = made[start + j]
            half = table[PARTS] // 2
            while half:
                for j in range(half * COLUMNS):
                    rows[j] += rows[half * COLUMNS + j]
                half //= 2
            for j in range(min(COLUMNS, columns - sliver * COLUMNS)):
                column = sliver * COLUMNS + j
                worst = max(worst, bits_of(rows[j]) & np.int32(0x7F800000))
                place = column // table[TAPS] * steps[2] + places[column % table[TAPS]]
                write(out, group * steps[0] + output * steps[1] + place, rows[j])
    if worst == np.int32(0x7F800000):
        found[0] = 1
