"""Convolutions as matrix products whose second factor is never written down as a whole.

data      result[m, p] = Σ weight[m, (c, tap)] · picture[c, p + tap]: columns are positions, rows are channels
weights   result[m, (c, tap)] = Σ outer[m, p] · picture[c, p + tap]: the sum is over positions

A picture is staged box by box (see staging.py): then a tap is a shift, and a panel is packed row by row from vectors of
neighbours. Sums are cut by shape alone, so that bits do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aclnn.kernels.nopython import agreed
from aclnn.kernels.nopython.agreed import (
    ADDS_BIAS,
    AT_A_TIME,
    BOXES,
    CHAIN_LENGTH,
    CHANNELS,
    COLUMNS_TOGETHER,
    DEPTH,
    DEPTHS,
    GROUPS,
    LAID,
    LOTS,
    LOW,
    MOST_PARTS,
    OUT_STEPS,
    OUTER_ROOM,
    OUTPUTS,
    PARTS,
    PER_LOT,
    ROOM,
    SPLITS,
    STAGED,
    TALL,
    TAPS,
    TOGETHER,
    WEIGHT_CHAIN,
    WEIGHTS_AT_A_TIME,
)
from aclnn.kernels.nopython.arithmetic import bits_of, use_widest_vectors
from aclnn.kernels.nopython.half import floats, read, write
from aclnn.kernels.nopython.panels import ACROSS, COLUMNS, LANES, copy_runs, inner, multiply, turn, words
from aclnn.kernels.nopython.staging import brought, find_box, place_of, start_of
from aclnn.kernels.nopython.tiles import shifted

OUT_RUNS = 3 * max(COLUMNS_TOGETHER, COLUMNS)  # numbers of a list of runs
SEGMENTS = 3 * DEPTH  # numbers of a list of segments: position in the sum, place, count
STARTS = 2 * COLUMNS  # numbers of a list of columns: a panel, or at least a vector
PART_ROWS = MOST_PARTS * COLUMNS


tall_panels: Callable[[int], int] = inner(agreed.tall_panels)


@inner
def panels_of(rows: int) -> int:
    tall = tall_panels(rows)
    return tall - (TALL * tall - rows) // LOW if rows > TALL * tall else tall


@inner
def panel(index: int, rows: int) -> Any:
    """The first row of a panel of a matrix, and its height."""
    tall = tall_panels(rows)
    return (TALL * index, TALL) if index < tall else (TALL * tall + LOW * (index - tall), LOW)


@inner
def packed_rows(rows: int) -> int:
    """The rows of all panels together."""
    tall, panels = tall_panels(rows), panels_of(rows)
    all_of_them: int = TALL * tall + LOW * (panels - tall)
    return all_of_them


def pack_weight(
    lo: int, hi: int, weight: Any, packed: Any, outputs: int, inputs: int, taps: int, places: Any, steps: Any
) -> None:
    """Panels of a, [(c, tap)][rows]: an item is one. Steps are those of groups, outputs and inputs in `weight`."""
    panels = panels_of(outputs)
    for item in range(lo, hi):
        group = item // panels
        first, height = panel(item % panels, outputs)
        to = (group * packed_rows(outputs) + first) * taps * inputs
        for c in range(inputs):
            for i in range(height):
                start = group * steps[0] + (first + i) * steps[1] + c * steps[2]
                for tap in range(taps):
                    value = read(weight, start + places[tap]) if first + i < outputs else np.float32(0)
                    packed[to + (c * taps + tap) * height + i] = value


def data(
    lo: int,
    hi: int,
    source: Any,
    out: Any,
    packed: Any,
    bias: Any,
    scratch: Any,
    picture: Any,
    boxes: Any,
    rows: Any,
    table: Any,
) -> None:
    """Items are lots: each does its share of the boxes of all groups."""
    use_widest_vectors()
    box = words(8)
    count = boxes[BOXES] * boxes[BOXES + 1] * boxes[BOXES + 2] * boxes[BOXES + 3]
    per_group = packed_rows(table[OUTPUTS]) * table[TAPS] * picture[CHANNELS]
    for lot in range(lo, hi):
        room = shifted(scratch, lot * table[PER_LOT])
        work = shifted(room, table[ROOM])
        for item in range(count * boxes[GROUPS] * lot // table[LOTS], count * boxes[GROUPS] * (lot + 1) // table[LOTS]):
            group = item // count
            positions = find_box(item % count, boxes, box)
            a = shifted(packed, group * per_group)
            to = shifted(out, start_of(box, group, table[OUTPUTS], table, OUT_STEPS))
            added = shifted(bias, group * table[OUTPUTS])
            read_from = brought(source, picture, group, box, room)
            put_box(read_from, to, a, added, work, box, positions, picture, rows, table)


@inner
def put_box(
    room: Any,
    out: Any,
    a: Any,
    bias: Any,
    work: Any,
    box: Any,
    positions: int,
    picture: Any,
    rows: Any,
    table: Any,
) -> None:
    """The results at a box's positions, a few panels at a time."""
    together = table[TOGETHER] * COLUMNS
    height = packed_rows(table[OUTPUTS])
    depth, depths = table[TAPS] * picture[CHANNELS], table[DEPTHS]
    sums = shifted(work, together * DEPTH)
    for first in range(0, positions, together):
        end = min(positions, first + together)
        columns = -(-(end - first) // COLUMNS)
        if depths == 0:
            for i in range(columns * height * COLUMNS):
                sums[i] = 0
        for block in range(depths):
            start, stop = depth * block // depths, depth * (block + 1) // depths
            for p in range(columns):
                to = shifted(work, p * DEPTH * COLUMNS)
                pack_positions(room, first + p * COLUMNS, end, box, picture, shifted(rows, start), stop - start, to)
            multiply_panels(a, work, sums, columns, start, stop, depth, block > 0, table)
        put_columns(sums, height, out, bias, first, end, box, table)


@inner
def multiply_panels(
    a: Any, b: Any, c: Any, columns: int, start: int, stop: int, depth: int, add: bool, table: Any
) -> None:
    """All tiles of a block of the sum."""
    outputs, at_a_time = table[OUTPUTS], table[AT_A_TIME]
    panels, rows = panels_of(outputs), packed_rows(outputs)
    for top in range(0, panels, at_a_time):
        for p in range(columns):
            for index in range(top, min(panels, top + at_a_time)):
                first, height = panel(index, outputs)
                left = shifted(a, first * depth + start * height)
                to = shifted(c, (p * rows + first) * COLUMNS)
                multiply(height, stop - start, table[CHAIN_LENGTH], left, shifted(b, p * DEPTH * COLUMNS), to, add)


@inner
def pack_positions(room: Any, first: int, end: int, box: Any, picture: Any, rows: Any, count: int, target: Any) -> None:
    """A panel of b: `count` rows (channel, tap), which begin at rows[…], of the positions from `first` on."""
    places, firsts, seconds, splits = words(COLUMNS), words(ACROSS), words(ACROSS), words(ACROSS)
    find_lanes(first, end, box, picture, places)
    whole, fits = True, True
    for v in range(ACROSS):
        lane = v * LANES
        split = run_of(places, lane, lane + LANES)
        firsts[v] = places[lane]
        seconds[v] = places[lane] if split == LANES else places[lane + split] - split
        splits[v] = split
        if split < LANES:
            whole = False
            rest = run_of(places, lane + split, lane + LANES)
            fits = fits and split + rest == LANES and seconds[v] >= firsts[v]  # else it would read before the first
    if fits:
        copy_runs(room, rows, count, firsts, seconds, splits, whole, target)
    else:
        for k in range(count):
            for lane in range(COLUMNS):
                target[k * COLUMNS + lane] = room[rows[k] + places[lane]]


@inner
def run_of(places: Any, start: int, end: int) -> int:
    """How many places from `start` on are neighbours."""
    count = 1
    while start + count < end and places[start + count] == places[start] + count:
        count += 1
    return count


@inner
def find_lanes(first: int, end: int, box: Any, picture: Any, places: Any) -> None:
    """Where the positions of a panel lie. Behind the last it goes on in memory of our own, and repeats it elsewhere."""
    lane = 0
    while lane < COLUMNS:
        if first + lane < end:
            place, left = place_of(first + lane, box, picture, LAID)
            for i in range(min(left, COLUMNS - lane, end - first - lane)):
                places[lane] = place + i * picture[LAID + 4]
                lane += 1
        else:
            places[lane] = places[lane - 1] + picture[STAGED]
            lane += 1


@inner
def put_columns(sums: Any, height: int, out: Any, bias: Any, first: int, end: int, box: Any, table: Any) -> None:
    """Writes panels of the result: channel by channel, run by run."""
    runs, step = words(OUT_RUNS), table[OUT_STEPS + 4]
    count = find_runs(first, end, height, box, table, runs)
    for m in range(table[OUTPUTS]):
        added, to = bias[m] if table[ADDS_BIAS] else np.float32(0), m * table[OUT_STEPS + 1]
        for r in range(count):
            row, place, length = runs[3 * r] + m * COLUMNS, to + runs[3 * r + 1], runs[3 * r + 2]
            if length == COLUMNS and step == 1:
                for i in range(COLUMNS):
                    write(out, place + i, sums[row + i] + added)
            else:
                for i in range(length):
                    write(out, place + i * step, sums[row + i] + added)


@inner
def find_runs(first: int, end: int, height: int, box: Any, table: Any, runs: Any) -> int:
    """Positions first … end − 1 of a box as runs inside of a panel and of a row: place in the first row of the sums,
    place in the result, length."""
    count, position = 0, first
    while position < end:
        lane = (position - first) % COLUMNS
        place, left = place_of(position, box, table, OUT_STEPS)
        runs[3 * count] = (position - first) // COLUMNS * height * COLUMNS + lane
        runs[3 * count + 1], runs[3 * count + 2] = place, min(left, COLUMNS - lane, end - position)
        position += runs[3 * count + 2]
        count += 1
    return count


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
