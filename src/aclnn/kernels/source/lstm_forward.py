"""LSTM forward: the gates of one step, and the loop over all steps. The formulas are those of ops/lstm_forward.py.

Positions where a sequence takes no part are written as zeros; its state stays what it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from aclnn.kernels.native.abi import (
    FEATURES,
    FIRST_ARGUMENT,
    FORWARD_MOVING,
    GATES_BLOCK,
    H_AFTER,
    H_BEFORE,
    MOVING,
    PARALLEL,
    PRODUCT,
    PRODUCT_A,
    PRODUCT_BLOCK,
    PRODUCT_ROWS,
    PRODUCT_STEPS,
    PRODUCT_THREADS,
    REVERSE,
    STATE,
    STATE_SIZE,
    STEP,
    STEP_A,
    STEP_BLOCK,
    STEP_ROWS,
    STEP_THREADS,
    STEPS,
)
from aclnn.kernels.source.arithmetic import fma, lie_apart, sigmoid, tanh, use_widest_vectors
from aclnn.kernels.source.calls import launch, pointer
from aclnn.kernels.source.convolve import width_of
from aclnn.kernels.source.elements import read, write
from aclnn.kernels.source.indirect import COLUMNS

ZERO = np.float32(0)


def gates(
    lo: int,
    hi: int,
    sums: Any,
    together: int,
    first: int,
    last: int,
    unit: int,
    units: int,
    summed: int,
    a: Any,
    out: Any,
    i: Any,
    g: Any,
    f: Any,
    o: Any,
    h_kept: Any,
    c_kept: Any,
    tanhc: Any,
    h_before: Any,
    h: Any,
    c: Any,
    bias: Any,
    steps: Any,
    hidden: int,
    keeps: int,
) -> None:
    """One step of some units of the sequences first … last − 1, if they are `summed`; else they take no part, and keep
    their state: h and c become those of this step, and go to `out` and to the lists. All is one item.

    `steps` has the distances from one sequence to the next, of out and of the seven lists, which are there if `keeps`.
    """
    use_widest_vectors()
    lie_apart()
    for b in range(first, last):
        for channel in range(0, units, COLUMNS):
            width, k = width_of(units - channel), unit + channel
            count, apart = min(width, units - channel), together * width
            made, at_a = 4 * channel * together + (b - first) * width, 4 * b * hidden + k
            row, to = b * hidden + k, b * steps[0] + k
            at = (b * steps[1] + k, b * steps[2] + k, b * steps[3] + k, b * steps[4] + k, b * steps[5] + k)
            at_c, at_t = b * steps[6] + k, b * steps[7] + k
            if not summed:
                _clear(out, to, count)
                for j in range(count):
                    write(h, row + j, read(h_before, row + j))
                if keeps:
                    _clear(i, at[0], count)
                    _clear(g, at[1], count)
                    _clear(f, at[2], count)
                    _clear(o, at[3], count)
                    _clear(h_kept, at[4], count)
                    _clear(c_kept, at_c, count)
                    _clear(tanhc, at_t, count)
            elif keeps:
                for j in range(count):
                    of_i, of_f, of_g, of_o, c_new, t = _states(sums, made, apart, a, at_a, bias, k, c, row, hidden, j)
                    write(i, at[0] + j, of_i)
                    write(g, at[1] + j, of_g)
                    write(f, at[2] + j, of_f)
                    write(o, at[3] + j, of_o)
                    write(h_kept, at[4] + j, of_o * t)
                    write(c_kept, at_c + j, c_new)
                    write(tanhc, at_t + j, t)
                    write(c, row + j, c_new)
                    write(h, row + j, of_o * t)
                    write(out, to + j, of_o * t)
            else:
                for j in range(count):
                    _, _, _, of_o, c_new, t = _states(sums, made, apart, a, at_a, bias, k, c, row, hidden, j)
                    write(c, row + j, c_new)
                    write(h, row + j, of_o * t)
                    write(out, to + j, of_o * t)


@register_jitable(forceinline=True)
def _clear(target: Any, to: int, count: int) -> None:
    for j in range(count):
        write(target, to + j, ZERO)


@register_jitable(forceinline=True)
def _states(
    sums: Any, made: int, apart: int, a: Any, at: int, bias: Any, unit: int, c: Any, row: int, hidden: int, j: int
) -> Any:
    k = unit + j
    i = sigmoid(read(sums, made + j) + read(a, at + j) + read(bias, k))
    f = sigmoid(read(sums, made + apart + j) + read(a, at + hidden + j) + read(bias, hidden + k))
    g = tanh(read(sums, made + 2 * apart + j) + read(a, at + 2 * hidden + j) + read(bias, 2 * hidden + k))
    o = sigmoid(read(sums, made + 3 * apart + j) + read(a, at + 3 * hidden + j) + read(bias, 3 * hidden + k))
    c_new = fma(f, read(c, row + j), i * g)
    return i, f, g, o, c_new, tanh(c_new)


def total(lo: int, hi: int, one: Any, other: Any, per_one: int, per_other: int, given: int, target: Any) -> None:
    """The sum of two vectors that are `given`, or zeros."""
    if given:
        for j in range(lo, hi):
            target[j] = read(one, j * per_one) + read(other, j * per_other)
    else:
        for j in range(lo, hi):
            target[j] = ZERO


def time_loop(lo: int, hi: int, table: Any, counts: Any, bases: Any, strides: Any) -> None:
    """All steps, along the direction: the products of some steps' input, which then are still near, and for each of
    them that of the state and the gates. bases and strides, in bytes, of what moves: first the products, then the
    rest. bases ends with where the input begins."""
    step, block, steps = pointer(table[STEP_BLOCK]), pointer(table[GATES_BLOCK]), table[STEPS]
    product, some = pointer(table[PRODUCT_BLOCK]), table[PRODUCT_STEPS]
    per_step = product[FIRST_ARGUMENT + PRODUCT_ROWS] // some
    before, after = table[STATE], table[STATE] + table[STATE_SIZE]
    for q in range(steps):
        t = steps - 1 - q if table[REVERSE] else q
        count = min(some, steps - q // some * some)
        if q % some == 0:
            earliest = t - count + 1 if table[REVERSE] else t
            product[FIRST_ARGUMENT + PRODUCT_A] = bases[FORWARD_MOVING] + earliest * table[FEATURES]
            product[FIRST_ARGUMENT + PRODUCT_ROWS] = count * per_step
            launch(table[PARALLEL], table[PRODUCT], table[PRODUCT_BLOCK], table[PRODUCT_THREADS])
        for m in range(FORWARD_MOVING):
            block[FIRST_ARGUMENT + MOVING + m] = bases[m] + t * strides[m]
        nth = count - 1 - q % some if table[REVERSE] else q % some
        block[FIRST_ARGUMENT + MOVING] = bases[0] + nth * strides[0]
        block[FIRST_ARGUMENT + H_BEFORE], block[FIRST_ARGUMENT + H_AFTER] = before, after
        step[FIRST_ARGUMENT + STEP_A], step[FIRST_ARGUMENT + STEP_ROWS] = before, counts[t]
        launch(table[PARALLEL], table[STEP], table[STEP_BLOCK], table[STEP_THREADS])
        before, after = after, before
    product[FIRST_ARGUMENT + PRODUCT_ROWS] = some * per_step
