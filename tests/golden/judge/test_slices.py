"""The plane through the worst element: which part of it is shown, and what its cells hold."""

from __future__ import annotations

import numpy as np
import pytest

from aclnn.base.dtype import FLOAT32
from aclnn.golden.judge.blocks import Miss, TargetPair
from aclnn.golden.judge.slices import CELLS, Slice, worst_slice


def through(shape: tuple[int, ...], *wrong: tuple[int, ...]) -> Slice | None:
    """The plane through the first of the elements that are off, the others less so."""
    golden, target = np.ones(shape, np.float32), np.ones(shape, np.float32)
    for n, index in enumerate(wrong):
        target[index] = 1 + 2.0**-n
    return worst_slice(TargetPair(target, FLOAT32, golden), Miss(wrong[0], 2.0, 1.0, 9.0) if wrong else None)


@pytest.mark.parametrize(("index", "first"), [(0, 0), (1024, 0), (1025, 1), (1500, 476), (2900, 952), (2999, 952)])
def test_the_window_has_the_worst_element_in_its_middle_where_there_is_room(index: int, first: int) -> None:
    found = through((3, 3000, 70), (1, index, 5))
    assert found is not None
    assert (found.axes, found.through) == ((1, 2), (1, index, 5))
    assert found.window == (slice(first, first + 2048), slice(0, 70))
    assert found.cells.max() > 0


def test_an_array_that_fits_is_shown_whole() -> None:
    found = through((40, 50), (39, 49))
    assert found is not None
    assert found.window == (slice(0, 40), slice(0, 50))
    assert found.cells.shape == (40, 50)
    assert found.cells.argmax() == 40 * 50 - 1
    assert np.count_nonzero(found.cells) == 1


def test_the_largest_window_on_an_axis_of_two() -> None:
    found = through((2, 2048), (1, 2047))
    assert found is not None
    assert found.window == (slice(0, 2), slice(0, 2048))


def test_a_cell_has_the_largest_error_of_its_elements() -> None:
    found = through((256, 128), (255, 0), (3, 127), (0, 126))
    assert found is not None
    assert found.cells.shape == (CELLS, CELLS)  # four rows and two columns each
    assert sorted(zip(*found.cells.nonzero(), strict=True)) == [(0, CELLS - 1), (CELLS - 1, 0)]
    assert found.cells[-1, 0] == pytest.approx(2 * found.cells[0, -1])


def test_one_axis_or_nothing_wrong_is_no_plane() -> None:
    assert through((1, 9), (0, 3)) is None
    assert through((4, 9)) is None
