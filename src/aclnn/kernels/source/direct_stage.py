"""Staging: blocks of a picture as float32 in the first cache, rows behind each other, zeros for padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.source.arithmetic import bits_of, float_of, use_widest_vectors
from aclnn.kernels.source.calls import shifted
from aclnn.kernels.source.direct_table import (
    AT_PLANES,
    BASE,
    BLOCK,
    BLOCKS,
    DEPTH,
    EXTENT,
    HEIGHT,
    ORIGIN,
    OUT_ORIGIN,
    OUT_STEP,
    OUT_STRIDE,
    PICTURES,
    PITCH,
    PLANE,
    PLANES,
    ROUNDS,
    SIZE,
    SLACK,
    SOURCE_STRIDE,
    SOURCES,
    STEP,
    STRIDE,
    TARGET_STRIDE,
    TARGETS,
    WIDTH,
)
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.sums import clear
from aclnn.kernels.source.vectors import copy_every_second, copy_rows, move


@inner
def placed(block: int, table: Any) -> Any:
    """Where a block begins in the base, and how large it is, on every axis."""
    n, d, h, w = block, 0, 0, 0
    if block and table[WIDTH + BLOCKS] * table[HEIGHT + BLOCKS] * table[DEPTH + BLOCKS] > 1:  # divisions take long
        rest, w = block // table[WIDTH + BLOCKS], block % table[WIDTH + BLOCKS]
        rest, h = rest // table[HEIGHT + BLOCKS], rest % table[HEIGHT + BLOCKS]
        n, d = rest // table[DEPTH + BLOCKS], rest % table[DEPTH + BLOCKS]
    place = (
        n * table[PICTURES + BLOCK],
        d * table[DEPTH + BLOCK],
        h * table[HEIGHT + BLOCK],
        w * table[WIDTH + BLOCK],
    )
    size = (
        min(table[PICTURES + BLOCK], table[PICTURES + BASE] - place[0]),
        min(table[DEPTH + BLOCK], table[DEPTH + BASE] - place[1]),
        min(table[HEIGHT + BLOCK], table[HEIGHT + BASE] - place[2]),
        min(table[WIDTH + BLOCK], table[WIDTH + BASE] - place[3]),
    )
    return place, size


@inner
def source_at(table: Any, group: int, place: Any) -> int:
    """About where the source of a block begins: what is fetched ahead need not be exact."""
    row = max(0, place[2] * table[HEIGHT + STEP] + table[HEIGHT + ORIGIN]) * table[HEIGHT + STRIDE]
    column = max(0, place[3] * table[WIDTH + STEP] + table[WIDTH + ORIGIN]) * table[WIDTH + STRIDE]
    picture = place[0] * table[PICTURES + STRIDE] + place[1] * table[DEPTH + STRIDE]
    return group * table[SOURCES] * table[SOURCE_STRIDE] + picture + row + column  # type: ignore[no-any-return]


@inner
def target_at(table: Any, group: int, place: Any) -> int:
    """About where the target of a block begins."""
    row = max(0, place[2] * table[HEIGHT + OUT_STEP] + table[HEIGHT + OUT_ORIGIN])
    picture = place[0] * table[PICTURES + OUT_STRIDE] + row * table[HEIGHT + OUT_STRIDE]
    column = max(0, place[3] * table[WIDTH + OUT_STEP] + table[WIDTH + OUT_ORIGIN])
    channel = group * table[TARGETS] * table[TARGET_STRIDE] + column * table[WIDTH + OUT_STRIDE]
    return channel + picture + place[1] * table[DEPTH + OUT_STEP] * table[DEPTH + OUT_STRIDE]  # type: ignore[no-any-return]


@inner
def length_of(table: Any, size: Any) -> int:
    """Elements of the long row that a block is."""
    length: int = (size[0] - 1) * table[PICTURES + PITCH] + (size[1] - 1) * table[DEPTH + PITCH]
    length += (size[2] - 1) * table[HEIGHT + PITCH] + size[3]
    return length


@inner
def stage_sources(source: Any, group: int, stage: Any, table: Any, place: Any, size: Any) -> None:
    """Every channel and residue of a group's source, as float32 planes with zeros for padding."""
    steps = (table[DEPTH + STEP], table[HEIGHT + STEP], table[WIDTH + STEP])
    ends = (table[DEPTH + SIZE], table[HEIGHT + SIZE], table[WIDTH + SIZE])
    strides = (
        table[PICTURES + STRIDE],
        table[DEPTH + STRIDE],
        table[HEIGHT + STRIDE],
        table[WIDTH + STRIDE],
    )
    reach = (table[DEPTH + EXTENT] - table[DEPTH + BLOCK], table[HEIGHT + EXTENT] - table[HEIGHT + BLOCK])
    counts = (size[0], size[1] + reach[0], size[2] + reach[1])
    for c in range(table[SOURCES]):
        channel = (group * table[SOURCES] + c) * table[SOURCE_STRIDE] + place[0] * strides[0]
        for plane in range(table[PLANES]):
            at = table[AT_PLANES] + 3 * plane
            firsts = (
                place[1] * steps[0] + table[DEPTH + ORIGIN] + table[at],
                place[2] * steps[1] + table[HEIGHT + ORIGIN] + table[at + 1],
                place[3] * steps[2] + table[WIDTH + ORIGIN] + table[at + 2],
            )
            to = shifted(stage, (c * table[PLANES] + plane) * table[PLANE])
            _stage_plane(source, channel, strides, to, table, counts, firsts, steps, ends)


