"""Copies between tensors of any dtype and strides, on compiled loops."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from aclnn.base.dtype import FLOAT32
from aclnn.base.rounding import KEEP, USE_FP16
from aclnn.base.tensor import TensorSpec
from aclnn.kernels.native import jit
from aclnn.kernels.native.entry import Entry
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.shared.strides import merged, rows_of

PER_THREAD = 32768  # elements that pay for waking a thread


class Copy(NamedTuple):
    """One planned copy. `work` gives each executor its own launch; its arguments 0 and 1 are source and target."""

    entry: Entry
    items: int
    chunk: int
    arguments: list[int]
    threads: int
    kept: object = None

    def work(self) -> Work:
        return Work(self.entry, self.items, self.chunk, self.arguments, self.threads, self.kept)


def plan(source: TensorSpec, target: TensorSpec, threads: int) -> Copy:
    """A copy that changes dtype and strides. Raises NoNativeCodeError."""
    kinds = jit.letters(source.dtype, target.dtype)
    team = worth(source.size, PER_THREAD, threads)
    sizes, strides = merged(source.shape, target.strides, source.strides)
    if strides == [[1], [1]]:
        return Copy(jit.load("convert.dense", kinds), source.size, 1024, [0, 0], team)
    rank = len(sizes)
    table = (ctypes.c_int64 * (3 * rank))(*sizes, *strides[0], *strides[1])
    where = ctypes.addressof(table)
    entry = jit.load("convert.strided", kinds + "iII")
    return Copy(entry, rows_of(sizes), 1, [0, 0, rank, where, where + 8 * rank], team, table)


def plan_rounding(cube_math_type: int, dense: TensorSpec, threads: int) -> Copy:
    """A copy of dense float32 numbers with the digits that cubeMathType leaves them."""
    assert dense.dtype is FLOAT32
    assert cube_math_type != KEEP
    name = "to_fp16" if cube_math_type == USE_FP16 else "to_hf32"
    entry = jit.load(f"convert.{name}", "FF")
    return Copy(entry, dense.size, 1024, [0, 0], worth(dense.size, PER_THREAD, threads))
