"""Sums whose error hardly grows with their length."""

from __future__ import annotations

import numpy as np

from aclnn.base.geometry import Array


def sum_rows(rows: Array) -> Array:
    """The sum over the first axis, in the dtype of the rows, folded in half again and again.

    Each element is added up in about log2(K) steps. numpy adds the rows of an array one after the other instead: the
    sum of 200,000 float32 rows of 0.1 is then 0.2 % off.

    >>> sum_rows(np.arange(5.0))
    array(10.)
    """
    if len(rows) == 0:
        return np.zeros(rows.shape[1:], rows.dtype)
    while len(rows) > 1:
        half = len(rows) // 2
        folded = rows[:half] + rows[half : 2 * half]
        if len(rows) % 2:
            folded[0] += rows[-1]
        rows = folded
    return np.array(rows[0])
