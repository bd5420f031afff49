"""What the range of float32 adds to Σ|terms|."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aclnn.base.dtype import FLOAT32
from aclnn.base.float_range import (
    LARGEST,
    TINIEST,
    Size,
    beyond_range,
    nearest_zero,
    passed_on,
    product_total,
    sum_total,
    sums_of_sizes,
)
from aclnn.base.tolerance import Precision, Terms, error_ratio

INF, NAN = np.inf, np.nan

PRODUCTS = [
    # factors, what leaving the range adds
    ((2.0, 3.0), 6 * TINIEST),
    ((1e-30, 1e-30), TINIEST),
    ((1e30, 1e-30), 1e30 * TINIEST),
    ((1e30, 1e30, 1e-30), INF),  # 1e60 on the way
    ((1e30, 1e30, 1e-39), NAN),  # and an infinity may meet what is nearly zero
    ((INF, 0.5), INF),
    ((INF, 1e-40), NAN),
    ((INF, 0.0), NAN),
    ((NAN, 1.0), NAN),
]


@pytest.mark.parametrize(("factors", "added"), PRODUCTS)
def test_parts_of_a_product_beyond_the_range(factors: tuple[float, ...], added: float) -> None:
    sizes = [Size.of(factor) for factor in factors]
    assert beyond_range(*sizes) == pytest.approx(added, nan_ok=True)
    with np.errstate(invalid="ignore"):
        assert product_total(*sizes) == pytest.approx(np.prod(factors) + added, nan_ok=True)


def test_a_factor_that_may_cancel_to_zero_makes_nan_of_an_infinity() -> None:
    cancelled = Size.computed(np.array(1e-6), np.array(1.0))
    assert cancelled.least == 0
    assert np.isnan(beyond_range(Size.of(INF), cancelled))
    assert beyond_range(Size.of(INF), Size.computed(np.array(0.5), np.array(1.0))) == INF


NEAREST = [
    # value, Σ|terms|, how near to zero
    (-3.0, 3.0, 3 * (1 - 2.0**-16)),
    (1e-6, 1.0, 0.0),
    (1.0, INF, NAN),
    (1.0, 2 * LARGEST, NAN),
    (INF, INF, INF),
    (INF, NAN, NAN),
]


@pytest.mark.parametrize(("value", "total", "least"), NEAREST)
def test_how_near_to_zero_a_sum_may_lie(value: float, total: float, least: float) -> None:
    with np.errstate(invalid="ignore"):
        found = nearest_zero(np.array(value), np.array(total))
    assert found == pytest.approx(least, nan_ok=True)


SUMS = [
    # Σ|terms| of each of the numbers that are added up, of the sum
    ((1.0, 2.0), 3.0),
    ((INF, 2.0), INF),
    ((INF, LARGEST, LARGEST), NAN),  # their sum may be an infinity of the other sign
    ((INF, INF), NAN),
    ((1.0, NAN), NAN),
]


@pytest.mark.parametrize(("totals", "total"), SUMS)
def test_an_infinity_among_the_terms_of_a_sum(totals: tuple[float, ...], total: float) -> None:
    assert sum_total(np.array(totals)) == pytest.approx(total, nan_ok=True)


def test_a_flat_function_stops_any_error() -> None:
    with np.errstate(invalid="ignore"):
        assert passed_on(np.array([0.0, 0.5, 0.5]), np.array([INF, INF, 4.0])).tolist() == [0, INF, 2]


UNKNOWN = [
    # result, exact value, whether that is sound where Σ|terms| is NaN
    (NAN, INF, True),
    (INF, INF, True),
    (1.0, INF, False),
    (NAN, 1.0, True),
    (INF, NAN, False),
    (1.0, NAN, False),
]


@pytest.mark.parametrize(("result", "exact", "sound"), UNKNOWN)
def test_where_the_kind_cannot_be_told_any_but_a_finite_one_stands_for_an_infinity(
    result: float, exact: float, sound: bool
) -> None:
    single = Precision(FLOAT32, (FLOAT32,))
    ratio = error_ratio(np.array([result], np.float32), np.array([exact]), Terms(np.array([NAN])), single)
    assert bool(ratio[0] <= 1) == sound


def test_an_infinity_in_a_sum_of_products_whose_other_products_overflow_each_other() -> None:
    def dot(x: Any, w: Any) -> tuple[Any]:
        return (x @ w,)

    weights = np.array([1.0, -2.0])
    assert sums_of_sizes(dot, np.array([3.0, -4.0]), weights) == (11,)
    assert sums_of_sizes(dot, np.array([INF, -4.0]), weights) == (INF,)
    assert np.isnan(sums_of_sizes(dot, np.array([INF, LARGEST]), weights)[0])
    assert sums_of_sizes(lambda x: (x, None), np.array(INF)) == (INF, None)
