"""How far a right answer may be from the exact one: the one place tests, `run --check` and compare take it from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.dtype import DType
from aclnn.base.geometry import Array


class Terms(NamedTuple):
    """What an output element is summed from: Σ|terms| for each element, and the lengths of the sums in a chain.

    A chain of one is an ordinary reduction; a recurrence has one sum per step, each fed by the one before.
    """

    total: Array
    lengths: Sequence[int] = (1,)

    @classmethod
    def measured(cls, errors: Array) -> Terms:
        """The terms of a result whose error was followed through a longer computation, in units of u."""
        return cls(errors / _per_sum(1), (1,))


def _per_sum(length: int) -> float:
    """What one sum of so many terms may err by, in units of u·Σ|terms|."""
    return 8 + math.sqrt(max(length, 1))


class Precision(NamedTuple):
    """What a result was computed and rounded in: the compute dtype, then every dtype it was rounded to in turn."""

    compute: DType
    roundings: tuple[DType, ...]

    @property
    def largest(self) -> float:
        return min(float(d.limits.max) for d in self.roundings)


def allowed_error(exact: Array, terms: Terms, precision: Precision) -> Array:
    """The largest |result − exact| that rounding can explain, element by element.

    Every sum of K terms may err by (8 + √K)·u·Σ|terms|, u the unit of the compute dtype; each rounding of the result
    adds half a unit of its dtype, and numbers below the smallest normal one add the spacing there.
    """
    compute = precision.compute
    factor = sum(map(_per_sum, terms.lengths)) * compute.unit
    with np.errstate(over="ignore", invalid="ignore"):
        summed = factor * np.asarray(terms.total, np.float64) if factor else np.zeros_like(exact)  # 0·Inf is NaN
        allowed = summed + float(compute.limits.tiny)
        for dtype in precision.roundings:
            if dtype is not compute:
                allowed = allowed + dtype.unit * (np.abs(exact) + allowed) + float(dtype.limits.smallest_subnormal)
    return np.asarray(allowed)


def error_ratio(result: Array, exact: Array, terms: Terms, precision: Precision) -> Array:
    """|result − exact| in units of the allowed error, element by element: at most 1 is sound.

    NaN belongs where the exact value is NaN, and Inf where a number within the allowed error is beyond the range of the
    result on that side: 0 marks agreement, inf the rest. Where Σ|terms| leaves the range of the compute dtype an
    intermediate may have overflowed, so anything that is not finite is sound there; where it is NaN (base.ranges), also
    instead of Inf.
    """
    got, want = np.asarray(result).astype(np.float64), np.asarray(exact).astype(np.float64)
    total = np.asarray(terms.total, np.float64)
    with np.errstate(all="ignore"):
        allowed = allowed_error(want, terms, precision)
        ratio = np.abs(got - want) / allowed
        may_be_infinite = np.sign(got) * want + allowed > precision.largest  # the sign of Inf is the result's own
        may_overflow = np.isfinite(want) & ~(total < float(precision.compute.limits.max))
        agrees = np.isnan(got) & np.isnan(want)
        agrees |= np.isinf(got) & may_be_infinite
        agrees |= ~np.isfinite(got) & may_overflow
        agrees |= np.isnan(total) & (np.isfinite(want) | (np.isinf(want) & ~np.isfinite(got)))
        ratio = np.where(agrees, 0.0, np.where(np.isnan(ratio), np.inf, ratio))
        must_be_infinite = np.abs(want) - allowed > precision.largest * (1 + precision.roundings[-1].unit)
        return np.where(must_be_infinite & np.isfinite(got) & ~may_overflow, np.inf, ratio)
