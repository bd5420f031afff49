"""The LSTM cell in one pass, backward and forward. The formulas are those of ops/lstm_cell.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import ADDITIONS, CELL_TILE, COLUMN_TILE
from aclnn.kernels.source.arithmetic import fma, sigmoid, tanh, use_widest_vectors
from aclnn.kernels.source.calls import shifted
from aclnn.kernels.source.elements import floats, read, tile_of, write
from aclnn.kernels.source.helpers import inlined
from aclnn.kernels.source.strides import laid
from aclnn.kernels.source.sums import COLUMN_LEVELS, clear, counter_add, counter_total

ONE = np.float32(1)
SUMS = 4 * CELL_TILE  # of the four gates, side by side


def backward(
    lo: int,
    hi: int,
    grad_h: Any,
    grad_c: Any,
    cx: Any,
    cy: Any,
    storage: Any,
    grad_gates: Any,
    grad_cx: Any,
    grad_bias: Any,
    strides: Any,
    batch: int,
    hidden: int,
    has_h: int,
    has_c: int,
    has_bias: int,
    partials: Any,
    parts: int,
) -> None:
    """Items are tiles of ADDITIONS cells and CELL_TILE columns; strides[13]: from cell to cell in each tensor, and of
    the bias, then from column to column of what is read. What does not lie side by side, say a gradient that is one
    number, is copied; of one that is not there zeros are read: a condition would be reads under a mask, which AVX2 has
    not for 16 bits.

    The bias adds up the unrounded gradients, as many in a row as source.sums does: a row of `partials` for every part
    of the batch, or the bias itself if there is but one. Tiles are wide: fifteen streams that change pages every few
    lines defeat prefetching (64 columns took 1.4 times as long as 512). Threads take cells, not columns, where there
    are many: two that wrote into the same rows took twice as long as one.
    """
    use_widest_vectors()
    sums = floats(SUMS)
    tiles, nothing = (tile_of(cx), tile_of(cx), tile_of(cx), tile_of(cx)), (tile_of(cx), 0)
    for j in range(CELL_TILE):
        nothing[0][j] = 0  # as it is: what `read` reads, `write` must not write
    across = -(-hidden // CELL_TILE)
    for item in range(lo, hi):
        part, first = item // across, item % across * CELL_TILE
        count = min(CELL_TILE, hidden - first)
        clear(sums, SUMS)
        for b in range(part * ADDITIONS, min(batch, (part + 1) * ADDITIONS)):
            of_h, of_c = nothing, nothing
            if has_h:
                of_h = laid(tiles[0], 0, grad_h, b * strides[0] + first * strides[8], strides[8], count)
            if has_c:
                of_c = laid(tiles[0], CELL_TILE, grad_c, b * strides[1] + first * strides[9], strides[9], count)
            of_cx = laid(tiles[1], 0, cx, b * strides[2] + first * strides[10], strides[10], count)
            of_cy = laid(tiles[1], CELL_TILE, cy, b * strides[3] + first * strides[11], strides[11], count)
            stored, gate = b * strides[4] + first * strides[12], hidden * strides[12]
            of_i = laid(tiles[2], 0, storage, stored, strides[12], count)
            of_f = laid(tiles[2], CELL_TILE, storage, stored + gate, strides[12], count)
            of_g = laid(tiles[3], 0, storage, stored + 2 * gate, strides[12], count)
            of_o = laid(tiles[3], CELL_TILE, storage, stored + 3 * gate, strides[12], count)
            to, to_c = b * strides[5] + first, b * strides[6] + first
            for j in range(count):
                dh, dc = read(of_h[0], of_h[1] + j), read(of_c[0], of_c[1] + j)
                i, f = read(of_i[0], of_i[1] + j), read(of_f[0], of_f[1] + j)
                g, o = read(of_g[0], of_g[1] + j), read(of_o[0], of_o[1] + j)
                t = tanh(read(of_cy[0], of_cy[1] + j))
                dc = fma(dh, o * ((ONE - t) * (ONE + t)), dc)
                di, df = dc * (g * i * (ONE - i)), dc * (read(of_cx[0], of_cx[1] + j) * f * (ONE - f))
                dg, do = dc * (i * ((ONE - g) * (ONE + g))), dh * (t * o * (ONE - o))
                write(grad_gates, to + j, di)
                write(grad_gates, to + hidden + j, df)
                write(grad_gates, to + 2 * hidden + j, dg)
                write(grad_gates, to + 3 * hidden + j, do)
                write(grad_cx, to_c + j, dc * f)
                sums[j] += di
                sums[CELL_TILE + j] += df
                sums[2 * CELL_TILE + j] += dg
                sums[3 * CELL_TILE + j] += do
        if has_bias:
            for gate in range(4):
                to = gate * hidden + first
                for j in range(count):
                    if parts > 1:
                        partials[part * 4 * hidden + to + j] = sums[gate * CELL_TILE + j]
                    else:
                        write(grad_bias, (to + j) * strides[7], sums[gate * CELL_TILE + j])


def join(lo: int, hi: int, grad_bias: Any, partials: Any, columns: int, parts: int, stride: int) -> None:
    """The bias: the sums of all parts, in pairs as source.sums adds them up. Items are COLUMN_TILE columns."""
    use_widest_vectors()
    counter, total = floats(COLUMN_LEVELS), floats(COLUMN_TILE)
    for item in range(lo, hi):
        first = item * COLUMN_TILE
        count = min(COLUMN_TILE, columns - first)
        for part in range(parts):
            counter_add(counter, part, shifted(partials, part * columns + first), count)
        counter_total(counter, parts, total, count)
        for j in range(count):
            write(grad_bias, (first + j) * stride, total[j])


def forward(
    lo: int,
    hi: int,
    gates: Any,
    hidden_gates: Any,
    cx: Any,
    bias: Any,
    hidden_bias: Any,
    hy: Any,
    cy: Any,
    storage: Any,
    strides: Any,
    hidden: int,
    has_bias: int,
) -> None:
    """Items are cells of the batch; strides[8]: from cell to cell in each tensor. A bias is dense."""
    use_widest_vectors()
    for b in range(lo, hi):
        at, at_hidden, at_c = b * strides[0], b * strides[1], b * strides[2]
        to_h, to_c, to = b * strides[5], b * strides[6], b * strides[7]
        # A loop of its own for each: a condition inside would be reads under a mask, which AVX2 has not for 16 bits.
        if has_bias:
            for j in range(hidden):
                a_i, a_f, a_g, a_o = _added(gates, at + j, hidden_gates, at_hidden + j, hidden)
                b_i, b_f, b_g, b_o = _added(bias, j, hidden_bias, j, hidden)
                made = _cell(a_i + b_i, a_f + b_f, a_g + b_g, a_o + b_o, read(cx, at_c + j))
                _put(made, storage, to + j, hidden, cy, to_c + j, hy, to_h + j)
        else:
            for j in range(hidden):
                a_i, a_f, a_g, a_o = _added(gates, at + j, hidden_gates, at_hidden + j, hidden)
                made = _cell(a_i, a_f, a_g, a_o, read(cx, at_c + j))
                _put(made, storage, to + j, hidden, cy, to_c + j, hy, to_h + j)


@inlined
def _added(one: Any, at: int, other: Any, there: int, hidden: int) -> Any:
    """The sums of one column of two tensors, of each gate."""
    return (
        read(one, at) + read(other, there),
        read(one, at + hidden) + read(other, there + hidden),
        read(one, at + 2 * hidden) + read(other, there + 2 * hidden),
        read(one, at + 3 * hidden) + read(other, there + 3 * hidden),
    )


@inlined
def _cell(a_i: Any, a_f: Any, a_g: Any, a_o: Any, cx: Any) -> Any:
    i, f, g, o = sigmoid(a_i), sigmoid(a_f), tanh(a_g), sigmoid(a_o)
    c = fma(f, cx, i * g)
    return i, f, g, o, c, o * tanh(c)


@inlined
def _put(made: Any, storage: Any, to: int, hidden: int, cy: Any, to_c: int, hy: Any, to_h: int) -> None:
    write(storage, to, made[0])
    write(storage, to + hidden, made[1])
    write(storage, to + 2 * hidden, made[2])
    write(storage, to + 3 * hidden, made[3])
    write(cy, to_c, made[4])
    write(hy, to_h, made[5])
