"""Going over views of any strides: a view is rows, and a row is a first element and a step."""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable


@register_jitable
def row_start(row: int, rank: int, sizes: Any, steps: Any, first: int) -> int:
    """Where a row begins: sizes[rank] of the whole, the row itself last, and steps[first …] of the view in question."""
    start = 0
    for d in range(rank - 2, -1, -1):
        start += (row % sizes[d]) * steps[first + d]
        row //= sizes[d]
    return start
