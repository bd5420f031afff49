"""Strides of several views of one shape: as few axes as they take, and blocks of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from aclnn.kernels.native.abi import TILE


def merged(shape: Sequence[int], *strides: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """The same elements in as few axes as they take: sizes, and the strides of every view, in elements.

    The first view, the output, decides the order: its smallest stride comes last. An axis joins the one inside it
    where every view steps evenly from one to the other.

    >>> merged((2, 3, 4), (12, 4, 1), (12, 4, 1))
    ([24], [[1], [1]])
    >>> merged((2, 3), (3, 1), (0, 1))
    ([2, 3], [[3, 1], [0, 1]])
    """
    columns = [(n, *along) for n, *along in zip(shape, *strides, strict=True) if n != 1]
    columns.sort(key=lambda column: -abs(column[1]))
    kept: list[tuple[int, ...]] = []
    for column in reversed(columns):
        if kept and all(outer == inner * kept[-1][0] for outer, inner in zip(column[1:], kept[-1][1:], strict=True)):
            kept[-1] = (kept[-1][0] * column[0], *kept[-1][1:])
        else:
            kept.append(column)
    kept = kept[::-1] or [(1, *(1 for _ in strides))]
    return [column[0] for column in kept], [[column[i] for column in kept] for i in range(1, len(strides) + 1)]


def rows_of(sizes: Sequence[int]) -> int:
    """How many rows there are when the last axis is one row."""
    return math.prod(sizes[:-1])


_SHORT_ROW = 256  # elements: shorter rows are done several at a time
_SQUARE = 32  # the side of a block whose rows are another view's columns


class Blocks(NamedTuple):
    """How source.strides goes over views by blocks of the last two axes."""

    sizes: list[int]  # of the axes, then the most rows and columns of a block
    strides: list[list[int]]  # of every view
    items: int


def blocks(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> Blocks:
    """Blocks of merged views: whole rows where all views like the last axis best, else squares of the last axis and the
    one that another view likes best, so that lines of memory are used up while they are near.

    >>> blocks([5000], [[1], [0]])
    Blocks(sizes=[1, 5000, 1, 1024], strides=[[0, 1], [0, 0]], items=5)
    >>> blocks([64, 100], [[100, 1], [1, 64]])
    Blocks(sizes=[64, 100, 32, 32], strides=[[100, 1], [1, 64]], items=8)
    """
    turned = {axis for view in strides if abs(view[-1]) > 1 and (axis := _finest(view)) != len(sizes) - 1}
    second = min(turned, default=len(sizes) - 2)
    order = [*(d for d in range(len(sizes) - 1) if d != second), second, len(sizes) - 1]
    axes = [(sizes[d], *(view[d] for view in strides)) if d >= 0 else (1, *(0 for _ in strides)) for d in order]
    rows, columns = axes[-2][0], axes[-1][0]
    across = min(columns, _SQUARE if turned else TILE)
    down = 1 if across >= _SHORT_ROW else min(rows, TILE // across)
    across = min(columns, TILE // down)
    items = math.prod(axis[0] for axis in axes[:-2]) * -(-rows // down) * -(-columns // across)
    columns_of = [[axis[i] for axis in axes] for i in range(1 + len(strides))]
    return Blocks([*columns_of[0], down, across], columns_of[1:], items)


def _finest(view: Sequence[int]) -> int:
    """The axis along which a view has its smallest step."""
    return min((d for d, step in enumerate(view) if step), key=lambda d: abs(view[d]))
