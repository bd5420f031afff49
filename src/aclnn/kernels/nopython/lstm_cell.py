"""The LSTM cell in one pass, backward and forward. The formulas are those of ops/lstm_cell.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from aclnn.kernels.nopython.agreed import ADDITIONS, CELL_TILE
from aclnn.kernels.nopython.arithmetic import fma, sigmoid, tanh, use_widest_vectors
from aclnn.kernels.nopython.half import floats, read, write
from aclnn.kernels.nopython.sums import clear, counter_add, counter_total
from aclnn.kernels.nopython.tiles import shifted

ONE, ZERO = np.float32(1), np.float32(0)
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
    steps: Any,
    batch: int,
    hidden: int,
    has_h: int,
    has_c: int,
    has_bias: int,
    counters: Any,
    levels: int,
) -> None:
    """Items are columns of the whole batch; steps[8]: from cell to cell in each tensor, and of the bias.

    The bias adds up the unrounded gradients, in runs as nopython.sums does; `counters` has 4·levels elements for every
    column, levels is 0 if there is but one run. Tiles are wide: fifteen streams that change pages every few lines
    defeat prefetching (64 columns took 1.4 times as long as 512).
    """
    use_widest_vectors()
    sums = floats(SUMS)
    for first in range(lo, hi, CELL_TILE):
        count = min(CELL_TILE, hi - first)
        counter = shifted(counters, 4 * levels * first)
        clear(sums, SUMS)
        for b in range(batch):
            at = (b * steps[0] + first, b * steps[1] + first, b * steps[2] + first, b * steps[3] + first)
            stored, to, to_c = b * steps[4] + first, b * steps[5] + first, b * steps[6] + first
            for j in range(count):
                dh = read(grad_h, at[0] + j) if has_h else ZERO
                dc = read(grad_c, at[1] + j) if has_c else ZERO
                i, f = read(storage, stored + j), read(storage, stored + hidden + j)
                g, o = read(storage, stored + 2 * hidden + j), read(storage, stored + 3 * hidden + j)
                t = tanh(read(cy, at[3] + j))
                dc = fma(dh, o * ((ONE - t) * (ONE + t)), dc)
                of_i, of_f = dc * (g * i * (ONE - i)), dc * (read(cx, at[2] + j) * f * (ONE - f))
                of_g, of_o = dc * (i * ((ONE - g) * (ONE + g))), dh * (t * o * (ONE - o))
                write(grad_gates, to + j, of_i)
                write(grad_gates, to + hidden + j, of_f)
                write(grad_gates, to + 2 * hidden + j, of_g)
                write(grad_gates, to + 3 * hidden + j, of_o)
                write(grad_cx, to_c + j, dc * f)
                sums[j] += of_i
                sums[CELL_TILE + j] += of_f
                sums[2 * CELL_TILE + j] += of_g
                sums[3 * CELL_TILE + j] += of_o
            if levels and (b + 1) % ADDITIONS == 0:
                add_run(counter, b // ADDITIONS, sums, levels, count)
                clear(sums, SUMS)
        if levels:
            add_run(counter, batch // ADDITIONS, sums, levels, count)
            add_up(counter, batch // ADDITIONS + 1, sums, levels, count)
        if has_bias:
            for gate in range(4):
                for j in range(count):
                    write(grad_bias, (gate * hidden + first + j) * steps[7], sums[gate * CELL_TILE + j])


@register_jitable
def add_run(counter: Any, runs: int, sums: Any, levels: int, count: int) -> None:
    """One more run for the counters of the four gates."""
    for gate in range(4):
        counter_add(shifted(counter, gate * levels * count), runs, shifted(sums, gate * CELL_TILE), count)


@register_jitable
def add_up(counter: Any, runs: int, sums: Any, levels: int, count: int) -> None:
    """What the counters of the four gates have together."""
    for gate in range(4):
        counter_total(shifted(counter, gate * levels * count), runs, shifted(sums, gate * CELL_TILE), count)


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
    steps: Any,
    hidden: int,
    has_bias: int,
) -> None:
    """Items are cells of the batch; steps[8]: from cell to cell in each tensor. A bias is dense."""
    use_widest_vectors()
    for b in range(lo, hi):
        at, at_hidden, at_c = b * steps[0], b * steps[1], b * steps[2]
        to_h, to_c, to = b * steps[5], b * steps[6], b * steps[7]
        for j in range(hidden):
            a_i = read(gates, at + j) + read(hidden_gates, at_hidden + j)
            a_f = read(gates, at + hidden + j) + read(hidden_gates, at_hidden + hidden + j)
            a_g = read(gates, at + 2 * hidden + j) + read(hidden_gates, at_hidden + 2 * hidden + j)
            a_o = read(gates, at + 3 * hidden + j) + read(hidden_gates, at_hidden + 3 * hidden + j)
            if has_bias:
                a_i += read(bias, j) + read(hidden_bias, j)
                a_f += read(bias, hidden + j) + read(hidden_bias, hidden + j)
                a_g += read(bias, 2 * hidden + j) + read(hidden_bias, 2 * hidden + j)
                a_o += read(bias, 3 * hidden + j) + read(hidden_bias, 3 * hidden + j)
            i, f, g, o = sigmoid(a_i), sigmoid(a_f), tanh(a_g), sigmoid(a_o)
            c = fma(f, read(cx, at_c + j), i * g)
            write(storage, to + j, i)
            write(storage, to + hidden + j, f)
            write(storage, to + 2 * hidden + j, g)
            write(storage, to + 3 * hidden + j, o)
            write(cy, to_c + j, c)
            write(hy, to_h + j, o * tanh(c))
