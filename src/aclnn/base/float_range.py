"""Where float32 leaves its range and float64 does not: what that adds to Σ|terms|, and where no kind can be promised.

An exact value is computed in float64, a result in float32, in an order that its kernel chooses. A part of a product may
overflow there, or vanish, although the product is an ordinary number. The sums say so: Inf where a result may be
infinite instead, NaN where an infinity may also meet a zero, or another infinity, so that it may be NaN as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.sums import sum_rows

LARGEST = float(FLOAT32.limits.max)
TINIEST = float(FLOAT32.limits.tiny)
"""Below it float32 loses digits: an error of at most u times this, whatever follows multiplies."""

_REACH = 2.0**-16
"""No value is off by more of its Σ|terms| than this: 256 units of float32, sums of 60,000 terms have 252."""


class Size(NamedTuple):
    """Between what a factor may lie in float32, without its sign."""

    least: Array
    most: Array

    @classmethod
    def of(cls, given: Array | float) -> Size:
        """A number that is given, or rounded once."""
        size = np.abs(given)
        return cls(size, size)

    @classmethod
    def computed(cls, value: Array, total: Array) -> Size:
        """A number with an error."""
        return cls(nearest_zero(value, total), np.maximum(np.abs(value), total))


def nearest_zero(value: Array, total: Array) -> Array:
    """How near to zero a computed value may lie: NaN if parts of its sum may have overflowed.

    An infinity that every way of computing finds stays one.
    """
    least = np.where(total < LARGEST, np.maximum(np.abs(value) - _REACH * total, 0), np.nan)
    return np.where(np.isinf(value) & np.isinf(total), np.inf, least)


def beyond_range(*factors: Size) -> Array:
    """What Σ|terms| of a product gains because parts of it, in any order, may leave float32's range."""
    large, small = np.ones(()), np.ones(())
    for least, most in factors:
        large, small = large * np.maximum(most, 1), small * np.minimum(least, 1)
    return np.where(large < LARGEST, large * TINIEST, np.where(small >= TINIEST, np.inf, np.nan))


def product_total(*factors: Size) -> Array:
    """Σ|terms| of a product: of what its factors may be at most."""
    whole = np.asarray(math.prod(factor.most for factor in factors))
    return np.asarray(whole + beyond_range(*factors))


def unless_crowded(total: Array, rest: Array) -> Array:
    """Σ|terms| of a sum, given that of its finite terms: next to an infinity, these must not overflow as well."""
    return np.asarray(np.where(np.isinf(total) & ~(rest < LARGEST), np.nan, total))


def sums_of_sizes(sums: Callable[..., tuple[Any, ...]], *factors: Array) -> tuple[Any, ...]:
    """Σ|terms| of sums of products: the same sums of the sizes of the factors. Where there is no sum, None stays."""
    sizes = [np.abs(factor) for factor in factors]
    totals = sums(*sizes)
    if not any(np.isinf(size).any() for size in sizes):
        return totals
    rests = sums(*map(finite_part, sizes))
    return tuple(t if t is None else unless_crowded(t, r) for t, r in zip(totals, rests, strict=True))


def sum_total(totals: Array) -> Array:
    """Σ|terms| of the sum over the first axis of numbers that have such totals themselves."""
    total = unless_crowded(sum_rows(totals), sum_rows(finite_part(totals)))
    return np.where(np.isinf(totals).sum(axis=0) > 1, np.nan, total)


def finite_or_unknown(total: Array) -> Array:
    """Σ|terms| behind a long computation: one that is not finite has met others, and its kind is not known."""
    return np.where(np.isfinite(total), total, np.nan)


def finite_part(array: Array) -> Array:
    return np.where(np.isinf(array), 0, array)


def passed_on(slope: Array, total: Array) -> Array:
    """An error behind a function of this slope. Where it is flat, not even an infinite error passes."""
    return np.where(slope == 0, 0, slope * total)
