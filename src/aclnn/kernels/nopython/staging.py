"""Boxes of a picture, laid out so that a tap of a convolution is a shift: read as float32, with zeros as padding.

A box is (batch, z, y, x): its first position and its size. For every channel it has the positions that its outputs
meet, those of each remainder of the stride together, so that neighbours of an output row are neighbours in memory.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.nopython.agreed import (
    BEFORE,
    BEYOND,
    BOX,
    BOXES,
    CHANNELS,
    LAID,
    PHASE_LAID,
    PHASES,
    PICTURE_STEPS,
    SIZES,
    STAGED,
    STRIDE,
    WHOLE,
)
from aclnn.kernels.nopython.half import read
from aclnn.kernels.nopython.panels import LANES, inner


@inner
def find_box(index: int, boxes: Any, box: Any) -> int:
    """Writes where a box begins and how large it is; says how many positions it has."""
    positions = 1
    for d in range(3, -1, -1):
        box[d] = index % boxes[BOXES + d] * boxes[BOX + d]
        index //= boxes[BOXES + d]
        box[4 + d] = min(boxes[BOX + d], boxes[WHOLE + d] - box[d])
        positions *= box[4 + d]
    return positions


@inner
def place_of(position: int, box: Any, steps: Any, first: int) -> Any:
    """Where a position of a box lies behind the box, and how many more its row has, itself included. `steps` has, from
    `first` on, those of the batch, of channels and of three axes."""
    x = position % box[7]
    rest = position // box[7]
    y = rest % box[6]
    rest //= box[6]
    z = rest % box[5]
    n = rest // box[5]
    place = n * steps[first] + z * steps[first + 2] + y * steps[first + 3] + x * steps[first + 4]
    return place, box[7] - x


@inner
def start_of(box: Any, group: int, channels: int, steps: Any, first: int) -> int:
    """Where the first position of a box lies in a tensor, in the first channel of a group."""
    start: int = box[0] * steps[first] + group * channels * steps[first + 1]
    for d in range(3):
        start += box[1 + d] * steps[first + 2 + d]
    return start


@inner
def brought(source: Any, table: Any, group: int, box: Any, room: Any) -> Any:
    """Where a group's channels of a box begin: in `room`, where they are copied, or in a picture of float32."""
    if table[STAGED]:
        stage(source, table, group, box, room)
        return room
    return as_floats(source, start_of(box, group, table[CHANNELS], table, PICTURE_STEPS))


@inner
def stage(source: Any, table: Any, group: int, box: Any, target: Any) -> None:
    """Copies what a box needs of a group's channels."""
    channels = table[CHANNELS]
    base = group * channels * table[PICTURE_STEPS + 1]
    high, wide = table[PHASES + 1] * (box[6] + table[BEYOND + 1]), table[PHASES] * (box[5] + table[BEYOND])
    for n in range(box[4]):
        for plane in range(wide):
            fz, lz = plane % table[PHASES], plane // table[PHASES]
            z = (box[1] + lz) * table[STRIDE] + fz - table[BEFORE]
            for row in range(high):
                fy, ly = row % table[PHASES + 1], row // table[PHASES + 1]
                y = (box[2] + ly) * table[STRIDE + 1] + fy - table[BEFORE + 1]
                inside = 0 <= z < table[SIZES] and 0 <= y < table[SIZES + 1]
                start = (
                    base
                    + (box[0] + n) * table[PICTURE_STEPS]
                    + z * table[PICTURE_STEPS + 2]
                    + y * table[PICTURE_STEPS + 3]
                )
                to = n * table[LAID] + fz * table[PHASE_LAID] + lz * table[LAID + 2]
                to += fy * table[PHASE_LAID + 1] + ly * table[LAID + 3]
                for fx in range(table[PHASES + 2]):
                    stage_rows(source, start, inside, table, fx, box, target, to + fx * table[PHASE_LAID + 2])


@inner
def stage_rows(source: Any, start: int, inside: bool, table: Any, fx: int, box: Any, target: Any, to: int) -> None:
    """One row of every channel, in one phase."""
    stride, before, size = table[STRIDE + 2], table[BEFORE + 2] - fx, table[SIZES + 2]
    length = box[7] + table[BEYOND + 2]
    first = min(length, max(0, -(-before // stride) - box[3]))
    end = max(first, min(length, -(-(size + before) // stride) - box[3])) if inside else first
    step = stride * table[PICTURE_STEPS + 4]
    start += ((box[3] + first) * stride - before) * table[PICTURE_STEPS + 4]
    for c in range(table[CHANNELS]):
        row = to + c * table[LAID + 1]
        for i in range(first):
            target[row + i] = 0
        copy_row(source, start + c * table[PICTURE_STEPS + 1], step, end - first, target, row + first)
        for i in range(end, length):
            target[row + i] = 0


@inner
def copy_row(source: Any, start: int, step: int, count: int, target: Any, to: int) -> None:
    """Elements that lie `step` apart, side by side as float32."""
    if step == 1 and count >= LANES:
        for i in range(0, count - LANES, LANES):
            widen(source, start + i, target, to + i)
        widen(source, start + count - LANES, target, to + count - LANES)
    else:
        for i in range(count):
            target[to + i] = read(source, start + i * step)


@intrinsic
def as_floats(context: Any, pointer: Any, start: Any) -> Any:
    """A pointer to float32 elements from `start` on; of another type it makes no sense, and code that never runs."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(builder.gep(args[0], [args[1]]), ir.FloatType().as_pointer())

    return types.CPointer(types.float32)(pointer, types.int64), code


@intrinsic
def widen(context: Any, source: Any, start: Any, target: Any, to: Any) -> Any:
    """A vector of elements as float32."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        source_, start, target, to = args
        result = ir.VectorType(ir.FloatType(), LANES)
        kind = ir.VectorType(source_.type.pointee, LANES)
        loaded = builder.load(builder.bitcast(builder.gep(source_, [start]), kind.as_pointer()), align=2)
        if source.dtype == types.int16:
            loaded = builder.fpext(builder.bitcast(loaded, ir.VectorType(ir.HalfType(), LANES)), result)
        elif source.dtype == types.uint16:
            wide = ir.VectorType(ir.IntType(32), LANES)
            loaded = builder.bitcast(builder.shl(builder.zext(loaded, wide), ir.Constant(wide, [16] * LANES)), result)
        builder.store(loaded, builder.bitcast(builder.gep(target, [to]), result.as_pointer()), align=4)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(source, whole, target, whole), code
