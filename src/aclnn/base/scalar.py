"""A number with a dtype, as `aclCreateScalar` makes one."""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import FLOAT64, INT64, DType
from aclnn.base.status import AclnnError, invalid
from aclnn.base.tensor import is_masked, kind_of

_BOOL, _COMPLEX = dtypes.by_name("bool"), dtypes.by_name("complex128")


class Scalar(NamedTuple):
    """A value and its type. Two scalars are one if their bits are: -0 is not 0, and NaN is NaN."""

    dtype: DType
    bits: bytes  # of the value as a double

    @property
    def value(self) -> float:
        return float(struct.unpack("=d", self.bits)[0])

    def rounded_to(self, compute: DType) -> float:
        """The value as arithmetic of a dtype sees it."""
        assert compute.numpy is not None
        with np.errstate(over="ignore"):
            return float(compute.numpy.type(self.value))

    def __repr__(self) -> str:
        return f"Scalar({self.value}, {self.dtype})"


def scalar(value: Any, dtype: DType | None = None, name: str = "a scalar") -> Scalar:
    """A Scalar of a Python or numpy number; `dtype` is for callers that have said it (the C interface).

    `name` is the argument, for the message if it is none.

    >>> scalar(1.5)
    Scalar(1.5, float64)
    """
    if isinstance(value, Scalar):
        return value
    dtype = dtype or _dtype_of(value, name)
    number = math.nan if dtype.is_complex else float(value)  # a complex one is only ever refused, by its dtype
    return Scalar(dtype, struct.pack("=d", math.nan if math.isnan(number) else number))


def _dtype_of(value: Any, name: str) -> DType:
    if is_masked(value):
        raise invalid(f"{name} is masked; it must be a number.")
    if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0:
        found = dtypes.by_numpy(value.dtype)
    elif isinstance(value, bool):
        found = _BOOL
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise too_wide(name, value, 64)
        found = INT64
    elif isinstance(value, float):
        found = FLOAT64
    elif isinstance(value, complex):
        found = _COMPLEX
    else:
        found = None
    if found is None:
        raise invalid(f"{name} is {kind_of(value)}; it must be a number.")
    return found


def too_wide(name: str, number: int, bits: int) -> AclnnError:
    """The refusal of an integer outside what so many bits hold; one of thousands of digits is not spelled out."""
    half = 2 ** (bits - 1)
    shown = str(number) if number.bit_length() <= 128 else f"an integer of {number.bit_length()} bits"
    return invalid(f"{name} is {shown}; it must be {-half}..{half - 1}.")
