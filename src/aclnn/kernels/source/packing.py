"""Rows of memory as the panels and tiles that source.indirect multiplies: copied, or turned by squares of vectors."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.native.abi import ROWS
from aclnn.kernels.source.elements import narrowed, read, widened
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import LANES, vector_at
from aclnn.kernels.source.vectors import LINE, TO_READ, fetch, move

_SMALL, _WORD = ir.IntType(32), ir.IntType(64)


@intrinsic(prefer_literal=True)
def turn(context: Any, gap: Any, source: Any, start: Any, pitch: Any, target: Any, to: Any, to_pitch: Any) -> Any:
    """LANES rows of LANES elements, `pitch` apart, as LANES columns, whose rows are `to_pitch` apart and whose elements
    are `gap` apart, a constant: 1, or 2 with what lies between left as it is."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, source_, start, pitch, *where = args
        starts = [builder.add(start, builder.mul(pitch, _WORD(row))) for row in range(LANES)]
        _turn(builder, gap, (source_, source.dtype), starts, target.dtype, *where)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(gap, source, whole, whole, target, whole, whole), code


@intrinsic(prefer_literal=True)
def turn_rows(
    context: Any, gap: Any, source: Any, rows: Any, by: Any, added: Any, target: Any, to: Any, to_pitch: Any
) -> Any:
    """The same of rows that begin `by` behind the LANES places in a list, each with added[by …]."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, source_, rows_, by_, added_, target_, to_, pitch = args
        starts = [builder.add(by_, builder.load(builder.gep(rows_, [_WORD(row)]))) for row in range(LANES)]
        more = builder.load(vector_at(builder, added_, by_), align=4)
        _turn(builder, gap, (source_, source.dtype), starts, target.dtype, target_, to_, pitch, more)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(gap, source, rows, whole, added, target, whole, whole), code


@intrinsic(prefer_literal=True)
def stream_lines(context: Any, source: Any, rows: Any, by: Any, added: Any, target: Any, to: Any, to_pitch: Any) -> Any:
    """The same of as many rows as a line has elements, whose columns become lines, which go past the caches."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        source_, rows_, by_, added_, target_, to_, pitch = args
        more, squares = builder.load(vector_at(builder, added_, by_), align=4), []
        for first in range(0, LINE, LANES):
            starts = [builder.load(builder.gep(rows_, [_WORD(first + row)])) for row in range(LANES)]
            loaded = [builder.load(vector_at(builder, source_, builder.add(by_, start)), align=4) for start in starts]
            squares.append(_transposed(builder, [builder.fadd(row, more) for row in loaded]))
        for column in range(LANES):
            for i, square in enumerate(squares):
                place = vector_at(builder, target_, builder.add(to_, _WORD(i * LANES)))
                stored = builder.store(square[column], place, align=4 * LANES)
                stored.set_metadata("nontemporal", builder.module.add_metadata([_WORD(1)]))
            to_ = builder.add(to_, pitch)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(source, rows, whole, added, target, whole, whole), code


def _turn(
    builder: Any, gap: Any, source: Any, starts: Any, kind: Any, target: Any, to: Any, to_pitch: Any, more: Any = None
) -> None:
    put_row = {1: _put_row, 2: _put_row_apart}[gap.literal_value]
    loaded = [builder.load(vector_at(builder, source[0], start), align=2) for start in starts]
    rows = [widened(builder, row, source[1], LANES) for row in loaded]
    for row in _transposed(builder, rows if more is None else [builder.fadd(row, more) for row in rows]):
        put_row(builder, narrowed(builder, row, kind, LANES), target, to)
        to = builder.add(to, to_pitch)


def _put_row(builder: Any, row: Any, target: Any, to: Any) -> None:
    builder.store(row, vector_at(builder, target, to), align=2)


