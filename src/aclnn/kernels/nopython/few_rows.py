"""Products of a few rows by a packed matrix: the steps of an LSTM."""

from __future__ import annotations

from typing import Any

from aclnn.kernels.nopython.agreed import DEPTH, PANELS_TOGETHER, ROWS
from aclnn.kernels.nopython.arithmetic import use_widest_vectors
from aclnn.kernels.nopython.indirect import COLUMNS, inner, multiply, whole_vectors
from aclnn.kernels.nopython.tiles import shifted

LOW = 4  # rows of lower tiles: with them, no even number of rows from 4 on leaves any of a tile idle


def product(
    lo: int,
    hi: int,
    a: Any,
    c: Any,
    packed: Any,
    scratch: Any,
    bases: Any,
    offsets: Any,
    rows: int,
    depth: int,
    columns: int,
    chain: int,
    lots: int,
    per_lot: int,
    adds: int,
) -> None:
    """c = a·b or, if it `adds`, c += a·b. Rows of a begin at `bases`, of which the last is repeated; those of c are
    dense. Items are lots: each does its share of the panels of b, with a scratch of its own."""
    use_widest_vectors()
    panels = -(-columns // COLUMNS)
    for lot in range(lo, hi):
        work, panel, beyond = shifted(scratch, lot * per_lot), panels * lot // lots, panels * (lot + 1) // lots
        while panel < beyond:
            first = panel * COLUMNS
            b = shifted(packed, first * depth)
            together = PANELS_TOGETHER if rows == 1 and panel + PANELS_TOGETHER <= beyond else 1
            left = columns - first
            if together * COLUMNS > left:
                together = 1
            width = min(together * COLUMNS, whole_vectors(left))
            if together == 1:
                some_rows(a, bases, offsets, b, rows, width, depth, chain, work)
            else:
                one_row(a, bases, offsets, b, depth, chain, work)
            put(work, rows, width, min(width, left), c, first, columns, adds)
            panel += together


@inner
def one_row(a: Any, bases: Any, offsets: Any, b: Any, depth: int, chain: int, work: Any) -> None:
    """Several panels at once: sums of a single one would wait for each other. They are cut like those of some rows."""
    aside, blocks = shifted(work, PANELS_TOGETHER * COLUMNS), -(-depth // DEPTH)
    for block in range(blocks):
        start, stop = depth * block // blocks, depth * (block + 1) // blocks
        near, places, to_next = shifted(b, start * COLUMNS), shifted(offsets, start), depth * COLUMNS
        count, more = stop - start, block > 0
        multiply(1, PANELS_TOGETHER, COLUMNS, count, chain, a, bases, places, near, to_next, work, more, aside)


@inner
def some_rows(
    a: Any, bases: Any, offsets: Any, b: Any, rows: int, width: int, depth: int, chain: int, work: Any
) -> None:
    """The sums of a panel, row after row."""
    blocks, even = -(-depth // DEPTH), max(LOW, rows + rows % 2)
    low = (ROWS - even % ROWS) // 2 % 3
    high = (even - low * LOW) // ROWS
    aside = shifted(work, (high * ROWS + low * LOW) * width)
    for block in range(blocks):
        start, stop = depth * block // blocks, depth * (block + 1) // blocks
        near, places = shifted(b, start * width), shifted(offsets, start)
        count = stop - start
        for t in range(high):
            first, to = shifted(bases, t * ROWS), shifted(work, t * ROWS * width)
            multiply(ROWS, 1, width, count, chain, a, first, places, near, 0, to, block > 0, aside)
        for t in range(low):
            row = high * ROWS + t * LOW
            first, to = shifted(bases, row), shifted(work, row * width)
            multiply(LOW, 1, width, count, chain, a, first, places, near, 0, to, block > 0, aside)


@inner
def put(sums: Any, rows: int, width: int, channels: int, c: Any, first: int, columns: int, adds: int) -> None:
    """Writes rows of sums to columns of c, or adds them."""
    for i in range(rows):
        to, start = i * columns + first, i * width
        if adds:
            for j in range(channels):
                c[to + j] += sums[start + j]
        else:
            for j in range(channels):
                c[to + j] = sums[start + j]
