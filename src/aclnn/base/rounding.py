"""Roundings that the cube unit makes before it multiplies (cubeMathType)."""

from __future__ import annotations

import numpy as np

from aclnn.base.dtype import FLOAT32, DType, promote
from aclnn.base.dtype import by_numpy as dtype_of
from aclnn.base.geometry import Array

KEEP, ALLOW_DOWN_PRECISION, USE_FP16, USE_HF32 = 0, 1, 2, 3  # the values of cubeMathType


def to_hf32(array: Array) -> Array:
    """float32 rounded to 11 explicit mantissa bits, to nearest, ties away from zero; NaN and Inf stay.

    >>> to_hf32(np.array([1 + 2**-12, 1 + 2**-13], np.float32)) - 1
    array([0.00048828, 0.        ], dtype=float32)
    """
    single = np.ascontiguousarray(array, np.float32).reshape(np.shape(array))
    bits = single.view(np.uint32)
    rounded = ((bits + np.uint32(1 << 11)) & np.uint32(0xFFFFF000)).view(np.float32)  # a carry may reach Inf
    return np.where(np.isfinite(single), rounded, single)


def to_fp16(array: Array) -> Array:
    """float32 rounded to float16 and widened again; too large becomes Inf."""
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)


def cube_inputs(cube_math_type: int, *arrays: Array) -> tuple[Array, ...]:
    """The arrays as the cube unit sees them, promoted, rounded as cubeMathType says, and widened to float64."""
    promoted = promote(_known(a) for a in arrays)
    if promoted is FLOAT32 and cube_math_type != KEEP:
        round_ = to_fp16 if cube_math_type == USE_FP16 else to_hf32
        arrays = tuple(round_(a.astype(np.float32)) for a in arrays)
    return tuple(a.astype(np.float64, copy=False) for a in arrays)


def _known(array: Array) -> DType:
    dtype = dtype_of(array.dtype)
    assert dtype is not None
    return dtype
