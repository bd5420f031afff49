"""Rows of memory as rows of floats, or of pairs: copied by vectors, with zeros at their ends."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import LANES
from aclnn.kernels.source.pairs import NO_PARTNER, bring, bring_one, bring_second, bring_words
from aclnn.kernels.source.vectors import LINE, TO_READ, fetch

HALF = LANES // 2


@inner
def fetch_row(source: Any, start: int, count: int) -> None:
    for i in range(0, count, LINE):
        fetch(source, start + i, TO_READ)
    fetch(source, start + count - 1, TO_READ)  # which may lie in a line more


@inner
def pair_row(source: Any, start: int, step: int, target: Any, to: int, count: int) -> None:
    """Elements that lie `step` apart as pairs of neighbours, of which the last one may have no partner."""
    pairs, copied = count // 2, 0
    if step == 1 and pairs >= LANES:
        for i in range(0, pairs - LANES, LANES):
            bring_words(LANES, source, start + 2 * i, target, to + i)
        bring_words(LANES, source, start + 2 * (pairs - LANES), target, to + pairs - LANES)
        copied = pairs
    elif step == 1 and pairs >= 4:
        for i in range(0, pairs - 4, 4):
            bring_words(4, source, start + 2 * i, target, to + i)
        bring_words(4, source, start + 2 * (pairs - 4), target, to + pairs - 4)
        copied = pairs
    for i in range(copied, pairs):
        bring_one(source, start + 2 * i * step, step, target, to + i)
    if count % 2:
        bring_one(source, start + 2 * pairs * step, NO_PARTNER, target, to + pairs)


@inner
def copy_vectors(source: Any, start: int, partner: int, target: Any, to: int, count: int) -> None:
    """Elements side by side, at least LANES: by whole vectors, of which the last may overlap."""
    for i in range(0, count - LANES, LANES):
        bring(LANES, source, start + i, partner, target, to + i)
    bring(LANES, source, start + count - LANES, partner, target, to + count - LANES)


@inner
def copy_row(source: Any, start: int, step: int, partner: int, target: Any, to: int, count: int) -> None:
    """Elements that lie `step` apart, side by side: neighbours by vectors, of which the last may overlap. With each
    comes its `partner`, if there is one and they are pairs."""
    if step == 1 and count >= LANES:
        copy_vectors(source, start, partner, target, to, count)
    elif step == 1 and count >= HALF:
        bring(HALF, source, start, partner, target, to)
        bring(HALF, source, start + count - HALF, partner, target, to + count - HALF)
    elif step == 1 and count >= 4:
        bring(4, source, start, partner, target, to)
        bring(4, source, start + count - 4, partner, target, to + count - 4)
    else:
        for i in range(count):
            bring_one(source, start + i * step, partner, target, to + i)


@inner
def bring_seconds(source: Any, start: int, step: int, target: Any, to: int, count: int) -> None:
    """Elements that lie `step` apart as the second halves of pairs side by side, whose first ones are 0."""
    for i in range(count):
        bring_second(source, start + i * step, target, to + i)


@inner
def clear(target: Any, to: int, count: int) -> None:
    for i in range(count):
        target[to + i] = 0


@inner
def clear_edges(target: Any, row: int, first: int, end: int, length: int) -> None:
    """Zeros before `first` and from `end` on. What is between will be written over, so that a vector at either end does
    for narrow edges: a loop over a few elements would become a call of memset."""
    edge = max(first, length - end)
    if length >= LANES and edge <= LANES:
        put_zeros(LANES, target, row)
        put_zeros(LANES, target, row + length - LANES)
    elif length >= 4 and edge <= 4:
        put_zeros(4, target, row)
        put_zeros(4, target, row + length - 4)
    else:
        for i in range(first):
            target[row + i] = 0
        for i in range(end, length):
            target[row + i] = 0


@intrinsic(prefer_literal=True)
def put_zeros(context: Any, count: Any, target: Any, at: Any) -> Any:
    """A vector of so many zeros, a constant."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.VectorType(ir.IntType(32), count.literal_value)
        place = builder.bitcast(builder.gep(args[1], [args[2]]), kind.as_pointer())
        builder.store(ir.Constant(kind, [0] * count.literal_value), place, align=4)
        return ctx.get_dummy_value()

    return types.void(count, target, types.int64), code
