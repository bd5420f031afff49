"""Boxes of a picture: within their limits, whatever the shape."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aclnn.base.dtype import FLOAT32
from aclnn.base.taps import Window
from aclnn.base.tensor import dense
from aclnn.kernels.convolution.boxes import boxes_of, divided_between, largest

pytest.importorskip("numba")
from aclnn.kernels.convolution.shape import Shape


@given(
    st.lists(st.integers(1, 40), min_size=3, max_size=3),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 5000),
    st.integers(1, 300),
    st.integers(96, 4096),
)
@example([512, 1, 1], 3, 1, 200, 256, 4096)
@example([600, 1, 1], 3, 1, 1, 8, 96)
def test_a_box_keeps_its_limits(
    sizes: list[int], kernel: int, stride: int, channels: int, least: int, most: int
) -> None:
    padding = kernel // 2
    outputs = [(n + 2 * padding - kernel) // stride + 1 for n in sizes]
    if min(outputs) < 1:
        return
    window = Window((stride,) * 3, (1,) * 3, (padding,) * 3, (padding,) * 3)
    wide, narrow = dense(FLOAT32, (2, channels, *sizes)), dense(FLOAT32, (2, 8, *outputs))
    shape = Shape(wide, narrow, dense(FLOAT32, (8, channels, *(kernel,) * 3)), window, 1)
    for over in shape.passes(onto_wide=False):
        whole = (2, *over.sizes)
        box = largest(whole, boxes_of(whole, over, channels, 56 * 1024, least, most))
        met = box[0] * math.prod(axis.met(b) for axis, b in zip(over.axes, box[1:], strict=True))
        positions = math.prod(box)
        assert all(1 <= b <= w for b, w in zip(box, whole, strict=True))
        assert positions <= least or (channels * met <= 56 * 1024 and positions <= most)


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(1, 300), st.integers(1, 40)), min_size=4, max_size=4),
    st.integers(1, 3),
)
@example(2, [(1, 1), (1, 1), (200, 13), (16, 1)], 1)
def test_boxes_for_threads_are_no_larger_and_few_more(threads: int, cuts: list[tuple[int, int]], groups: int) -> None:
    whole, boxes = [w for w, _ in cuts], [min(cut) for cut in cuts]
    made = divided_between(threads, boxes, whole, groups)
    assert all(b <= m <= w for b, m, w in zip(boxes, made, whole, strict=True))
    assert math.prod(made) < 2 * math.prod(boxes)
    assert made == boxes or groups * math.prod(made) % threads == 0


def test_what_an_odd_number_of_boxes_leaves_to_one_thread() -> None:
    assert divided_between(2, [1, 1, 13, 1], [1, 1, 200, 16], 1) == [1, 1, 14, 1]
    assert divided_between(2, [5, 1, 3, 1], [5, 1, 28, 28], 1) == [5, 1, 4, 1]  # no picture can be cut