@inner
def stage_targets(g: Any, group: int, out: Any, table: Any, place: Any, size: Any) -> None:
    """Every channel of a group's target, with zeros wherever the block has no position."""
    strides = (
        table[PICTURES + OUT_STRIDE],
        table[DEPTH + OUT_STRIDE],
        table[HEIGHT + OUT_STRIDE],
        table[WIDTH + OUT_STRIDE],
    )
    counts = (size[0], table[DEPTH + EXTENT], table[HEIGHT + EXTENT])
    firsts = (place[1], place[2], place[3])
    ends = (place[1] + size[1], place[2] + size[2], place[3] + size[3])
    for i in range(table[TARGETS]):
        channel = (group * table[TARGETS] + i) * table[TARGET_STRIDE] + place[0] * strides[0]
        plane = shifted(out, i * table[PLANE])
        _stage_plane(g, channel, strides, plane, table, counts, firsts, (1, 1, 1), ends)
        clear(shifted(plane, length_of(table, size)), SLACK)


@inner
def _stage_plane(
    source: Any, start: int, strides: Any, to: Any, table: Any, counts: Any, firsts: Any, steps: Any, ends: Any
) -> None:
    """Rows of positions firsts, firsts + steps, … of the source, or zeros where they are not below ends."""
    use_widest_vectors()
    extent, pitch = table[WIDTH + EXTENT], table[HEIGHT + PITCH]
    lo, hi = inside(firsts[2], steps[2], ends[2], extent)
    column, step = (firsts[2] + lo * steps[2]) * strides[3], steps[2] * strides[3]
    rows = inside(firsts[1], steps[1], ends[1], counts[2])
    for n in range(counts[0]):
        for d in range(counts[1]):
            row, z = n * table[PICTURES + PITCH] + d * table[DEPTH + PITCH], firsts[0] + d * steps[0]
            top, bottom = rows if 0 <= z < ends[0] else (0, 0)
            if top or bottom < counts[2]:
                clear(shifted(to, row), top * pitch)
                clear(shifted(to, row + bottom * pitch), (counts[2] - bottom) * pitch)
            if table[WIDTH + BLOCKS] > 1:  # else the zeros of the block before are still there
                for h in range(top, bottom):
                    clear(shifted(to, row + h * pitch), lo)
                    clear(shifted(to, row + h * pitch + hi), extent - hi)
            at = start + n * strides[0] + z * strides[1] + (firsts[1] + top * steps[1]) * strides[2] + column
            down = steps[1] * strides[2]
            _stage_rows(source, at, down, step, to, row + top * pitch + lo, pitch, bottom - top, hi - lo)
    if table[ROUNDS]:
        _round_to_hf32(to, counts[0] * table[PICTURES + PITCH])


@inner
def _stage_rows(
    source: Any, start: int, down: int, step: int, to: Any, at: int, pitch: int, rows: int, count: int
) -> None:
    if step == 1:
        copy_rows(source, start, down, to, at, pitch, rows, count)
    elif step == 2:
        copy_every_second(source, start, down, to, at, pitch, rows, count)
    else:
        for h in range(rows):
            for j in range(count):
                move(1, source, start + h * down + step * j, to, at + h * pitch + j)  # as in direct._put_rows


@inner
def inside(first: int, step: int, end: int, count: int) -> Any:
    """The range of i < count for which first + i·step is a position below end."""
    if step == 1:  # divisions take longer than all the rest
        lo = min(max(0, -first), count)
        return lo, min(max(lo, end - first), count)
    lo = min(max(0, -(first // step)), count)
    hi = min(max(lo, (end - 1 - first) // step + 1), count)
    return lo, hi


@inner
def _round_to_hf32(to: Any, count: int) -> None:
    """11 explicit mantissa bits, to nearest, ties away from zero; NaN and Inf stay."""
    for j in range(count):
        to[j] = to_hf32(to[j])


@inner
def to_hf32(value: Any) -> Any:
    rounded = float_of(np.int32((bits_of(value) + np.int32(1 << 11)) & np.int32(-4096)))
    return rounded if abs(value) < np.float32(np.inf) else value