def _put_row_apart(builder: Any, row: Any, target: Any, to: Any) -> None:
    """Two vectors of what is there, of which every other element is replaced. The second begins with the last element
    of the first, so that it ends with the row. It is loaded before the first is stored: no load waits for a store."""
    first, last = (vector_at(builder, target, builder.add(to, _WORD(by))) for by in (0, LANES - 1))
    there = [builder.load(place, align=2) for place in (first, last)]
    even = [i // 2 if i % 2 == 0 else LANES + i for i in range(LANES)]
    odd = [LANES + i if i % 2 == 0 else (LANES + i) // 2 for i in range(LANES)]
    for place, old, which in zip((first, last), there, (even, odd), strict=True):
        builder.store(
            builder.shuffle_vector(row, old, ir.Constant(ir.VectorType(_SMALL, LANES), which)), place, align=2
        )


def _transposed(builder: Any, rows: Any) -> Any:
    """A square of vectors, turned: pairs that lie `distance` apart exchange their halves, at every distance."""
    distance = 1
    while distance < LANES:
        one = [lane if not lane & distance else lane - distance + LANES for lane in range(LANES)]
        other = [lane + distance if not lane & distance else lane + LANES for lane in range(LANES)]
        made = list(rows)
        for i in range(LANES):
            if not i & distance:
                made[i], made[i + distance] = (
                    builder.shuffle_vector(
                        rows[i], rows[i + distance], ir.Constant(ir.VectorType(_SMALL, LANES), which)
                    )
                    for which in (one, other)
                )
        rows, distance = made, 2 * distance
    return rows


@inner
def gap_between(places: Any, first: int) -> int:
    """How far LANES places from `first` on lie apart, each from the next; 0 if that is not the same for all."""
    gap, apart = places[first + 1] - places[first], 0
    for i in range(2, LANES):
        apart |= places[first + i] - places[first + i - 1] - gap
    return gap if apart == 0 else 0


@inner
def pack_rows(source: Any, step: int, places: Any, count: int, channels: int, target: Any, columns: int) -> None:
    """A panel, [row][columns], of `count` rows: where these begin is listed, and their channels lie `step` apart.
    Columns beyond the channels are left as they are."""
    i = 0
    while i < count:
        together, done = 1, channels // LANES * LANES
        if step == 1:
            for m in range(0, done, LANES):
                move(LANES, source, places[i] + m, target, i * columns + m)
        elif i + LANES <= count and gap_between(places, i) == 1:
            together = LANES
            for m in range(0, done, LANES):
                turn(1, source, places[i] + m * step, step, target, i * columns + m, columns)
        else:
            done = 0
        for row in range(i, i + together):
            for m in range(done, channels):
                target[row * columns + m] = read(source, places[row] + m * step)
        i += together


@inner
def pack_tiles(x: Any, rows: Any, tiles: int, places: Any, count: int, depth: int, target: Any, far: bool) -> None:
    """The first factor of some tiles, `depth` apart, for `count` places: ROWS elements side by side for each. Rows that
    lie side by side already are moved together, with what is behind them as long as it lies before the last place: the
    next ones are written over it. If they are `far`, in no cache, those of tiles to come are fetched."""
    beyond = places[count - 1] + ROWS - 8
    for t in range(tiles):
        to, first, apart = t * ROWS * depth, rows[t * ROWS], 0
        for i in range(1, ROWS):
            apart |= rows[t * ROWS + i] - first - i
        for k in range(count):
            if apart == 0:
                if far:
                    fetch(x, first + places[k] + 2 * LINE, TO_READ)
                if places[k] <= beyond:
                    move(8, x, first + places[k], target, to + k * ROWS)
                else:
                    move(4, x, first + places[k], target, to + k * ROWS)
                    move(2, x, first + places[k] + 4, target, to + k * ROWS + 4)
            else:
                for i in range(ROWS):
                    target[to + k * ROWS + i] = x[rows[t * ROWS + i] + places[k]]


@inner
def clear_beyond(panel: Any, rows: int, columns: int, channels: int, beyond: int) -> None:
    """Zeros in the columns of a panel from its last channel on, up to the one that is beyond: nobody takes what they
    make, but it is made, and where memory happens to hold subnormal numbers a multiplication takes a hundred cycles."""
    if channels < beyond:
        for row in range(rows):
            for m in range(channels, beyond):
                panel[row * columns + m] = 0
