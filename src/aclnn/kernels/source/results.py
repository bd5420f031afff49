"""Writing rows of sums where they belong, as any dtype, with a bias or without."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from aclnn.kernels.source.calls import address_of, begin_block, call_entry, shifted
from aclnn.kernels.source.elements import finish_streams, floats, narrowed, write
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import COLUMNS, LANES, vector_at, words
from aclnn.kernels.source.packing import gap_between, stream_lines, turn_rows
from aclnn.kernels.source.vectors import LINE

ROWS_AT_ONCE = 64  # of blocks


def put(
    lo: int,
    hi: int,
    sums: Any,
    out: Any,
    places: Any,
    columns: int,
    count: int,
    channels: int,
    step: int,
    rows: Any,
    bias: Any,
) -> None:
    """Writes `count` rows of sums, [row][columns], where they belong: channels of a row are `step` apart. They come in
    order, or as the list `rows` has them, and with a bias, if these are anywhere. All is one item."""
    put_as(1, sums, out, places, columns, count, channels, step, rows, bias)


def put_apart(
    lo: int,
    hi: int,
    sums: Any,
    out: Any,
    places: Any,
    columns: int,
    count: int,
    channels: int,
    step: int,
    rows: Any,
    bias: Any,
) -> None:
    """The same where all that lies between two rows one element apart belongs to the result, too, and nobody writes it
    meanwhile: it is read and written as it was."""
    put_as(2, sums, out, places, columns, count, channels, step, rows, bias)


@inner
def put_as(
    most: int,
    sums: Any,
    out: Any,
    places: Any,
    columns: int,
    count: int,
    channels: int,
    step: int,
    rows: Any,
    bias: Any,
) -> None:
    """The same, by vectors where rows lie so far apart at most, 1 or 2."""
    listed, added, whole = address_of(rows) != 0, or_zeros(bias, floats(COLUMNS)), channels // LANES * LANES
    if step == 1:
        for i in range(count):
            start = columns * (rows[i] if listed else i)
            for m in range(0, whole, LANES):
                move_sum(sums, start + m, added, m, out, places[i] + m)
            for m in range(whole, channels):
                write(out, places[i] + m, sums[start + m] + added[m])
        return
    i, starts = 0, words(LANES)
    while i < count:
        find_starts(LANES, i, rows, listed, columns, count, starts)
        together, done = 1, 0
        gap = gap_between(places, i) if i + LANES <= count else 0
        if gap == 1 or (gap == 2 and most == 2):
            together, done = LANES, whole
            put_turned(gap, sums, starts, added, done, out, places[i], step)
        put_some(sums, starts, added, done, channels, out, shifted(places, i), together, step)
        i += together


def put_far(
    lo: int,
    hi: int,
    sums: Any,
    out: Any,
    places: Any,
    columns: int,
    count: int,
    channels: int,
    step: int,
    rows: Any,
    bias: Any,
) -> None:
    """The same of float32, past the caches where positions that lie side by side fill whole lines in every channel. Up
    to the first of these lines, vectors overlap."""
    listed, added, whole = address_of(rows) != 0, or_zeros(bias, floats(COLUMNS)), channels // LANES * LANES
    i, starts = 0, words(LINE)
    while i < count:
        find_starts(LINE, i, rows, listed, columns, count, starts)
        together, done = 1, 0
        if i + LANES <= count and gap_between(places, i) == 1:
            together, done = LANES, whole
            begun = (address_of(out) + 4 * places[i]) % (4 * LINE)  # bytes of a line
            fills = i + LINE <= count and step % LINE == 0 and lie_side_by_side(places, i)
            if fills and begun == 0:
                together = LINE
                for m in range(0, whole, LANES):
                    stream_lines(sums, starts, m, added, out, places[i] + m * step, step)
            else:
                put_turned(1, sums, starts, added, done, out, places[i], step)
                if fills:
                    together = max(1, min(LANES, LINE - begun // 4))
        put_some(sums, starts, added, done, channels, out, shifted(places, i), together, step)
        i += together
    finish_streams()


@inner
def find_starts(most: int, first: int, rows: Any, listed: bool, columns: int, count: int, starts: Any) -> None:
    """Where rows of sums begin, `most` of them from the first one on; behind the last it is repeated."""
    for i in range(most):
        row = min(first + i, count - 1)
        starts[i] = columns * (rows[row] if listed else row)


@inner
def lie_side_by_side(places: Any, first: int) -> bool:
    """Whether the elements of a line do, from the first place on."""
    apart = 0
    for i in range(first, first + LINE - 1):
        apart |= places[i + 1] - places[i] - 1
    return apart == 0


@inner
def put_some(
    sums: Any, starts: Any, added: Any, channel: int, channels: int, out: Any, places: Any, count: int, step: int
) -> None:
    """The channels from one to below the other of some rows, one by one."""
    for row in range(count):
        for m in range(channel, channels):
            write(out, places[row] + m * step, sums[starts[row] + m] + added[m])


@inner
def put_turned(gap: int, sums: Any, starts: Any, added: Any, channels: int, out: Any, to: int, step: int) -> None:
    """Whole vectors of channels of LANES rows, which lie one or two elements apart."""
    for m in range(0, channels, LANES):
        if gap == 1:
            turn_rows(1, sums, starts, m, added, out, to + m * step, step)
        else:
            turn_rows(2, sums, starts, m, added, out, to + m * step, step)


def put_blocks(
    lo: int,
    hi: int,
    sums: Any,
    out: Any,
    places: Any,
    columns: int,
    count: int,
    made: int,
    at: Any,
    rows: Any,
    bias: Any,
) -> None:
    """The same of rows in order, where the columns of a row lie at `at`: a column of some rows after the other, for
    channels may lie as far apart as the sets of a cache (a third of the time for 24 of 4096 positions)."""
    added = or_zeros(bias, floats(COLUMNS))
    for first in range(0, count, ROWS_AT_ONCE):
        for m in range(made):
            for i in range(first, min(count, first + ROWS_AT_ONCE)):
                write(out, places[i] + at[m], sums[i * columns + m] + added[m])


@inner
def or_zeros(bias: Any, memory: Any) -> Any:
    """The bias, or as many zeros if there is none."""
    if address_of(bias) != 0:
        return bias
    for m in range(COLUMNS):
        memory[m] = 0
    return memory


@inner
def put_rows(entry: int, sums: Any, columns: int, out: int, places: Any, count: int, channels: int, step: int) -> None:
    """The same of rows in order, by the entry for the elements at `out`."""
    put_listed(entry, sums, columns, out, places, count, channels, step, 0, 0)


@inner
def put_listed(
    entry: int,
    sums: Any,
    columns: int,
    out: int,
    places: Any,
    count: int,
    channels: int,
    step: int,
    rows: int,
    bias: int,
) -> None:
    """The same of rows as the list at an address has them, with the bias at one."""
    block = words(13)
    begin_block(block, 1)
    block[4], block[5], block[6] = address_of(sums), out, address_of(places)
    block[7], block[8], block[9], block[10], block[11], block[12] = columns, count, channels, step, rows, bias
    call_entry(entry, address_of(block))


@intrinsic
def move_sum(context: Any, one: Any, start: Any, other: Any, there: Any, target: Any, to: Any) -> Any:
    """LANES sums of float32."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        one_, start_, other_, there_, target_, to_ = args
        left, right = (builder.load(vector_at(builder, *at), align=4) for at in ((one_, start_), (other_, there_)))
        made = narrowed(builder, builder.fadd(left, right), target.dtype, LANES)
        builder.store(made, vector_at(builder, target_, to_), align=2)
        return ctx.get_dummy_value()

    return types.void(one, types.int64, other, types.int64, target, types.int64), code
