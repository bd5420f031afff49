"""Convolutions as matrix products whose second factor is never written down as a whole.

result[m, p] = Σ weight[m, (c, tap)] · picture[c, p + tap]: columns are positions, rows are channels.

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
    OUT_STEPS,
    OUTPUTS,
    PER_LOT,
    ROOM,
    STAGED,
    TALL,
    TAPS,
    TOGETHER,
)
from aclnn.kernels.nopython.arithmetic import use_widest_vectors
from aclnn.kernels.nopython.half import read, write
from aclnn.kernels.nopython.panels import ACROSS, COLUMNS, LANES, copy_runs, inner, multiply, words
from aclnn.kernels.nopython.staging import brought, find_box, place_of, start_of
from aclnn.kernels.nopython.tiles import shifted

OUT_RUNS = 3 * max(COLUMNS_TOGETHER, COLUMNS)  # numbers of a list of runs


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
