"""Copies that change the dtype, the strides, or the digits of float32 numbers (cubeMathType)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.source.arithmetic import bits_of, float_of, use_widest_vectors
from aclnn.kernels.source.elements import narrowed, read, widened, write
from aclnn.kernels.source.strides import row_start


def dense(lo: int, hi: int, source: Any, target: Any) -> None:
    use_widest_vectors()
    for i in range(lo, hi):
        write(target, i, read(source, i))


def strided(lo: int, hi: int, source: Any, target: Any, rank: int, sizes: Any, strides: Any) -> None:
    """Items are rows; strides of the target, then of the source."""
    use_widest_vectors()
    last = rank - 1
    to_step, from_step = strides[last], strides[rank + last]
    for row in range(lo, hi):
        to, start = row_start(row, rank, sizes, strides, 0), row_start(row, rank, sizes, strides, rank)
        for i in range(sizes[last]):
            write(target, to + i * to_step, read(source, start + i * from_step))


def to_hf32(lo: int, hi: int, source: Any, target: Any) -> None:
    """11 explicit mantissa bits, to nearest, ties away from zero; NaN and Inf stay."""
    use_widest_vectors()
    for i in range(lo, hi):
        value = read(source, i)
        rounded = float_of(np.int32((bits_of(value) + np.int32(1 << 11)) & np.int32(-4096)))
        write(target, i, rounded if abs(value) < np.float32(np.inf) else value)


def to_fp16(lo: int, hi: int, source: Any, target: Any) -> None:
    """Rounded to float16 and widened again."""
    use_widest_vectors()
    for i in range(lo, hi):
        write(target, i, through_half(read(source, i)))


@intrinsic
def through_half(context: Any, value: Any) -> Any:
    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return widened(b, narrowed(b, args[0], types.int16), types.int16)

    return types.float32(types.float32), code


def find_not_finite_bfloat16(lo: int, hi: int, source: Any, found: Any) -> None:
    """found[0] = 1 if an element is NaN or Inf. Threads may write at once: they write the same. To look at bfloat16 as
    it is, is three times as fast as to widen it."""
    use_widest_vectors()
    worst = np.uint16(0)
    for i in range(lo, hi):
        worst = max(worst, np.uint16(source[i] & np.uint16(0x7FFF)))
    if worst >= np.uint16(0x7F80):
        found[0] = 1
