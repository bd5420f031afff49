"""Sums whose error hardly grows with their length: short runs are added up, and their sums in pairs.

A run has at most 16 additions in a row, and n runs are joined like the digits of a binary counter, so K terms see
16 + log2(K/16) additions at most: within (8 + √K)·u·Σ|terms| whatever the terms are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import ADDITIONS, COLUMN_TILE
from aclnn.kernels.source.arithmetic import use_widest_vectors
from aclnn.kernels.source.elements import floats, read, write
from aclnn.kernels.source.helpers import inlined, inner
from aclnn.kernels.source.strides import row_start

LANES = 64  # sums kept side by side along a row
LEVELS = 40  # of the counter: 2^40 runs
COLUMN_LEVELS = LEVELS * COLUMN_TILE


def along_rows(
    lo: int, hi: int, source: Any, item_step: int, target: Any, target_step: int, rank: int, sizes: Any, strides: Any
) -> None:
    """target[item] = Σ of source[item] over all rows. Rows are described by sizes[rank] and strides[rank]."""
    use_widest_vectors()
    lanes, counter = floats(LANES), floats(LEVELS)
    last = rank - 1
    length, step = sizes[last], strides[last]
    rows = 1
    for d in range(last):
        rows *= sizes[d]
    for item in range(lo, hi):
        runs, additions = 0, 0
        clear(lanes, LANES)
        for row in range(rows):
            start = item * item_step + row_start(row, rank, sizes, strides, 0)
            for first in range(0, length, LANES):
                add_to(lanes, source, start + first * step, step, min(LANES, length - first))
                additions += 1
                if additions == ADDITIONS:
                    fold(lanes, LANES // 2, 1)
                    counter_add(counter, runs, lanes, 1)
                    clear(lanes, LANES)
                    runs, additions = runs + 1, 0
        fold(lanes, LANES // 2, 1)
        counter_add(counter, runs, lanes, 1)
        counter_total(counter, runs + 1, lanes, 1)
        write(target, item * target_step, lanes[0])


def down_columns(
    lo: int, hi: int, source: Any, columns: int, target: Any, target_step: int, rank: int, sizes: Any, strides: Any
) -> None:
    """target[column] = Σ of source[row, column] over all rows. Items are COLUMN_TILE columns that lie side by side.

    Rows are described by sizes[rank] and strides[rank], whose last entries are the elements of a column, and how many
    short ones without gaps are taken as one row, a power of two; the last of such rows may be shorter.
    """
    use_widest_vectors()
    sums, counter = floats(COLUMN_TILE), floats(COLUMN_LEVELS)
    together = strides[rank - 1]
    rows, width = 1, columns * together
    for d in range(rank - 1):
        rows *= sizes[d]
    for item in range(lo, hi):
        first = item * COLUMN_TILE
        count, end = min(COLUMN_TILE, width - first), columns * sizes[rank - 1] - first
        for runs in range(-(-rows // ADDITIONS)):
            clear(sums, count)
            for row in range(runs * ADDITIONS, min(rows, (runs + 1) * ADDITIONS)):
                start = row_start(row, rank, sizes, strides, 0) + first
                for j in range(min(count, end - row * width)):
                    sums[j] += read(source, start + j)
            counter_add(counter, runs, sums, count)
        counter_total(counter, -(-rows // ADDITIONS), sums, count)
        fold(sums, together // 2, columns)
        for j in range(min(count, columns - first)):
            write(target, (first + j) * target_step, sums[j])


@inner
def clear(sums: Any, count: int) -> None:
    for j in range(count):
        sums[j] = np.float32(0)


@inlined
def add_to(sums: Any, source: Any, start: int, step: int, count: int) -> None:
    """One more element for each of the first `count` sums."""
    if step == 1 and count == LANES:
        for j in range(LANES):
            sums[j] += read(source, start + j)
    elif step == 1:
        for j in range(count):
            sums[j] += read(source, start + j)
    else:
        for j in range(count):
            sums[j] += read(source, start + j * step)


@inner
def fold(sums: Any, half: int, columns: int) -> None:
    """The sums of rows of columns, twice as many as `half` says, in the first."""
    while half:
        for j in range(half * columns):
            sums[j] += sums[half * columns + j]
        half //= 2


@inner
def counter_add(counter: Any, runs: int, sums: Any, width: int) -> None:
    """Adds `width` sums of one more run: as in counting, two sums over equally many runs make one of the next level."""
    level = 0
    while runs & 1:
        for j in range(width):
            sums[j] += counter[level * width + j]
        runs >>= 1
        level += 1
    for j in range(width):
        counter[level * width + j] = sums[j]


@inner
def counter_total(counter: Any, runs: int, sums: Any, width: int) -> None:
    """What all levels have together, the small ones first."""
    clear(sums, width)
    level = 0
    while runs:
        if runs & 1:
            for j in range(width):
                sums[j] += counter[level * width + j]
        runs >>= 1
        level += 1
