"""Shares of a launch's work: all of it, once, the smallest at the end."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from aclnn.kernels.shared.launch import shares


@given(st.integers(0, 5000), st.integers(1, 70))
def test_shares_are_all_of_the_work_and_become_smaller(more: int, lots: int) -> None:
    items = lots + more
    count, lots_, *bounds = shares(items, lots)
    sizes = [end - first for first, end in pairwise(bounds)]
    assert (bounds[0], bounds[-1], len(sizes), lots_) == (0, items, count, lots)
    assert count >= lots, "each lot begins with one"
    assert min(sizes) > 0
    assert sizes == sorted(sizes, reverse=True)
    assert lots == 1 or sizes[0] <= max(1, items // (2 * lots))  # nobody has half of an even part in one piece


@given(st.integers(0, 5000), st.integers(1, 70))
def test_what_is_near_is_shared_once(more: int, lots: int) -> None:
    items = lots + more
    count, lots_, *bounds = shares(items, lots, near=True)
    sizes = [end - first for first, end in pairwise(bounds)]
    assert (bounds[0], bounds[-1], len(sizes), lots_) == (0, items, count, lots)
    assert 1 <= min(sizes) <= max(sizes) <= min(sizes) + 1


def test_what_two_threads_take() -> None:
    assert shares(40, 2) == [12, 2, 0, 10, 20, 25, 30, 32, 34, 35, 36, 37, 38, 39, 40]
    assert shares(40, 1) == [1, 1, 0, 40]
    assert shares(2, 2) == [2, 2, 0, 1, 2]
    assert shares(5, 2, near=True) == [2, 2, 0, 2, 5]
