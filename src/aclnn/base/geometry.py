"""Where the elements of strided views lie: reach, self-overlap, overlap of two views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MOST_ELEMENTS_TO_MARK = 2**22  # above this an irregular output view is refused instead of being checked one by one
_OVERLAP_WORK = 10_000  # steps np.shares_memory may take before we call it an overlap


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The smallest and the largest element index of a non-empty view, relative to its first element.

    >>> reach((2, 3), (-3, 1))
    (-3, 2)
    """
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends)


def meets_itself(shape: Sequence[int], strides: Sequence[int]) -> bool | None:
    """Whether two indexes of the view are the same element; None when that is too much work to find out.

    Strides sorted by size, each beyond the reach of the smaller ones, leave no room for a meeting. Other views
    (a sliding window, say) are enumerated.
    """
    if 0 in shape:
        return False
    axes = sorted((abs(stride), size) for size, stride in zip(shape, strides, strict=True) if size > 1)
    covered = 0
    for stride, size in axes:
        if stride == 0:
            return True
        if stride <= covered:
            return _enumerate_meets(axes)
        covered += stride * (size - 1)
    return False


def _enumerate_meets(axes: Sequence[tuple[int, int]]) -> bool | None:
    if math.prod(size for _, size in axes) > MOST_ELEMENTS_TO_MARK:
        return None
    indexes = np.zeros(1, np.int64)
    for stride, size in axes:
        indexes = (indexes[:, None] + stride * np.arange(size)).ravel()
    indexes.sort()  # np.unique would import numpy.ma, half of which a process forked meanwhile would have for ever
    return bool((indexes[1:] == indexes[:-1]).any())


def overlap(a: Array, b: Array) -> bool:
    """Whether two views share an element; a question that is too hard to decide counts as yes."""
    try:
        return bool(np.shares_memory(a, b, max_work=_OVERLAP_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def same_view(a: Array, b: Array) -> bool:
    """Whether every index means the same element in both."""
    if a.shape != b.shape or a.dtype.itemsize != b.dtype.itemsize:
        return False
    strides_agree = all(n == 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True))
    return strides_agree and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
