"""Pairwise sums: their error stays within the bound of every reduction, also for equal terms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn.base.dtype import FLOAT32
from aclnn.base.sums import sum_rows
from aclnn.base.tolerance import Precision, Terms, error_ratio

SINGLE = Precision(FLOAT32, (FLOAT32,))


def ratio(rows: np.ndarray) -> float:
    wide = rows.astype(np.float64)
    terms = Terms(np.abs(wide).sum(0), (len(rows),))
    return float(error_ratio(sum_rows(rows), wide.sum(0), terms, SINGLE).max(initial=0))


@pytest.mark.parametrize("count", [200_000, 199_999, 131_071, 9, 2, 1, 0])
@pytest.mark.parametrize("value", [0.1, 0.3, 0.7])
def test_equal_terms(count: int, value: float) -> None:
    assert ratio(np.full((count, 3), value, np.float32)) <= 1


def test_the_bound_can_tell_a_naive_sum() -> None:
    rows = np.full((200_000, 3), 0.1, np.float32)
    terms = Terms(np.full(3, rows.astype(np.float64).sum() / 3), (len(rows),))
    assert error_ratio(rows.sum(axis=0), terms.total, terms, SINGLE).min() > 1


@given(st.integers(0, 70), st.integers(0, 3), st.integers(0, 99))
def test_any_length(count: int, width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    kept = rows.copy()
    total = sum_rows(rows)
    assert total.shape == (width,)
    assert total.dtype == np.float32
    assert ratio(rows) <= 1
    total += 1
    assert (rows == kept).all()
