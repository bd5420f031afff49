"""What a convolution has, seen from its weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.dtype import BFLOAT16
from aclnn.base.geometry import Array
from aclnn.base.taps import Window
from aclnn.base.tensor import TensorSpec
from aclnn.kernels.convolution.boxes import Pass, Taps, passes
from aclnn.kernels.native.abi import NO_TAP


class Shape(NamedTuple):
    """What a convolution has, seen from its weight: (narrow channels, wide channels of a group, *taps)."""

    wide: TensorSpec
    narrow: TensorSpec
    weight: TensorSpec
    window: Window
    groups: int
    in_pairs: bool = False  # whether products of bfloat16 are made in pairs: see source/pairs.py

    def in_one_row(self) -> Shape:
        """The same with one axis, if a position meets nothing but itself and rows follow each other: a picture is then
        brought by one row, and not by many short ones (pairs, 14x14: 0.6 to 0.8 of the time)."""
        pictures, axes = (self.wide, self.narrow), self.weight.rank - 2
        one_tap = self.weight.shape[2:] == self.window.stride == (1,) * axes and not any(self.window.padding_before)
        same = self.wide.shape[2:] == self.narrow.shape[2:]
        if axes == 1 or not one_tap or not same or not all(map(_is_row, pictures)):
            return self
        wide, narrow = (
            t._replace(shape=(*t.shape[:2], math.prod(t.shape[2:])), strides=(*t.strides[:2], t.strides[-1]))
            for t in pictures
        )
        weight = self.weight._replace(shape=self.weight.shape[:3], strides=self.weight.strides[:3])
        return self._replace(wide=wide, narrow=narrow, weight=weight, window=Window((1,), (1,), (0,), (0,)))

    def source_and_result(self, onto_wide: bool) -> tuple[TensorSpec, TensorSpec]:
        return (self.narrow, self.wide) if onto_wide else (self.wide, self.narrow)

    def pairs(self, one: TensorSpec, other: TensorSpec) -> bool:
        """Whether products of two of the tensors are made in pairs."""
        return self.in_pairs and one.dtype is other.dtype is BFLOAT16

    def passes(self, onto_wide: bool, blocks: Sequence[int] | None = None) -> list[Pass]:
        """The passes to one side, whose positions are joined to blocks of this size along the axes."""
        w, wide, narrow = self.window, self.wide.shape[2:], self.narrow.shape[2:]
        along = list(map(Taps, self.weight.shape[2:], w.stride, w.padding_before, w.dilation, wide, narrow))
        axes = zip(along, blocks or [1] * len(along), strict=True)
        per_axis = [list(taps.onto_wide(block) if onto_wide else taps.onto_narrow(block)) for taps, block in axes]
        return passes(per_axis, wide if onto_wide else narrow)


def _is_row(picture: TensorSpec) -> bool:
    """Whether all positions of a picture lie evenly, one behind the other."""
    axes = zip(picture.strides[2:], picture.strides[3:], picture.shape[3:], strict=False)
    return all(outer == inner * size for outer, inner, size in axes)


def tap_places(spec: TensorSpec, over: Pass) -> Array:
    """Where the taps of a pass lie in a weight, [position of a block][shift]; NO_TAP where there is none."""
    strides = (0,) * (5 - spec.rank) + spec.strides[2:]

    def place(tap: tuple[int | None, ...]) -> int:
        return NO_TAP if None in tap else sum(q * stride for q, stride in zip(tap, strides, strict=True) if q)

    return np.array([[place(tap) for tap in of_position] for of_position in over.taps], np.int64)
