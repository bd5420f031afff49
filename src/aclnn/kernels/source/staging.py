"""Boxes of a picture, read as float32 with zeros as padding: where they lie, or from a copy.

A box is (batch, z, y, x): its first position and its size. A copy has, for every channel, all that its outputs meet;
one of pairs is made by source.staging_pairs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.native.abi import (
    BEFORE,
    BOXES,
    CHANNELS,
    LAID,
    MOVES,
    PICTURE_STRIDES,
    REACH,
    ROWS,
    SIZES,
    STAGE,
    STRIDE,
    WHOLE,
)
from aclnn.kernels.source.calls import address_of, begin_block, call_entry, pointer_like
from aclnn.kernels.source.elements import read
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import LANES, words
from aclnn.kernels.source.vectors import LINE, TO_READ, fetch, move

HALF = LANES // 2


@inner
def boxes_in(boxes: Any) -> int:
    """How many boxes a whole is cut into."""
    count: int = boxes[BOXES] * boxes[BOXES + 1] * boxes[BOXES + 2] * boxes[BOXES + 3]
    return count


@inner
def find_box(index: int, boxes: Any, box: Any) -> int:
    """Writes where a box begins and how large it is, as even as they go, the larger ones first: threads that take them
    in turn end together. Says how many positions it has."""
    positions = 1
    for d in range(3, -1, -1):
        whole, count = boxes[WHOLE + d], boxes[BOXES + d]
        place, index = index % count, index // count
        least, larger = whole // count, whole % count
        box[d], box[4 + d] = place * least + min(place, larger), least + (1 if place < larger else 0)
        positions *= box[4 + d]
    return positions


@inner
def find_places(box: Any, along: int, strides: Any, first: int, places: Any) -> None:
    """Writes where the positions of a box lie behind its first one, and repeats the last to fill a tile: those of one
    place along an axis, 1 or 2, after the other, or of one picture after the other, 0. `strides` has, from `first` on,
    those of the batch, of channels and of three axes."""
    second, third = (1 if along == 0 else 0), (1 if along == 2 else 2)
    i = 0
    for a in range(box[4 + along]):
        for b in range(box[4 + second]):
            for c in range(box[4 + third]):
                row = a * strides[first + along + min(along, 1)] + b * strides[first + 2 * second]
                row += c * strides[first + third + 1]
                for x in range(box[7]):
                    places[i + x] = row + x * strides[first + 4]
                i += box[7]
    for rest in range(ROWS):
        places[i + rest] = places[i - 1]


@inner
def start_of(box: Any, group: int, channels: int, strides: Any, first: int) -> int:
    """Where the first position of a box lies in a tensor, in the first channel of a group."""
    start: int = box[0] * strides[first] + group * channels * strides[first + 1]
    for d in range(3):
        start += box[1 + d] * strides[first + 2 + d]
    return start


@inner
def brought(source: int, table: Any, group: int, box: Any, room: Any) -> Any:
    """Where a group's channels of a box begin: in `room`, where they are copied, or in a picture of float32."""
    if table[STAGE] == 0:
        return pointer_like(room, source + 4 * start_of(box, group, table[CHANNELS], table, MOVES))
    block = words(9)
    begin_block(block, table[CHANNELS])
    block[4], block[5], block[6] = source, address_of(room), address_of(table)
    block[7], block[8] = address_of(box), group
    call_entry(table[STAGE], address_of(block))
    return room


def stage(lo: int, hi: int, source: Any, target: Any, table: Any, box: Any, group: int) -> None:
    """Copies what a box needs of a group's channels lo … hi − 1."""
    base = (group * table[CHANNELS] + lo) * table[PICTURE_STRIDES + 1]
    for line in range(lines_of(box, table)):
        start, to, inside = find_line(line, box, table)
        stage_rows(source, base + start, inside, table, box, target, to + lo * table[LAID + 1], hi - lo)


@inner
def met(box: Any, axis: int, table: Any) -> int:
    """How many positions of the picture those of a box meet along an axis, with all that lies between."""
    positions: int = (box[5 + axis] - 1) * table[STRIDE + axis] + table[REACH + axis] + 1
    return positions


@inner
def lines_of(box: Any, table: Any) -> int:
    """How many rows of a channel a box needs."""
    planes, rows = met(box, 0, table), met(box, 1, table)
    lines: int = box[4] * planes * rows
    return lines


@inner
def find_line(line: int, box: Any, table: Any) -> Any:
    """Where one of these rows begins in the picture and in a copy, and whether there is such a row."""
    planes, rows = met(box, 0, table), met(box, 1, table)
    n, plane, row = line // rows // planes, line // rows % planes, line % rows
    z = box[1] * table[STRIDE] - table[BEFORE] + plane
    y = box[2] * table[STRIDE + 1] - table[BEFORE + 1] + row
    start = (box[0] + n) * table[PICTURE_STRIDES] + z * table[PICTURE_STRIDES + 2] + y * table[PICTURE_STRIDES + 3]
    to = n * table[LAID] + plane * table[LAID + 2] + row * table[LAID + 3]
    return start, to, 0 <= z < table[SIZES] and 0 <= y < table[SIZES + 1]


