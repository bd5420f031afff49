"""LSTM forward: the gates of one step, and the walk over all steps. The formulas are those of ops/lstm_forward.py.

Positions where a sequence takes no part are written as zeros; its state stays what it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from aclnn.kernels.nopython.agreed import (
    FIRST_ARGUMENT,
    FORWARD_ACTIVE,
    FORWARD_MOVING,
    GATES,
    GATES_BLOCK,
    GATES_THREADS,
    PARALLEL,
    REVERSE,
    STEPS,
)
from aclnn.kernels.nopython.arithmetic import fma, sigmoid, tanh, use_widest_vectors
from aclnn.kernels.nopython.calls import launch, pointer
from aclnn.kernels.nopython.half import read, write
from aclnn.kernels.nopython.lstm import multiply

ZERO = np.float32(0)


def gates(
    lo: int,
    hi: int,
    a: Any,
    out: Any,
    i: Any,
    g: Any,
    f: Any,
    o: Any,
    h_kept: Any,
    c_kept: Any,
    tanhc: Any,
    bias: Any,
    h: Any,
    c: Any,
    steps: Any,
    hidden: int,
    active: int,
    keeps: int,
) -> None:
    """One step of the sequences lo … hi − 1: h and c become those of this step, and go to `out` and to the lists.

    `steps` has the distances from one sequence to the next, of out and of the seven lists, which are there if `keeps`.
    """
    use_widest_vectors()
    for b in range(lo, hi):
        row, to = b * hidden, b * steps[0]
        at = (b * steps[1], b * steps[2], b * steps[3], b * steps[4], b * steps[5], b * steps[6], b * steps[7])
        lists = (i, g, f, o, h_kept, c_kept, tanhc)
        if b >= active:
            _clear(out, to, hidden)
            if keeps:
                _clear(i, at[0], hidden)
                _clear(g, at[1], hidden)
                _clear(f, at[2], hidden)
                _clear(o, at[3], hidden)
                _clear(h_kept, at[4], hidden)
                _clear(c_kept, at[5], hidden)
                _clear(tanhc, at[6], hidden)
        elif keeps:
            _cell(a, 4 * row, bias, h, c, row, out, to, lists, at, hidden)
        else:
            _cell_alone(a, 4 * row, bias, h, c, row, out, to, hidden)


@register_jitable(forceinline=True)
def _clear(target: Any, to: int, count: int) -> None:
    for j in range(count):
        write(target, to + j, ZERO)


@register_jitable(forceinline=True)
def _cell(
    a: Any, at_a: int, bias: Any, h: Any, c: Any, row: int, out: Any, to: int, lists: Any, at: Any, hidden: int
) -> None:
    for j in range(hidden):
        i, f, g, o, c_new, tanhc = _states(a, at_a, bias, c, row, hidden, j)
        write(lists[0], at[0] + j, i)
        write(lists[1], at[1] + j, g)
        write(lists[2], at[2] + j, f)
        write(lists[3], at[3] + j, o)
        write(lists[4], at[4] + j, o * tanhc)
        write(lists[5], at[5] + j, c_new)
        write(lists[6], at[6] + j, tanhc)
        write(c, row + j, c_new)
        write(h, row + j, o * tanhc)
        write(out, to + j, o * tanhc)


@register_jitable(forceinline=True)
def _cell_alone(a: Any, at_a: int, bias: Any, h: Any, c: Any, row: int, out: Any, to: int, hidden: int) -> None:
    for j in range(hidden):
        _, _, _, o, c_new, tanhc = _states(a, at_a, bias, c, row, hidden, j)
        write(c, row + j, c_new)
        write(h, row + j, o * tanhc)
        write(out, to + j, o * tanhc)


@register_jitable(forceinline=True)
def _states(a: Any, at: int, bias: Any, c: Any, row: int, hidden: int, j: int) -> Any:
    i = sigmoid(read(a, at + j) + read(bias, j))
    f = sigmoid(read(a, at + hidden + j) + read(bias, hidden + j))
    g = tanh(read(a, at + 2 * hidden + j) + read(bias, 2 * hidden + j))
    o = sigmoid(read(a, at + 3 * hidden + j) + read(bias, 3 * hidden + j))
    c_new = fma(f, read(c, row + j), i * g)
    return i, f, g, o, c_new, tanh(c_new)


def walk(lo: int, hi: int, table: Any, counts: Any, bases: Any, strides: Any) -> None:
    """All steps, along the direction: a += h·w_hhᵀ, then the gates. bases and strides, in bytes, of what moves."""
    block, steps = pointer(table[GATES_BLOCK]), table[STEPS]
    for q in range(steps):
        t = steps - 1 - q if table[REVERSE] else q
        for m in range(FORWARD_MOVING):
            block[FIRST_ARGUMENT + m] = bases[m] + t * strides[m]
        block[FIRST_ARGUMENT + FORWARD_ACTIVE] = counts[t]
        multiply(table, 1, block[FIRST_ARGUMENT])
        launch(table[PARALLEL], table[GATES], table[GATES_BLOCK], table[GATES_THREADS])
