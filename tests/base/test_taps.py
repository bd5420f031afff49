"""Where taps bring positions together, against going through all of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aclnn.base.taps import every_tap, output_size, padding_ends, tap_ranges, taps_first, taps_last

SIZE = st.integers(0, 9)


@given(SIZE, SIZE, st.integers(1, 4), st.integers(1, 12), st.integers(0, 12), st.integers(1, 12), st.booleans())
def test_meetings_are_all_the_positions_that_the_formula_joins(
    outputs: int, inputs: int, kernel: int, stride: int, padding: int, dilation: int, transposed: bool
) -> None:
    (axis,) = tap_ranges([outputs], [inputs], [kernel], [stride], [padding], [dilation], transposed)
    for tap, (u, i) in enumerate(axis):
        narrow, wide = (inputs, outputs) if transposed else (outputs, inputs)
        joined = [(a, a * stride - padding + tap * dilation) for a in range(narrow)]
        joined = [(a, b) for a, b in joined if 0 <= b < wide]
        found = zip(range(outputs)[u], range(inputs)[i], strict=True)
        assert list(found) == [(b, a) if transposed else (a, b) for a, b in joined]


def test_every_tap_gives_indexes_of_all_axes() -> None:
    axes = tap_ranges([2, 3], [2, 3], [1, 2], [1, 1], [0, 1], [1, 1])
    taps = list(every_tap(axes))
    assert [tap for tap, _, _ in taps] == [(0, 0), (0, 1)]
    tensor = np.zeros((5, 4, 2, 3))
    assert [tensor[u].shape for _, u, _ in taps] == [(5, 4, 2, 2), (5, 4, 2, 3)]
    assert [tensor[i].shape for _, _, i in taps] == [(5, 4, 2, 2), (5, 4, 2, 3)]


def test_weights_by_tap_and_back() -> None:
    weight = np.arange(6 * 2 * 3 * 4).reshape(6, 2, 3, 4)
    for transposed in (False, True):
        by_tap = taps_first(weight, 3, transposed)
        assert by_tap.shape == (3, 4, 3, 2, 2)
        group, here, there, tap = 2, 1, 0, (1, 3)
        assert by_tap[(*tap, group, *((there, here) if transposed else (here, there)))] == weight[5, 0, 1, 3]
        assert (taps_last(by_tap, transposed) == weight).all()


def test_two_entries_per_axis_are_front_and_back() -> None:
    assert padding_ends([1, 2], 2) == ((1, 1), (2, 2))
    assert padding_ends([1, 2, 3, 4], 2) == ((1, 2), (3, 4))
    assert padding_ends([5], 1) == ((5, 5),)
    assert output_size([5, 5], [3, 3], [1, 1], [0, 1, 2, 0], [1, 1], False, [0, 0]) == (4, 5)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), st.integers(1, 3))
def test_a_transposed_convolution_undoes_the_size_of_a_plain_one(
    size: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    (out,) = output_size([size], [kernel], [stride], [padding], [dilation], False, [0])
    lost = (size + 2 * padding - dilation * (kernel - 1) - 1) % stride
    assert output_size([out], [kernel], [stride], [padding], [dilation], True, [lost]) == (size,)