@inner
def find_row(positions: int, inside: bool, table: Any, box: Any) -> Any:
    """Of a row that so many positions of a box meet: its length, the first and the end of what is there of the picture,
    and the place of the first behind where the picture's row begins."""
    length = (positions - 1) * table[STRIDE + 2] + table[REACH + 2] + 1
    shift = table[BEFORE + 2] - box[3] * table[STRIDE + 2]  # where the picture begins in the row
    first = min(length, max(0, shift))
    end = max(first, min(length, shift + table[SIZES + 2])) if inside else first
    return length, first, end, (first - shift) * table[PICTURE_STRIDES + 4]


@inner
def stage_rows(
    source: Any, start: int, inside: bool, table: Any, box: Any, target: Any, to: int, channels: int
) -> None:
    """One row of every channel: zeros, what there is, zeros. Channels that lie side by side are copied together."""
    length, first, end, place_of_first = find_row(box[7], inside, table, box)
    across, down = table[PICTURE_STRIDES + 4], table[PICTURE_STRIDES + 1]
    start += place_of_first
    if table[LAID + 1] == 1:
        for i in range(length):
            place = to + i * table[LAID + 4]
            if first <= i < end:
                copy_row(source, start + (i - first) * across, down, target, place, channels)
            else:
                for c in range(channels):
                    target[place + c] = 0
        return
    count, to_next, to_next_row = end - first, table[LAID + 1], table[PICTURE_STRIDES + 3]
    plain = across == 1 and count >= LANES and max(first, length - end) <= LANES
    for c in range(channels):
        row, place = to + c * to_next, start + c * down
        if across == 1:
            fetch_row(source, place + to_next_row, count)
        if plain:  # without a question for each of them
            put_zeros(LANES, target, row)
            put_zeros(LANES, target, row + length - LANES)
            copy_vectors(source, place, target, row + first, count)
        else:
            clear_edges(target, row, first, end, length)
            copy_row(source, place, across, target, row + first, count)


@inner
def fetch_row(source: Any, start: int, count: int) -> None:
    for i in range(0, count, LINE):
        fetch(source, start + i, TO_READ)
    fetch(source, start + count - 1, TO_READ)  # which may lie in a line more


@inner
def copy_vectors(source: Any, start: int, target: Any, to: int, count: int) -> None:
    """Elements side by side, at least LANES: by whole vectors, of which the last may overlap."""
    for i in range(0, count - LANES, LANES):
        move(LANES, source, start + i, target, to + i)
    move(LANES, source, start + count - LANES, target, to + count - LANES)


@inner
def copy_row(source: Any, start: int, step: int, target: Any, to: int, count: int) -> None:
    """Elements that lie `step` apart, side by side: neighbours by vectors, of which the last may overlap."""
    if step == 1 and count >= LANES:
        copy_vectors(source, start, target, to, count)
    elif step == 1 and count >= HALF:
        move(HALF, source, start, target, to)
        move(HALF, source, start + count - HALF, target, to + count - HALF)
    elif step == 1 and count >= 4:
        move(4, source, start, target, to)
        move(4, source, start + count - 4, target, to + count - 4)
    else:
        for i in range(count):
            target[to + i] = read(source, start + i * step)


@inner
def clear_edges(target: Any, row: int, first: int, end: int, length: int) -> None:
    """Zeros before `first` and from `end` on. What is between will be written over, so that a vector at either end does
    for narrow edges: a loop over a few elements would become a call of memset."""
    edge = max(first, length - end)
    if length >= LANES and edge <= LANES:
        put_zeros(LANES, target, row)
        put_zeros(LANES, target, row + length - LANES)
    elif length >= 4 and edge <= 4:
        put_zeros(4, target, row)
        put_zeros(4, target, row + length - 4)
    else:
        for i in range(first):
            target[row + i] = 0
        for i in range(end, length):
            target[row + i] = 0


@intrinsic(prefer_literal=True)
def put_zeros(context: Any, count: Any, target: Any, at: Any) -> Any:
    """A vector of so many zeros, a constant."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.VectorType(ir.FloatType(), count.literal_value)
        place = builder.bitcast(builder.gep(args[1], [args[2]]), kind.as_pointer())
        builder.store(ir.Constant(kind, [0.0] * count.literal_value), place, align=4)
        return ctx.get_dummy_value()

    return types.void(count, target, types.int64), code


@intrinsic
def as_words(context: Any, pointer: Any) -> Any:
    """The same memory as int64 numbers."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(pointer), code
