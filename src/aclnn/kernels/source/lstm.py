"""LSTM: the loop over all steps, of both operators, and sequences laid out as the rows of matrices.

What a round of the loop works on moves by a table: see native.abi. Positions where a sequence takes no part are never
read; as rows of a matrix they are zeros, so that they add nothing to sums over the whole sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import (
    ACTIVE,
    AHEAD,
    AHEAD_BLOCK,
    AHEAD_ENTRY,
    AHEAD_THREADS,
    CLOCKS,
    DONE,
    DOWN,
    EVEN,
    FIRST_ARGUMENT,
    GATES_BLOCK,
    GATES_WORDS,
    INPUT,
    INPUT_STRIDE,
    KNOWN,
    LAG,
    LOTS_APART,
    MATMUL_A,
    MATMUL_ROWS,
    MOVING,
    MOVING_COUNT,
    MOVING_WORDS,
    NEXT,
    NOW,
    NTH,
    ODD,
    PARALLEL,
    SEQUENCES,
    SOME,
    SOME_BLOCK,
    SOME_THREADS,
    STEP,
    STEP_A,
    STEP_BLOCK,
    STEP_FIRST,
    STEP_GATES,
    STEP_INPUT,
    STEP_LAST,
    STEP_PER_LOT,
    STEP_ROWS,
    STEP_SCRATCH,
    STEP_THREADS,
    STEP_WORDS,
    STEPS,
)
from aclnn.kernels.source.arithmetic import use_widest_vectors
from aclnn.kernels.source.calls import address_of, launch, pointer
from aclnn.kernels.source.elements import read, write
from aclnn.kernels.source.helpers import inlined, inner
from aclnn.kernels.source.indirect import words

ZERO = np.float32(0)


def time_loop(lo: int, hi: int, table: Any) -> None:
    """All rounds: the matmul with the input of some steps, if there is one, which then is still near, and these steps.
    Backwards a round takes what the round before it made, and after the last step only that is left."""
    some, rounds = pointer(table[SOME_BLOCK]), table[STEPS] + table[LAG]
    for start in range(0, rounds, table[AHEAD]):
        stop = min(rounds, start + table[AHEAD])
        if table[AHEAD_ENTRY] != 0:
            matmul, earliest = pointer(table[AHEAD_BLOCK]), step_of(table, stop - 1) if table[DOWN] else start
            matmul[FIRST_ARGUMENT + MATMUL_A] = table[INPUT] + earliest * table[INPUT_STRIDE]
            matmul[FIRST_ARGUMENT + MATMUL_ROWS] = (stop - start) * table[SEQUENCES]
            launch(table[PARALLEL], table[AHEAD_ENTRY], table[AHEAD_BLOCK], table[AHEAD_THREADS])
        some[FIRST_ARGUMENT + 3], some[FIRST_ARGUMENT + 4] = start, stop
        launch(table[PARALLEL], table[SOME], table[SOME_BLOCK], table[SOME_THREADS])


@inner
def step_of(table: Any, q: int) -> int:
    """The step of a round."""
    step: int = table[STEPS] - 1 - q if table[DOWN] else q
    return step


def steps(lo: int, hi: int, table: Any, counts: Any, moving: Any, start: int, stop: int) -> None:
    """The rounds start … stop − 1 of some sequences. Items are lots of sequences; `counts` says how many take part in
    each step, `moving` what moves."""
    step, gates, clocks = words(STEP_WORDS), words(GATES_WORDS), words(CLOCKS)
    copy_words(step, table[STEP_BLOCK], STEP_WORDS)
    copy_words(gates, table[GATES_BLOCK], GATES_WORDS)
    step[FIRST_ARGUMENT + STEP_GATES] = address_of(gates)
    scratch, size = step[FIRST_ARGUMENT + STEP_SCRATCH], 4 * step[FIRST_ARGUMENT + STEP_PER_LOT]
    for lot in range(lo, hi):
        first = table[SEQUENCES] * lot // table[LOTS_APART]
        last = table[SEQUENCES] * (lot + 1) // table[LOTS_APART]
        step[FIRST_ARGUMENT + STEP_FIRST], step[FIRST_ARGUMENT + STEP_LAST] = first, last
        step[FIRST_ARGUMENT + STEP_SCRATCH] = scratch + lot * size
        for q in range(start, stop):
            set_clocks(table, q, start, stop, clocks)
            step[FIRST_ARGUMENT + STEP_A] = moving[0] + clocks[moving[2]] * moving[1]
            step[FIRST_ARGUMENT + STEP_INPUT] = table[INPUT] + clocks[NOW] * table[INPUT_STRIDE]
            for m in range(1, table[MOVING_COUNT]):
                one = m * MOVING_WORDS
                gates[FIRST_ARGUMENT + MOVING + m - 1] = moving[one] + clocks[moving[one + 2]] * moving[one + 1]
            gates[FIRST_ARGUMENT + ACTIVE] = counts[clocks[NOW]] if q < table[STEPS] else -1
            gates[FIRST_ARGUMENT + KNOWN] = counts[clocks[NEXT]] if q + 1 < table[STEPS] else 0
            rows = counts[step_of(table, q - table[LAG])] if q >= table[LAG] else 0
            step[FIRST_ARGUMENT + STEP_ROWS] = min(last, max(first, rows))
            launch(table[PARALLEL], table[STEP], address_of(step), table[STEP_THREADS])


@inner
def set_clocks(table: Any, q: int, start: int, stop: int, clocks: Any) -> None:
    clocks[NOW], clocks[DONE], clocks[NEXT] = step_of(table, q), step_of(table, q - 1), step_of(table, q + 1)
    clocks[NTH] = stop - 1 - q if table[DOWN] else q - start
    clocks[EVEN], clocks[ODD] = q % 2, 1 - q % 2


@inner
def copy_words(target: Any, source: int, count: int) -> None:
    near = pointer(source)
    for m in range(count):
        target[m] = near[m]


def total(lo: int, hi: int, one: Any, other: Any, per_one: int, per_other: int, given: int, target: Any) -> None:
    """The sum of two vectors that are `given`, or zeros."""
    if given:
        for j in range(lo, hi):
            target[j] = read(one, j * per_one) + read(other, j * per_other)
    else:
        for j in range(lo, hi):
            target[j] = ZERO


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


@inlined
def _copy(target: Any, to: int, to_step: int, source: Any, start: int, step: int, count: int) -> None:
    if step == 1 and to_step == 1:
        for j in range(count):
            write(target, to + j, read(source, start + j))
    else:
        for j in range(count):
            write(target, to + j * to_step, read(source, start + j * step))
