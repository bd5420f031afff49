"""How far a right answer may be from the exact one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.tolerance import Precision, Terms, allowed_error, error_ratio

SINGLE = Precision(FLOAT32, (FLOAT32,))
HALF = Precision(FLOAT32, (FLOAT16,))


def test_allowed_error_is_the_documented_bound() -> None:
    exact, total = np.array([1.0]), np.array([3.0])
    u = 2.0**-24
    assert allowed_error(exact, Terms(total, (100,)), SINGLE)[0] == pytest.approx(18 * u * 3, rel=1e-6)
    assert allowed_error(exact, Terms(total, (100, 4)), SINGLE)[0] == pytest.approx(28 * u * 3, rel=1e-6)
    half = allowed_error(exact, Terms(total, (1,)), HALF)[0]
    assert half == pytest.approx(9 * u * 3 + 2**-11, rel=1e-3)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=200))
def test_naive_float32_sums_keep_the_bound_and_a_planted_fault_breaks_it(values: list[float]) -> None:
    x = np.array(values, np.float32)
    naive = np.float32(0)
    for v in x:
        naive = np.float32(naive + v)
    terms = Terms(np.abs(x.astype(np.float64)).sum(), (len(x),))
    exact = np.array(math.fsum(x.tolist()))
    assert error_ratio(np.array(naive), exact, terms, SINGLE) <= 1
    wrong = exact + 2 * allowed_error(exact, terms, SINGLE)
    assert error_ratio(wrong, exact, terms, SINGLE) > 1


AGREEMENT = [
    # result, exact, sound
    (np.nan, np.nan, True),
    (np.nan, 1.0, False),
    (1.0, np.nan, False),
    (np.inf, np.inf, True),
    (-np.inf, np.inf, False),
    (np.inf, 1e6, True),  # beyond float16
    (-np.inf, 1e6, False),
    (65504.0, 1e6, False),
    (65504.0, 65510.0, True),
    (np.inf, 1.0, False),
    (1.0, np.inf, False),
    (0.0, 1e-9, True),
    (-0.0, 0.0, True),
]


@pytest.mark.parametrize(("result", "exact", "sound"), AGREEMENT)
def test_nan_and_inf_belong_exactly_where_the_exact_value_has_them(result: float, exact: float, sound: bool) -> None:
    terms = Terms(np.array([abs(exact)]), (1,))
    ratio = error_ratio(np.array([result], np.float16), np.array([exact]), terms, HALF)
    assert bool(ratio[0] <= 1) == sound


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16])
def test_what_nothing_was_added_to_may_be_infinite(dtype: DType) -> None:
    """The last state of an LSTM of no steps is the first one, whatever that is."""
    first = np.array([math.inf, -math.inf, math.nan, 3.0])
    untouched, precision = Terms(np.abs(first), []), Precision(FLOAT32, (dtype,))
    assert error_ratio(first, first, untouched, precision).tolist() == [0] * 4
    others = np.array([3.0, math.inf, 3.0, math.inf])
    assert error_ratio(others, first, untouched, precision).tolist() == [math.inf] * 4


def test_an_overflow_on_the_way_excuses_what_is_not_finite() -> None:
    terms = Terms(np.array([1e39]), (2,))
    assert error_ratio(np.array([np.inf], np.float32), np.array([1.0]), terms, SINGLE)[0] == 0
    assert error_ratio(np.array([np.nan], np.float32), np.array([1.0]), terms, SINGLE)[0] == 0


def verdict(result: float, exact: float, total: float, dtype: DType, length: int = 1) -> float:
    got = np.array([result]).astype(dtype.numpy)
    terms = Terms(np.array([total]), (length,))
    return float(error_ratio(got, np.array([exact]), terms, Precision(FLOAT32, (dtype,)))[0])


def total_that_allows(wanted: float, exact: float, precision: Precision, length: int) -> float:
    """The Σ|terms| under which the allowed error is as wanted, found by halving."""
    low, high = 0.0, 2.0**200
    for _ in range(2000):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        allowed = allowed_error(np.array([exact]), Terms(np.array([middle]), (length,)), precision)[0]
        low, high = (middle, high) if allowed <= wanted else (low, middle)
    return low


@given(
    st.sampled_from([FLOAT16, BFLOAT16]),
    st.floats(-1, 1),
    st.sampled_from([1, 100, 10**7]),
    st.sampled_from([1 - 1e-9, 1 + 1e-9, 0.5, 2.0]),
    st.sampled_from([-1.0, 1.0]),
)
def test_inf_is_sound_where_the_allowed_error_reaches_beyond_the_range_on_its_side(
    dtype: DType, part: float, length: int, reach: float, side: float
) -> None:
    """Of either sign: an error that reaches beyond both ends may have ended at either."""
    precision = Precision(FLOAT32, (dtype,))
    exact = part * precision.largest
    total = total_that_allows(reach * (precision.largest - side * exact), exact, precision, length)
    if not total < float(FLOAT32.limits.max):  # beyond, an intermediate may have overflowed to anything
        return
    allowed = allowed_error(np.array([exact]), Terms(np.array([total]), (length,)), precision)[0]
    beyond = Fraction(side) * Fraction(exact) + Fraction(allowed) - Fraction(precision.largest)
    if abs(beyond) < 1e-12 * precision.largest:
        return
    assert verdict(side * math.inf, exact, total, dtype, length) == (0.0 if beyond > 0 else math.inf)


OTHER_INFINITY = [
    # dtype, exact, total, terms, accepted: +Inf, −Inf
    (FLOAT16, 1.0, 65504.0, 1, False, False),
    (FLOAT16, 1.0, 65504.0 * 2**24, 1, True, True),
    (FLOAT16, 60000.0, 65504.0 * 2**16, 10**4, True, False),
    (FLOAT16, -60000.0, 65504.0 * 2**16, 10**4, False, True),
    (FLOAT16, 0.0, 65504.0 * 2**24, 1, True, True),
    (FLOAT16, -0.0, 65504.0 * 2**24, 1, True, True),
    (BFLOAT16, 1e38, 3e38, 10**18, True, True),
    (BFLOAT16, 1e38, 3e38, 10**4, False, False),
    (FLOAT32, 1e38, 3e38, 10**18, True, True),
    (FLOAT32, -3e38, 3e38, 10**13, False, True),
    (FLOAT32, 1e38, 3e38, 10**6, False, False),
    (FLOAT32, math.inf, math.inf, 1, True, False),
    (FLOAT16, -math.inf, math.inf, 1, False, True),
    (FLOAT16, math.nan, 1.0, 1, False, False),
]


@pytest.mark.parametrize(("dtype", "exact", "total", "length", "plus", "minus"), OTHER_INFINITY)
def test_the_other_infinity(dtype: DType, exact: float, total: float, length: int, plus: bool, minus: bool) -> None:
    assert (verdict(math.inf, exact, total, dtype, length) == 0) == plus
    assert (verdict(-math.inf, exact, total, dtype, length) == 0) == minus
    assert verdict(math.nan, exact, total, dtype, length) == (0 if math.isnan(exact) else math.inf)
