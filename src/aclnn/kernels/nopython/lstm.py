"""LSTM backward: the gates of one step, the walk over all steps, and sequences laid out as the rows of matrices.

The formulas are those of ops/lstm.py. Positions where a sequence takes no part are never read; their rows are zeros, so
that they add nothing to the products over the whole sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from aclnn.kernels.nopython.agreed import (
    ACTIVE,
    ARGUMENT_COUNT,
    ARGUMENTS,
    C_BEFORE,
    EXECUTE,
    FIRST_ARGUMENT,
    GATES,
    GATES_BLOCK,
    GATES_THREADS,
    GRAD,
    KNOWN,
    MADE,
    MADE_BEFORE,
    MOVING,
    MOVING_MEMORY,
    PARALLEL,
    PRIMITIVE,
    PRODUCT,
    PRODUCT_BLOCK,
    PRODUCT_THREADS,
    REVERSE,
    SET_HANDLE,
    STATUS,
    STEPS,
    STREAM,
)
from aclnn.kernels.nopython.arithmetic import fma, use_widest_vectors
from aclnn.kernels.nopython.calls import execute, launch, pointer, set_data_handle
from aclnn.kernels.nopython.half import read, write

ONE = np.float32(1)


def gates(
    lo: int,
    hi: int,
    i: Any,
    f: Any,
    g: Any,
    o: Any,
    tanhc: Any,
    c_before: Any,
    dy: Any,
    steps: Any,
    c_first: Any,
    dh_made: Any,
    dh: Any,
    dc: Any,
    grad: Any,
    hidden: int,
    active: int,
    made: int,
    known: int,
    pitch: int,
) -> None:
    """One step of the sequences lo … hi − 1: grad[b] = [di df dg do], and dc becomes that of the step before.

    `steps` has the distances from one sequence to the next, of the seven and of c_first; `pitch` is that of grad.
    Sequences below `active` take part; below `made` dh was made by the step walked before, else it is the given one;
    below `known` the cell state started from c_before, else from c_first.
    """
    use_widest_vectors()
    for b in range(lo, hi):
        row, to = b * hidden, b * pitch
        if b >= active:
            for j in range(4 * hidden):
                write(grad, to + j, np.float32(0))
            if b < made:
                for j in range(hidden):
                    write(dh, row + j, read(dh_made, row + j))
            continue
        at = (b * steps[0], b * steps[1], b * steps[2], b * steps[3], b * steps[4], b * steps[6])
        saved = (i, f, g, o, tanhc, dy)
        incoming = dh_made if b < made else dh
        if b < known:
            _cell(saved, at, c_before, b * steps[5], incoming, dc, row, grad, to, hidden)
        else:
            _cell(saved, at, c_first, b * steps[7], incoming, dc, row, grad, to, hidden)


@register_jitable(forceinline=True)
def _cell(
    saved: Any, at: Any, c_prev: Any, at_c: int, incoming: Any, dc: Any, row: int, grad: Any, to: int, hidden: int
) -> None:
    for j in range(hidden):
        i, f, g = read(saved[0], at[0] + j), read(saved[1], at[1] + j), read(saved[2], at[2] + j)
        o, tanhc = read(saved[3], at[3] + j), read(saved[4], at[4] + j)
        dh = read(saved[5], at[5] + j) + read(incoming, row + j)
        dct = fma(dh, o * ((ONE - tanhc) * (ONE + tanhc)), read(dc, row + j))
        write(grad, to + j, dct * (g * i * (ONE - i)))
        write(grad, to + hidden + j, dct * (read(c_prev, at_c + j) * f * (ONE - f)))
        write(grad, to + 2 * hidden + j, dct * (i * ((ONE - g) * (ONE + g))))
        write(grad, to + 3 * hidden + j, dh * (tanhc * o * (ONE - o)))
        write(dc, row + j, dct * f)


def walk(lo: int, hi: int, table: Any, counts: Any, bases: Any, strides: Any) -> None:
    """All steps, against the direction. bases and strides, in bytes: the moving arguments of `gates`, then grad."""
    block, steps, made = pointer(table[GATES_BLOCK]), table[STEPS], 0
    for q in range(steps):
        t = q if table[REVERSE] else steps - 1 - q
        before = t + 1 if table[REVERSE] else t - 1
        for m in range(MOVING):
            block[FIRST_ARGUMENT + m] = bases[m] + (before if m == C_BEFORE else t) * strides[m]
        grad = bases[MOVING] + t * strides[MOVING]
        block[FIRST_ARGUMENT + GRAD] = grad
        block[FIRST_ARGUMENT + ACTIVE] = counts[t]
        block[FIRST_ARGUMENT + MADE_BEFORE] = made
        block[FIRST_ARGUMENT + KNOWN] = counts[before] if 0 <= before < steps else 0
        launch(table[PARALLEL], table[GATES], table[GATES_BLOCK], table[GATES_THREADS])
        multiply(table, 0, grad)
        made = counts[t]
    table[MADE] = made


@register_jitable
def multiply(table: Any, argument: int, place: int) -> None:
    """The product of a step; `place` is where the matrix that moves lies now, an argument of a product of our own."""
    if table[PRIMITIVE]:
        status = set_data_handle(table[SET_HANDLE], table[MOVING_MEMORY], place)
        count, arguments = table[ARGUMENT_COUNT], table[ARGUMENTS]
        table[STATUS] |= status | execute(table[EXECUTE], table[PRIMITIVE], table[STREAM], count, arguments)
    else:
        pointer(table[PRODUCT_BLOCK])[FIRST_ARGUMENT + argument] = place
        launch(table[PARALLEL], table[PRODUCT], table[PRODUCT_BLOCK], table[PRODUCT_THREADS])


def gather(
    lo: int,
    hi: int,
    source: Any,
    per_step: int,
    per_sequence: int,
    per_feature: int,
    first: Any,
    first_per_sequence: int,
    first_per_feature: int,
    shift: int,
    target: Any,
    width: int,
    features: int,
    batch: int,
    steps: int,
    counts: Any,
) -> None:
    """Rows of float32, one per step and sequence: source[t + shift], or `first` where that step does not exist."""
    use_widest_vectors()
    for row in range(lo, hi):
        t, b, to = row // batch, row % batch, row * width
        at = t + shift
        if b >= counts[t]:
            for j in range(features):
                write(target, to + j, np.float32(0))
        elif 0 <= at < steps and b < counts[at]:
            _copy(target, to, 1, source, at * per_step + b * per_sequence, per_feature, features)
        else:
            _copy(target, to, 1, first, b * first_per_sequence, first_per_feature, features)


def scatter(
    lo: int,
    hi: int,
    source: Any,
    features: int,
    target: Any,
    per_step: int,
    per_sequence: int,
    per_feature: int,
    batch: int,
    counts: Any,
) -> None:
    """The rows back to where their step and sequence lie; zeros where a sequence takes no part."""
    use_widest_vectors()
    for row in range(lo, hi):
        t, b = row // batch, row % batch
        to = t * per_step + b * per_sequence
        if b < counts[t]:
            _copy(target, to, per_feature, source, row * features, 1, features)
        else:
            for j in range(features):
                write(target, to + j * per_feature, np.float32(0))


@register_jitable(forceinline=True)
def _copy(target: Any, to: int, to_step: int, source: Any, start: int, step: int, count: int) -> None:
    if step == 1 and to_step == 1:
        for j in range(count):
            write(target, to + j, read(source, start + j))
    else:
        for j in range(count):
            write(target, to + j * to_step, read(source, start + j * step))
