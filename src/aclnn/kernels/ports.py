"""How the tensors of a call get into a program of oneDNN primitives, and out of it."""

from __future__ import annotations

from typing import NamedTuple

from aclnn.base.dtype import DType
from aclnn.base.geometry import contiguous_strides
from aclnn.base.rounding import KEEP
from aclnn.base.tensor import TensorSpec, dense
from aclnn.kernels import convert
from aclnn.kernels.convert import Copy
from aclnn.kernels.strides import merged


class Port(NamedTuple):
    """One tensor: used where it lies, or through a dense copy of another dtype, stride or precision."""

    spec: TensorSpec
    strides: tuple[int, ...]  # of what the program meets
    copies: tuple[Copy, ...]  # an input's come before the program runs, an output's after; none: used where it lies


def entrance(spec: TensorSpec, dtype: DType, rounding: int, threads: int) -> Port:
    """A port for an input."""
    if spec.dtype is dtype and rounding == KEEP and is_dense(spec):
        return Port(spec, _steps(spec), ())
    copy = dense(dtype, spec.shape)
    if rounding == KEEP:
        return Port(spec, copy.strides, (convert.plan(spec, copy, threads),))
    rounded = convert.plan_rounding(rounding, copy, threads)
    if spec.dtype is dtype and spec.is_contiguous:
        return Port(spec, copy.strides, (rounded,))
    return Port(spec, copy.strides, (convert.plan(spec, copy, threads), rounded))


def exit_(spec: TensorSpec, dtype: DType, threads: int) -> Port:
    """A port for an output."""
    if spec.dtype is dtype and is_dense(spec):
        return Port(spec, _steps(spec), ())
    made = dense(dtype, spec.shape)
    return Port(spec, made.strides, (convert.plan(made, spec, threads),))


def is_dense(spec: TensorSpec) -> bool:
    """Whether the elements fill one piece of memory, in any order of the axes."""
    return merged(spec.shape, spec.strides)[1] == [[1]]


def _steps(spec: TensorSpec) -> tuple[int, ...]:
    """The strides, with those of axes of size 1 as if they were contiguous: oneDNN looks at them."""
    usual = contiguous_strides(spec.shape)
    return tuple(u if n == 1 else s for n, s, u in zip(spec.shape, spec.strides, usual, strict=True))
