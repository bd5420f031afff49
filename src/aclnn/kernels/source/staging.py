"""Boxes of a picture, read as float32 with zeros as padding: where they lie, or from a copy.

A box is (batch, z, y, x): its first position and its size. A copy has, for every channel, all that its outputs meet. It
is of floats, or of pairs of channels in bfloat16: see source.pairs.
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
    EVERY_POSITION,
    LAID,
    MOVES,
    PAIRED,
    PICTURE_CHANNELS,
    PICTURE_STRIDES,
    POSITIONS,
    REACH,
    ROWS,
    SIZES,
    STAGE,
    STRIDE,
    WHOLE,
)
from aclnn.kernels.source.calls import address_of, begin_block, call_entry, pointer_like
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import LANES, words
from aclnn.kernels.source.pairs import NO_PARTNER, bring_one, terms_in
from aclnn.kernels.source.rows import (
    bring_seconds,
    clear,
    clear_edges,
    copy_row,
    copy_vectors,
    fetch_row,
    pair_row,
    put_zeros,
)


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
    """Where a group's channels of a box begin: in `room`, where they are copied, or in a picture of float32 itself."""
    if table[STAGE] == 0:
        return pointer_like(room, source + 4 * start_of(box, group, table[CHANNELS], table, MOVES))
    block = words(9)
    begin_block(block, table[CHANNELS])
    block[4], block[5], block[6] = source, address_of(room), address_of(table)
    block[7], block[8] = address_of(box), group
    call_entry(table[STAGE], address_of(block))
    return room


def stage(lo: int, hi: int, source: Any, target: Any, table: Any, box: Any, group: int) -> None:
    """Copies what a box needs of a group's channels lo … hi − 1, or of as many pairs of these."""
    together = -(-table[PICTURE_CHANNELS] // table[CHANNELS])
    first = lo * together
    base = (group * table[PICTURE_CHANNELS] + first) * table[PICTURE_STRIDES + 1]
    channels = min((hi - lo) * together, table[PICTURE_CHANNELS] - first)
    for n in range(box[4]):
        for plane in range((box[5] - 1) * table[STRIDE] + table[REACH] + 1):
            z = box[1] * table[STRIDE] - table[BEFORE] + plane
            for row in range((box[6] - 1) * table[STRIDE + 1] + table[REACH + 1] + 1):
                y = box[2] * table[STRIDE + 1] - table[BEFORE + 1] + row
                inside = 0 <= z < table[SIZES] and 0 <= y < table[SIZES + 1]
                start = base + (box[0] + n) * table[PICTURE_STRIDES]
                start += z * table[PICTURE_STRIDES + 2] + y * table[PICTURE_STRIDES + 3]
                to = n * table[LAID] + plane * table[LAID + 2] + row * table[LAID + 3] + lo * table[LAID + 1]
                if table[PAIRED] == EVERY_POSITION:
                    stage_every_position(source, start, inside, table, box, target, to, channels)
                elif table[PAIRED] == POSITIONS:
                    stage_positions(source, start, table, box, target, to, channels)
                else:
                    stage_rows(source, start, inside, table, box, target, to, channels)


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
            place, there = to + i * table[LAID + 4], start + (i - first) * across
            if not first <= i < end:
                clear(target, place, table[CHANNELS])
            elif terms_in(target) > 1:
                pair_row(source, there, down, target, place, channels)
            else:
                copy_row(source, there, down, NO_PARTNER, target, place, channels)
        return
    count, to_next, to_next_row = end - first, table[LAID + 1], table[PICTURE_STRIDES + 3]
    plain = across == 1 and count >= LANES and max(first, length - end) <= LANES
    for c in range(0, channels, terms_in(target)):
        row, place = to + c // terms_in(target) * to_next, start + c * down
        partner = down if c + 1 < channels else NO_PARTNER
        if across == 1:
            fetch_row(source, place + to_next_row, count)
            if terms_in(target) > 1:
                fetch_row(source, place + down + to_next_row, count)
        if plain:  # without a question for each of them
            put_zeros(LANES, target, row)
            put_zeros(LANES, target, row + length - LANES)
            copy_vectors(source, place, partner, target, row + first, count)
        else:
            clear_edges(target, row, first, end, length)
            copy_row(source, place, across, partner, target, row + first, count)


@inner
def stage_every_position(
    source: Any, start: int, inside: bool, table: Any, box: Any, target: Any, to: int, channels: int
) -> None:
    """The same where each position is paired with the one that its neighbour's terms meet in its place: a pair may
    begin anywhere. The row is one of whole pairs."""
    length, first, end, place_of_first = find_row(box[7] + box[7] % 2, inside, table, box)
    across, down, apart = table[PICTURE_STRIDES + 4], table[PICTURE_STRIDES + 1], table[STRIDE + 2]
    start, last = start + place_of_first, max(first, end - apart)  # where those begin that have no partner
    before, partner = max(0, first - apart), apart * across
    if table[LAID + 1] == 1:
        for i in range(length):
            place, there = to + i * table[LAID + 4], start + (i - first) * across
            if first <= i < end:
                copy_row(source, there, down, partner if i < last else NO_PARTNER, target, place, channels)
            else:
                clear(target, place, channels)
            if before <= i < min(first, end - apart):
                bring_seconds(source, there + partner, down, target, place, channels)
        return
    for c in range(channels):
        row, place = to + c * table[LAID + 1], start + c * down
        if across == 1:
            fetch_row(source, place + table[PICTURE_STRIDES + 3], end - first)
        clear_edges(target, row, first, last, length)
        copy_row(source, place, across, partner, target, row + first, last - first)
        for i in range(last, end):
            bring_one(source, place + (i - first) * across, NO_PARTNER, target, row + i)
        seconds = max(0, min(first, end - apart) - before)
        bring_seconds(source, place + (before - first + apart) * across, across, target, row + before, seconds)


@inner
def stage_positions(source: Any, start: int, table: Any, box: Any, target: Any, to: int, channels: int) -> None:
    """One row of every channel of what is met at the positions of a box themselves: those that are neighbours are
    pairs."""
    across, down = table[PICTURE_STRIDES + 4], table[PICTURE_STRIDES + 1]
    start += box[3] * across
    if table[LAID + 1] == 1:
        for i in range(0, box[7], 2):
            partner = across if i + 1 < box[7] else NO_PARTNER
            copy_row(source, start + i * across, down, partner, target, to + i // 2 * table[LAID + 4], channels)
        return
    for c in range(channels):
        if across == 1:
            fetch_row(source, start + c * down + table[PICTURE_STRIDES + 3], box[7])
        pair_row(source, start + c * down, across, target, to + c * table[LAID + 1], box[7])


@intrinsic
def as_words(context: Any, pointer: Any) -> Any:
    """The same memory as int64 numbers."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(pointer), code
