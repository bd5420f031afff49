"""The plane through the worst element, coarse enough to be a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.judge.blocks import Miss, TargetPair
from aclnn.golden.judge.sound import Box

CELLS = 64  # along each side of the picture
_WINDOW = 2048  # elements along each side of the plane that is looked at


@dataclass(frozen=True)
class Slice:
    """The plane through the worst element: the error of each cell in units of the allowed one."""

    axes: tuple[int, int]
    through: tuple[int, ...]  # the worst element
    window: tuple[slice, slice]  # the part of the plane that is shown
    cells: Array  # the largest ratio in each cell


def worst_slice(pair: TargetPair, worst: Miss | None) -> Slice | None:
    """The two longest axes through the worst element; nothing for arrays of fewer than two axes."""
    shape = pair.target.shape
    long = [axis for axis in np.argsort([-n for n in shape], kind="stable") if shape[axis] > 1][:2]
    if worst is None or len(long) < 2:
        return None
    rows, columns = sorted(int(axis) for axis in long)
    box: Box = tuple(
        _window(i, size) if axis in (rows, columns) else slice(i, i + 1)
        for axis, (i, size) in enumerate(zip(worst.index, shape, strict=True))
    )
    with np.errstate(all="ignore"):
        plane = pair.block(box).ratio()
    plane = plane.reshape(plane.shape[rows], plane.shape[columns])
    return Slice((rows, columns), worst.index, (box[rows], box[columns]), _pooled(plane))


def _window(index: int, size: int) -> slice:
    first = min(max(index - _WINDOW // 2, 0), max(size - _WINDOW, 0))
    return slice(first, min(first + _WINDOW, size))


def _pooled(plane: Array) -> Array:
    """The largest value of each cell."""
    for axis in (0, 1):
        starts = np.unique(np.linspace(0, plane.shape[axis], CELLS + 1)[:-1].astype(int))
        plane = np.maximum.reduceat(plane, starts, axis=axis)
    return plane
