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
    LAID,
    MOVES,
    PICTURE_CHANNELS,
    PICTURE_STRIDES,
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
from aclnn.kernels.source.pairs import NO_PARTNER, bring, bring_one, bring_words, terms_in
from aclnn.kernels.source.vectors import LINE, TO_READ, fetch

HALF = LANES // 2


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
    first = lo * terms_in(target)
    base = (group * table[PICTURE_CHANNELS] + first) * table[PICTURE_STRIDES + 1]
    channels = min((hi - lo) * terms_in(target), table[PICTURE_CHANNELS] - first)
    for n in range(box[4]):
        for plane in range((box[5] - 1) * table[STRIDE] + table[REACH] + 1):
            z = box[1] * table[STRIDE] - table[BEFORE] + plane
            for row in range((box[6] - 1) * table[STRIDE + 1] + table[REACH + 1] + 1):
                y = box[2] * table[STRIDE + 1] - table[BEFORE + 1] + row
                inside = 0 <= z < table[SIZES] and 0 <= y < table[SIZES + 1]
                start = base + (box[0] + n) * table[PICTURE_STRIDES]
                start += z * table[PICTURE_STRIDES + 2] + y * table[PICTURE_STRIDES + 3]
                to = n * table[LAID] + plane * table[LAID + 2] + row * table[LAID + 3] + lo * table[LAID + 1]
                stage_rows(source, start, inside, table, box, target, to, channels)


@inner
def stage_rows(
    source: Any, start: int, inside: bool, table: Any, box: Any, target: Any, to: int, channels: int
) -> None:
    """One row of every channel: zeros, what there is, zeros. Channels that lie side by side are copied together."""
    length = (box[7] - 1) * table[STRIDE + 2] + table[REACH + 2] + 1
    shift = table[BEFORE + 2] - box[3] * table[STRIDE + 2]  # where the picture begins in the row
    first = min(length, max(0, shift))
    end = max(first, min(length, shift + table[SIZES + 2])) if inside else first
    across, down = table[PICTURE_STRIDES + 4], table[PICTURE_STRIDES + 1]
    start += (first - shift) * across
    if table[LAID + 1] == 1:
        for i in range(length):
            place = to + i * table[LAID + 4]
            if first <= i < end:
                copy_channels(source, start + (i - first) * across, down, target, place, channels)
            else:
                for c in range(-(-channels // terms_in(target))):
                    target[place + c] = 0
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
def fetch_row(source: Any, start: int, count: int) -> None:
    for i in range(0, count, LINE):
        fetch(source, start + i, TO_READ)
    fetch(source, start + count - 1, TO_READ)  # which may lie in a line more


@inner
def copy_channels(source: Any, start: int, step: int, target: Any, to: int, channels: int) -> None:
    """The channels of a position, which lie `step` apart, side by side; of pairs, the last one may have no partner."""
    if terms_in(target) == 1:
        copy_row(source, start, step, NO_PARTNER, target, to, channels)
        return
    pairs, copied = channels // 2, 0
    if step == 1 and pairs >= LANES:
        for i in range(0, pairs - LANES, LANES):
            bring_words(LANES, source, start + 2 * i, target, to + i)
        bring_words(LANES, source, start + 2 * (pairs - LANES), target, to + pairs - LANES)
        copied = pairs
    for i in range(copied, pairs):
        bring_one(source, start + 2 * i * step, step, target, to + i)
    if channels % 2:
        bring_one(source, start + 2 * pairs * step, NO_PARTNER, target, to + pairs)


@inner
def copy_vectors(source: Any, start: int, partner: int, target: Any, to: int, count: int) -> None:
    """Elements side by side, at least LANES: by whole vectors, of which the last may overlap."""
    for i in range(0, count - LANES, LANES):
        bring(LANES, source, start + i, partner, target, to + i)
    bring(LANES, source, start + count - LANES, partner, target, to + count - LANES)


@inner
def copy_row(source: Any, start: int, step: int, partner: int, target: Any, to: int, count: int) -> None:
    """Elements that lie `step` apart, side by side: neighbours by vectors, of which the last may overlap. With each
    comes its `partner`, if there is one and they are pairs."""
    if step == 1 and count >= LANES:
        copy_vectors(source, start, partner, target, to, count)
    elif step == 1 and count >= HALF:
        bring(HALF, source, start, partner, target, to)
        bring(HALF, source, start + count - HALF, partner, target, to + count - HALF)
    elif step == 1 and count >= 4:
        bring(4, source, start, partner, target, to)
        bring(4, source, start + count - 4, partner, target, to + count - 4)
    else:
        for i in range(count):
            bring_one(source, start + i * step, partner, target, to + i)


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
        kind = ir.VectorType(ir.IntType(32), count.literal_value)
        place = builder.bitcast(builder.gep(args[1], [args[2]]), kind.as_pointer())
        builder.store(ir.Constant(kind, [0] * count.literal_value), place, align=4)
        return ctx.get_dummy_value()

    return types.void(count, target, types.int64), code


@intrinsic
def as_words(context: Any, pointer: Any) -> Any:
    """The same memory as int64 numbers."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(pointer), code
