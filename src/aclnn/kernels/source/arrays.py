"""Whether arrays of Python look as others did: see native/array_guards.py."""

from __future__ import annotations

from typing import Any

from aclnn.kernels.native.abi import ALIGNED_OR_WRITABLE, ANSWER, ARRAY_TYPE, ARRAYS, LOOK, LOOKS, NO, WRITTEN, YES
from aclnn.kernels.native.memory import DATA
from aclnn.kernels.source.calls import pointer
from aclnn.kernels.source.helpers import inner

# An array object in numpy's binary interface, by word: its type, then the fields.
_PLACE = DATA // 8
_TYPE, _RANK, _SHAPE, _STRIDES, _DTYPE, _FLAGS = _PLACE - 1, _PLACE + 1, _PLACE + 2, _PLACE + 3, _PLACE + 5, _PLACE + 6
_HALF = 0xFFFFFFFF  # of a word, where a field is an int


def alike(lo: int, hi: int, objects: Any, table: Any) -> None:
    """Items are objects. Says in the table whether they are all arrays that look as it has them, and whether the last
    ones, which are written, lie apart from all others."""
    table[ANSWER] = table[NO]
    if hi != table[ARRAYS]:
        return
    sizes = LOOKS + LOOK * hi
    for i in range(hi):
        array, look = pointer(objects[i]), LOOKS + LOOK * i
        if array[_TYPE] != table[ARRAY_TYPE] or array[_DTYPE] != table[look]:
            return
        if array[_FLAGS] & ALIGNED_OR_WRITABLE != table[look + 1] or array[_RANK] & _HALF != table[look + 2]:
            return
        shape, strides, rank = pointer(array[_SHAPE]), pointer(array[_STRIDES]), table[look + 2]
        for d in range(rank):
            if shape[d] != table[sizes + d] or strides[d] != table[sizes + rank + d]:
                return
        sizes += 2 * rank
    for i in range(hi - table[WRITTEN], hi):
        for other in range(i):
            if meet(objects, table, i, other):
                return
    table[ANSWER] = table[YES]


@inner
def meet(objects: Any, table: Any, one: int, other: int) -> bool:
    """Whether the memory from the first to the last element of an array meets that of another."""
    here, there = pointer(objects[one])[_PLACE], pointer(objects[other])[_PLACE]
    look, looks = LOOKS + LOOK * one + 3, LOOKS + LOOK * other + 3
    apart: bool = here + table[look + 1] <= there + table[looks] or there + table[looks + 1] <= here + table[look]
    return not apart
