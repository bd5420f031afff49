"""LSTM backward: the gates of one step, the loop over all steps, and sequences laid out as the rows of matrices.

The formulas are those of ops/lstm.py. Positions where a sequence takes no part are never read; their rows are zeros, so
that they add nothing to the products over the whole sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from aclnn.kernels.native.abi import (
    ACTIVE,
    BACKWARD_MOVING,
    C_BEFORE,
    FIRST_ARGUMENT,
    GATES_BLOCK,
    KINDS,
    KNOWN,
    MOVING,
    PARALLEL,
    REVERSE,
    STEP,
    STEP_A,
    STEP_BLOCK,
    STEP_ROWS,
    STEP_THREADS,
    STEPS,
)
from aclnn.kernels.source.arithmetic import fma, lie_apart, use_widest_vectors
from aclnn.kernels.source.calls import launch, pointer
from aclnn.kernels.source.convolve import width_of
from aclnn.kernels.source.elements import read, write
from aclnn.kernels.source.indirect import COLUMNS

ONE, ZERO = np.float32(1), np.float32(0)


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
    i: Any,
    f: Any,
    g: Any,
    o: Any,
    tanhc: Any,
    c_before: Any,
    dy: Any,
    of_i: Any,
    of_f: Any,
    of_g: Any,
    of_o: Any,
    steps: Any,
    c_first: Any,
    dh: Any,
    dc: Any,
    hidden: int,
    active: int,
    known: int,
    pitch: int,
) -> None:
    """One step of some units of the sequences first … last − 1: the gradients of their gates, and dc becomes that of
    the step before. All is one item.

    `summed`: the step done before made their dh, panels of `together` rows; else it is the given one. Sequences below
    `active` take part; below `known` the cell state started from c_before, else from c_first. A sequence that takes no
    part any more leaves its dh. `steps` has the distances from one sequence to the next, of the seven and of c_first;
    `pitch` is that of the gradients. At the end of the loop `active` is below 0: what was summed is left, no more.
    """
    use_widest_vectors()
    lie_apart()
    for b in range(first, last):
        for channel in range(0, units, COLUMNS):
            width, k = width_of(units - channel), unit + channel
            count, made = min(width, units - channel), channel * together + (b - first) * width
            row, to = b * hidden + k, b * pitch + k
            if b < active:
                incoming, at_in = (sums, made) if summed else (dh, row)
                start, at_c = (c_before, b * steps[5] + k) if b < known else (c_first, b * steps[7] + k)
                at = (b * steps[0] + k, b * steps[1] + k, b * steps[2] + k, b * steps[3] + k)
                at_t, at_y = b * steps[4] + k, b * steps[6] + k
                for j in range(count):
                    i_, f_, g_ = read(i, at[0] + j), read(f, at[1] + j), read(g, at[2] + j)
                    o_, t = read(o, at[3] + j), read(tanhc, at_t + j)
                    dh_ = read(dy, at_y + j) + read(incoming, at_in + j)
                    dct = fma(dh_, o_ * ((ONE - t) * (ONE + t)), read(dc, row + j))
                    write(of_i, to + j, dct * (g_ * i_ * (ONE - i_)))
                    write(of_f, to + j, dct * (read(start, at_c + j) * f_ * (ONE - f_)))
                    write(of_g, to + j, dct * (i_ * ((ONE - g_) * (ONE + g_))))
                    write(of_o, to + j, dh_ * (t * o_ * (ONE - o_)))
                    write(dc, row + j, dct * f_)
            else:
                if active >= 0:
                    for j in range(count):
                        write(of_i, to + j, ZERO)
                        write(of_f, to + j, ZERO)
                        write(of_g, to + j, ZERO)
                        write(of_o, to + j, ZERO)
                if summed:
                    for j in range(count):
                        write(dh, row + j, read(sums, made + j))


def time_loop(lo: int, hi: int, table: Any, counts: Any, bases: Any, strides: Any) -> None:
    """All steps, against the direction: with the gradients of the step done before, that of the state, then the
    gates. After the last step only the first. bases and strides, in bytes, of what moves."""
    step, block, steps = pointer(table[STEP_BLOCK]), pointer(table[GATES_BLOCK]), table[STEPS]
    step[FIRST_ARGUMENT + STEP_ROWS] = 0
    for q in range(steps + 1):
        t = q if table[REVERSE] else steps - 1 - q
        before = t + 1 if table[REVERSE] else t - 1
        there = q < steps
        for m in range(BACKWARD_MOVING):
            block[FIRST_ARGUMENT + MOVING + m] = bases[m] + (before if m == C_BEFORE else t) * strides[m]
        block[FIRST_ARGUMENT + ACTIVE] = counts[t] if there else -1
        block[FIRST_ARGUMENT + KNOWN] = counts[before] if there and 0 <= before < steps else 0
        launch(table[PARALLEL], table[STEP], table[STEP_BLOCK], table[STEP_THREADS])
        step[FIRST_ARGUMENT + STEP_A] = block[FIRST_ARGUMENT + MOVING + BACKWARD_MOVING - KINDS]
        step[FIRST_ARGUMENT + STEP_ROWS] = counts[t] if there else 0


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
