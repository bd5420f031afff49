"""gradBias: sums of a strided tensor over everything but one axis, on compiled loops."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import NamedTuple

from aclnn.base.tensor import TensorSpec
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import COLUMN_TILE
from aclnn.kernels.native.entry import Entry
from aclnn.kernels.native.launch_sequence import Aim, Step
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.shared.strides import merged

PER_THREAD = 32768  # elements that pay for waking a thread


class Sums(NamedTuple):
    """How the sums are taken. `work` gives each executor its own launch."""

    entry: Entry
    items: int
    arguments: list[int]
    threads: int
    kept: object

    def work(self) -> Work:
        return Work(self.entry, self.items, 1, self.arguments, self.threads, self.kept)

    def step(self, source: str, target: str) -> Step:
        return Step(self.work, (Aim(0, source), Aim(2, target)))


def plan(source: TensorSpec, axis: int, target: TensorSpec, threads: int) -> Sums:
    """Sums over all axes but one. Arguments 0 and 2 of the work are the addresses. Raises NoNativeCodeError."""
    others = [d for d in range(source.rank) if d != axis]
    sizes, (strides,) = merged([source.shape[d] for d in others], [source.strides[d] for d in others])
    count, item_stride = source.shape[axis], source.strides[axis]
    team = worth(source.size, PER_THREAD, threads)
    kinds = jit.POINTER[source.dtype] + "i" + jit.POINTER[target.dtype] + "iiII"
    if item_stride == 1 and strides[-1] != 1:  # the items lie side by side
        rows, together = math.prod(sizes), _rows_together(count, strides)
        if together > 1:
            sizes, strides = [-(-rows // together)], [together * count]
        table = _table([*sizes, rows], [*strides, together])
        arguments = [0, count, 0, target.strides[0], len(sizes) + 1, *_places(table, len(sizes) + 1)]
        items = -(-count // COLUMN_TILE)
        return Sums(jit.load("sums.down_columns", kinds), items, arguments, min(team, items), table)
    table = _table(sizes, strides)
    arguments = [0, item_stride, 0, target.strides[0], len(sizes), *_places(table, len(sizes))]
    return Sums(jit.load("sums.along_rows", kinds), count, arguments, min(team, count), table)


def _rows_together(columns: int, strides: Sequence[int]) -> int:
    """How many rows fill a tile of columns: one, unless they follow each other without gaps.

    >>> _rows_together(2, [2]), _rows_together(48, [48]), _rows_together(2, [3])
    (64, 2, 1)
    """
    together = 1
    while strides == [columns] and 2 * together * columns <= COLUMN_TILE:
        together *= 2
    return together


def _table(sizes: Sequence[int], strides: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * (2 * len(sizes)))(*sizes, *strides)


def _places(table: ctypes.Array[ctypes.c_int64], rank: int) -> tuple[int, int]:
    where = ctypes.addressof(table)
    return where, where + 8 * rank
