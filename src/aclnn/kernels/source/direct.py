"""Convolutions with few channels in a group, without matmuls: every tap is a shift of a row.

A block of positions of all pictures of a channel is staged in the first cache as float32, rows behind each other with
zeros for padding. One pitch serves source and target, so a block is one long row: out[j] = Σ weight[t]·stage[j + t's
offset]; what comes out between rows is left there. With strides, the stage has a plane for every residue of positions.
Zeros stand for padding only where the weight is finite: 0·Inf would be NaN. Other weights go tap by tap over those
positions that meet something.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.source.arithmetic import NOT_FINITE, bits_of, is_strange, use_widest_vectors
from aclnn.kernels.source.calls import shifted
from aclnn.kernels.source.direct_stage import (
    inside,
    length_of,
    placed,
    source_at,
    stage_sources,
    stage_targets,
    target_at,
    to_hf32,
)
from aclnn.kernels.source.direct_table import (
    AT_LIMITS,
    AT_OFFSETS,
    AT_PHASES,
    AT_WEIGHTS,
    BASE,
    BIAS_STRIDE,
    BLOCKS,
    CHAIN,
    COUNTER,
    DEPTH,
    GROUPS,
    HAS_BIAS,
    HEIGHT,
    LIMITS,
    OUT,
    OUT_ORIGIN,
    OUT_SIZE,
    OUT_STEP,
    OUT_STRIDE,
    PACKED,
    PARTS,
    PHASE_FIELDS,
    PHASES,
    PICTURES,
    PITCH,
    PLANE,
    ROUNDS,
    RUN,
    SLOT_SIZE,
    SLOTS,
    STAGE,
    TAPS,
    TARGET_STRIDE,
    TARGETS,
    WEIGHT_GROUP,
    WEIGHT_TARGET,
    WIDTH,
)
from aclnn.kernels.source.elements import floats, read, write
from aclnn.kernels.source.helpers import inlined, inner, seldom
from aclnn.kernels.source.sums import clear, counter_add, counter_total
from aclnn.kernels.source.vectors import (
    CHUNK,
    LINE,
    MOST_SUMS,
    MOST_TAPS,
    TO_READ,
    TO_WRITE,
    convolve,
    copy_rows,
    correlate,
    fetch,
    move,
    sums_per_tap,
)


def forward(lo: int, hi: int, source: Any, weight: Any, bias: Any, target: Any, scratch: Any, table: Any) -> None:
    """target = Σ weight·source + bias. Items are slots; each has its share of the blocks of all groups."""
    items = table[GROUPS] * _blocks(table)
    for slot in range(lo, hi):
        mine = shifted(scratch, slot * table[SLOT_SIZE])
        stage, packed = shifted(mine, table[STAGE]), shifted(mine, table[PACKED])
        clear(stage, table[OUT])
        first, end = items * slot // table[SLOTS], items * (slot + 1) // table[SLOTS]
        block, group = first // table[GROUPS], first % table[GROUPS]
        place, size = placed(block, table)
        for _ in range(first, end):
            ahead = source_at(table, group + 1, place)
            stage_sources(source, group, stage, table, place, size)
            for i in range(table[TARGETS]):
                channel, there = group * table[TARGETS] + i, target_at(table, group, place)
                start = group * table[WEIGHT_GROUP] + i * table[WEIGHT_TARGET]
                is_finite = _pack(weight, start, packed, table)
                before = read(bias, channel * table[BIAS_STRIDE]) if table[HAS_BIAS] else np.float32(0)
                for phase in range(table[PHASES]):
                    _one_phase(mine, table, phase, place, size, is_finite, before, source, ahead, target, there)
                    _put(shifted(mine, table[OUT]), target, channel * table[TARGET_STRIDE], table, phase, place, size)
            group += 1
            if group == table[GROUPS]:
                block, group = block + 1, 0
                place, size = placed(block, table)


def weights(lo: int, hi: int, g: Any, source: Any, scratch: Any, partial: Any, table: Any) -> None:
    """partial[group, part, target, tap] = Σ g·source over a part of the blocks. Items are slots."""
    items, blocks, width = table[GROUPS] * table[PARTS], _blocks(table), table[TARGETS] * table[TAPS]
    for slot in range(lo, hi):
        mine = shifted(scratch, slot * table[SLOT_SIZE])
        run, counter = shifted(mine, table[RUN]), shifted(mine, table[COUNTER])
        clear(shifted(mine, table[STAGE]), table[PACKED])
        for item in range(items * slot // table[SLOTS], items * (slot + 1) // table[SLOTS]):
            group, part = item // table[PARTS], item % table[PARTS]
            first, end = blocks * part // table[PARTS], blocks * (part + 1) // table[PARTS]
            for carefully in range(2):
                for block in range(first, end):
                    _sum_block(g, source, group, block, mine, table, carefully)
                    counter_add(counter, block - first, run, width)
                counter_total(counter, end - first, run, width)
                if not is_strange(run, width):
                    break
            for i in range(width):
                partial[item * width + i] = run[i]


def join(lo: int, hi: int, partial: Any, target: Any, table: Any) -> None:
    """The sums of all parts, as a weight. Items are groups."""
    width, parts, taps = table[TARGETS] * table[TAPS], table[PARTS], table[TAPS]
    for group in range(lo, hi):
        for i in range(width):
            total = np.float32(0)
            for part in range(parts):
                total += partial[(group * parts + part) * width + i]
            start = group * table[WEIGHT_GROUP] + i // taps * table[WEIGHT_TARGET]
            write(target, start + table[table[AT_WEIGHTS] + i % taps], total)


@inner
def _blocks(table: Any) -> int:
    many: int = table[PICTURES + BLOCKS] * table[DEPTH + BLOCKS] * table[HEIGHT + BLOCKS] * table[WIDTH + BLOCKS]
    return many


@inlined
def _fetch(source: Any, start: int, target: Any, to: int) -> None:
    """Asks for the memory of the next block, and of what this one will write."""
    for i in range(0, CHUNK, LINE):
        fetch(source, start + i, TO_READ)
        fetch(target, to + i, TO_WRITE)


@inner
def _pack(weight: Any, start: int, packed: Any, table: Any) -> bool:
    """The weights of one target, tap by tap; whether all are finite."""
    worst = np.int32(0)
    for t in range(table[TAPS]):
        value = read(weight, start + table[table[AT_WEIGHTS] + t])
        if table[ROUNDS]:
            value = to_hf32(value)
        packed[t] = value
        worst = max(worst, bits_of(value) & NOT_FINITE)
    return worst < NOT_FINITE  # type: ignore[no-any-return]


@inner
def _one_phase(
    mine: Any,
    table: Any,
    phase: int,
    place: Any,
    size: Any,
    is_finite: bool,
    before: Any,
    source: Any,
    at_source: int,
    target: Any,
    at_target: int,
) -> None:
    """The long row of one target at one residue of its positions."""
    stage, out, packed = (shifted(mine, table[STAGE]), shifted(mine, table[OUT]), shifted(mine, table[PACKED]))
    at = table[AT_PHASES] + phase * PHASE_FIELDS
    first, taps, length = table[at + 3], table[at + 4], length_of(table, size)
    offsets, weights_ = shifted(table, table[AT_OFFSETS] + first), shifted(packed, first)
    if is_finite:
        for chunk in range(0, length, CHUNK):
            _fetch(source, at_source + chunk, target, at_target + chunk)
            convolve(min(taps, CHAIN), stage, offsets, weights_, True, before, out, chunk)
            for t in range(CHAIN, taps, CHAIN):
                some = min(taps - t, CHAIN)
                convolve(some, stage, shifted(offsets, t), shifted(weights_, t), False, before, out, chunk)
        return
    chain = shifted(mine, table[RUN])
    for j in range(length):
        out[j] = before
    for some in range(first, first + taps, CHAIN):
        clear(chain, length)
        for t in range(some, min(some + CHAIN, first + taps)):
            _add_tap(stage, table[table[AT_OFFSETS] + t], packed[t], chain, table, t, place, size)
        for j in range(length):
            out[j] += chain[j]


@inner
def _limited(table: Any, tap: int, place: Any, size: Any) -> Any:
    """The positions of a block that meet something at a tap: first and end of depth, height and width."""
    at = table[AT_LIMITS] + tap * LIMITS
    return (
        max(0, table[at] - place[1]),
        min(size[1], table[at + 1] - place[1]),
        max(0, table[at + 2] - place[2]),
        min(size[2], table[at + 3] - place[2]),
        max(0, table[at + 4] - place[3]),
        min(size[3], table[at + 5] - place[3]),
    )


@inner
def _add_tap(stage: Any, offset: int, weight: Any, out: Any, table: Any, tap: int, place: Any, size: Any) -> None:
    """out += weight·stage where a tap meets something."""
    seldom()
    use_widest_vectors()
    d_lo, d_hi, h_lo, h_hi, w_lo, w_hi = _limited(table, tap, place, size)
    for n in range(size[0]):
        for d in range(d_lo, d_hi):
            for h in range(h_lo, h_hi):
                row = n * table[PICTURES + PITCH] + d * table[DEPTH + PITCH] + h * table[HEIGHT + PITCH]
                for j in range(row + w_lo, row + w_hi):
                    out[j] += weight * stage[offset + j]


@inner
def _put(out: Any, target: Any, start: int, table: Any, phase: int, place: Any, size: Any) -> None:
    """Writes the rows of a block where they belong."""
    at = table[AT_PHASES] + phase * PHASE_FIELDS
    d_step, h_step, w_step = (table[DEPTH + OUT_STEP], table[HEIGHT + OUT_STEP], table[WIDTH + OUT_STEP])
    d_first = place[1] * d_step + table[DEPTH + OUT_ORIGIN] + table[at]
    h_first = place[2] * h_step + table[HEIGHT + OUT_ORIGIN] + table[at + 1]
    w_first = place[3] * w_step + table[WIDTH + OUT_ORIGIN] + table[at + 2]
    d_lo, d_hi = inside(d_first, d_step, table[DEPTH + OUT_SIZE], size[1])
    h_lo, h_hi = inside(h_first, h_step, table[HEIGHT + OUT_SIZE], size[2])
    w_lo, w_hi = inside(w_first, w_step, table[WIDTH + OUT_SIZE], size[3])
    step = w_step * table[WIDTH + OUT_STRIDE]
    for n in range(size[0]):
        for d in range(d_lo, d_hi):
            row = n * table[PICTURES + PITCH] + d * table[DEPTH + PITCH] + w_lo
            to = start + (place[0] + n) * table[PICTURES + OUT_STRIDE]
            to += (d_first + d * d_step) * table[DEPTH + OUT_STRIDE]
            to += (w_first + w_lo * w_step) * table[WIDTH + OUT_STRIDE]
            to += (h_first + h_lo * h_step) * table[HEIGHT + OUT_STRIDE]
            down, pitch = h_step * table[HEIGHT + OUT_STRIDE], table[HEIGHT + PITCH]
            _put_rows(out, row + h_lo * pitch, pitch, target, to, down, step, h_hi - h_lo, w_hi - w_lo)


@inner
def _put_rows(out: Any, at: int, pitch: int, target: Any, to: int, down: int, step: int, rows: int, count: int) -> None:
    if step == 1:
        copy_rows(out, at, pitch, target, to, down, rows, count)
        return
    for h in range(rows):
        for j in range(count):
            move(1, out, at + h * pitch + j, target, to + h * down + step * j)  # by vectors of more it takes longer


@inner
def _sum_block(g: Any, source: Any, group: int, block: int, mine: Any, table: Any, carefully: int) -> None:
    """run[target, tap] = Σ g·source over one block."""
    stage, out, run = (shifted(mine, table[STAGE]), shifted(mine, table[OUT]), shifted(mine, table[RUN]))
    place, size = placed(block, table)
    stage_sources(source, group, stage, table, place, size)
    stage_targets(g, group, out, table, place, size)
    next_place, _ = placed(block + 1, table)
    if next_place[0] >= table[PICTURES + BASE]:
        next_place, next_group = place, group + 1
    else:
        next_group = group
    g_ahead, source_ahead = target_at(table, next_group, next_place), source_at(table, next_group, next_place)
    taps = table[TAPS]
    for i in range(table[TARGETS]):
        g_row, sums = shifted(out, i * table[PLANE]), shifted(run, i * taps)
        if carefully:
            for t in range(taps):
                sums[t] = _sum_tap(stage, table[table[AT_OFFSETS] + t], g_row, table, t, place, size)
        else:
            passes = -(-taps // MOST_TAPS)
            for k in range(passes):
                first, end = taps * k // passes, taps * (k + 1) // passes
                offsets = shifted(table, table[AT_OFFSETS] + first)
                ahead = (g, g_ahead, source, source_ahead, k == 0)
                _sum_taps(end - first, length_of(table, size), g_row, stage, offsets, shifted(sums, first), ahead)


@inner
def _sum_taps(taps: int, length: int, g: Any, stage: Any, offsets: Any, made: Any, ahead: Any) -> None:
    """made[t] = Σ g·stage at each of at most MOST_TAPS taps: in lanes, CHAIN additions in a row, then their sums."""
    sums, lanes = floats(MOST_SUMS), sums_per_tap(taps)
    clear(sums, taps * lanes)
    steps = -(-length // lanes)
    for first in range(0, steps, CHAIN):
        if ahead[4]:
            for i in range(first * lanes, (first + CHAIN) * lanes, LINE):
                fetch(ahead[0], ahead[1] + i, TO_READ)
                fetch(ahead[2], ahead[3] + i, TO_READ)
        correlate(taps, min(CHAIN, steps - first), g, stage, offsets, first * lanes, sums)
    for t in range(taps):
        half = lanes // 2
        while half:
            for j in range(t * lanes, t * lanes + half):
                sums[j] += sums[j + half]
            half //= 2
        made[t] = sums[t * lanes]


@inner
def _sum_tap(stage: Any, offset: int, g: Any, table: Any, tap: int, place: Any, size: Any) -> Any:
    """Σ g·stage where a tap meets something."""
    seldom()
    total = np.float64(0)
    d_lo, d_hi, h_lo, h_hi, w_lo, w_hi = _limited(table, tap, place, size)
    for n in range(size[0]):
        for d in range(d_lo, d_hi):
            for h in range(h_lo, h_hi):
                row = n * table[PICTURES + PITCH] + d * table[DEPTH + PITCH] + h * table[HEIGHT + PITCH]
                for j in range(row + w_lo, row + w_hi):
                    total += np.float64(g[j]) * np.float64(stage[offset + j])
    return np.float32(total)
