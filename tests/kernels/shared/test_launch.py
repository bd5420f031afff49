"""Shares of a launch's work: all of it, once, most of it in the same hands every time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aclnn.kernels.shared.launch import shares


def as_pairs(items: int, lots: int, near: bool = False) -> list[tuple[int, int]]:
    count, lots_, *bounds = shares(items, lots, near)
    pairs = list(zip(bounds[::2], bounds[1::2], strict=True))
    assert (len(pairs), lots_) == (count, lots)
    return pairs


@given(st.integers(0, 5000), st.integers(1, 70), st.booleans())
def test_shares_are_all_of_the_work_once(more: int, lots: int, near: bool) -> None:
    items = lots + more
    pairs = as_pairs(items, lots, near)
    assert min(end - first for first, end in pairs) > 0, "each lot begins with one"
    assert sorted(i for first, end in pairs for i in range(first, end)) == list(range(items))


@given(st.integers(0, 5000), st.integers(2, 70))
def test_a_quarter_is_left_for_who_comes_first(more: int, lots: int) -> None:
    items = lots + more
    pairs = as_pairs(items, lots)
    first = sum(end - begin for begin, end in pairs[:lots])
    assert all(end - begin == 1 for begin, end in pairs[lots:])
    assert items - lots <= 4 / 3 * first <= items + 4 / 3 * lots


@given(st.integers(0, 5000), st.integers(1, 70))
def test_what_is_near_is_shared_once(more: int, lots: int) -> None:
    sizes = [end - first for first, end in as_pairs(lots + more, lots, near=True)]
    assert len(sizes) == lots
    assert 1 <= min(sizes) <= max(sizes) <= min(sizes) + 1


def test_what_two_threads_take() -> None:
    assert shares(16, 2) == [6, 2, 0, 6, 8, 14, 6, 7, 14, 15, 7, 8, 15, 16]
    assert shares(40, 1) == [1, 1, 0, 40]
    assert shares(2, 2) == [2, 2, 0, 1, 1, 2]
    assert shares(5, 2, near=True) == [2, 2, 0, 2, 2, 5]
