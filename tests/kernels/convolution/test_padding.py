"""Multiplications with padding are left out: which ones, and that no bit depends on it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import FLOAT32
from aclnn.base.taps import Window
from aclnn.base.tensor import dense
from aclnn.contract.cases import fill
from aclnn.kernels.convolution.boxes import Axis, Pass, Taps, as_five, outermost
from aclnn.kernels.convolution.padding import Order, Read, in_order, order_of
from aclnn.kernels.convolution.shape import Shape
from aclnn.kernels.matmul.tiles import CHAINS, columns, even_chain, least_block
from aclnn.kernels.native.abi import MOST_KINDS
from aclnn.ops.convolution_forward import convolution_case
from tests.harness import bits, call

pytest.importorskip("numba")


def meets(axis: Axis, picture: int) -> list[list[bool]]:
    """For every position and shift, whether there is something of the picture."""
    begins = [i * axis.stride - axis.before for i in range(axis.size)]
    return [[0 <= begin + shift < picture for shift in axis.shifts] for begin in begins]


@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 6), st.integers(1, 4), st.integers(1, 12), st.booleans())
def test_meets_and_limits(kernel: int, stride: int, before: int, dilation: int, wide: int, onto_wide: bool) -> None:
    narrow = max(1, (wide + 2 * before - dilation * (kernel - 1) - 1) // stride + 1)
    taps = Taps(kernel, stride, before, dilation, wide, narrow)
    picture = narrow if onto_wide else wide
    for axis in taps.onto_wide() if onto_wide else taps.onto_narrow():
        met = np.array(meets(axis, picture)).reshape(axis.size, len(axis.shifts))
        assert np.array_equal(axis.meets(picture), met)
        for positions, (first, end) in zip(met.T, axis.limits(picture), strict=True):
            assert list(np.flatnonzero(positions)) == list(range(first, end))


def passes(size: int, padding: int) -> tuple[Shape, int]:
    out = size + 2 * padding - 2
    window = Window((1, 1), (1, 1), (padding,) * 2, (padding,) * 2)
    wide, narrow = dense(FLOAT32, (1, 2, size, size)), dense(FLOAT32, (1, 3, out, out))
    shape = Shape(wide, narrow, dense(FLOAT32, (3, 2, 3, 3)), window, 1)
    (over,) = shape.passes(onto_wide=False)
    return shape, outermost(over, as_five(wide).sizes)


def test_rows_are_left_out_where_it_pays() -> None:
    assert passes(7, 1)[1] == 2
    assert passes(7, 0)[1] == 0
    assert passes(300, 1)[1] == 0


def test_one_plane_that_meets_two_is_cut_by_planes() -> None:
    """Its shifts along the rows are not outermost."""
    window = Window((1, 1, 1), (1, 1, 1), (0, 1, 0), (0, 1, 0))
    wide, narrow = dense(FLOAT32, (1, 1, 2, 1, 4)), dense(FLOAT32, (1, 1, 1, 2, 4))
    (over,) = Shape(wide, narrow, dense(FLOAT32, (1, 1, 2, 2, 1)), window, 1).passes(onto_wide=False)
    assert outermost(over, as_five(wide).sizes) != 2


def order(size: int, channels: int, padding: int = 1) -> tuple[Pass, Order]:
    shape, _ = passes(size, padding)
    (over,) = shape.passes(onto_wide=False)
    return over, order_of(over, as_five(shape.wide).sizes, channels)


def test_axes_are_left_out_where_it_pays() -> None:
    assert order(7, 512)[1].axes == (1, 2)
    assert order(7, 512, padding=0)[1].axes == ()
    assert order(28, 128)[1].axes == (1,)  # with columns too, chains of 64 terms would end more often than that saves
    assert order(300, 512)[1].axes == ()


@pytest.mark.parametrize("channels", [64, 128, 192, 256, 512])
def test_small_pictures_and_many_channels_have_short_blocks(channels: int) -> None:
    """All panels then find the weights of a block, or the picture, in the first cache."""
    for size, padding in itertools.product((7, 14, 17, 28), (0, 1)):
        over, of_sums = order(size, channels, padding)
        longest = of_sums.terms_together(channels * 9) // of_sums.together
        small, many = math.prod(over.sizes) <= 300, channels >= 256
        if columns() >= 64:
            assert longest <= (64 if small or many else 400)
        else:
            in_a_block = 9 // of_sums.shifts  # taps of a channel, whose lines are the same
            assert longest <= (32 * in_a_block if small else 128 if many else 400)


@pytest.mark.parametrize("read", [Read(), Read(is_packed=True), Read(has_lines=True)])
@pytest.mark.parametrize("channels", [1, 2, 5, 20, 64, 300, 1024, 2048, 4096, 8192, 20_000, 40_000])
def test_blocks_are_long_enough_for_the_bound(channels: int, read: Read) -> None:
    """Equal terms err by a third of what is added one by one; few that are equal in part by half of it."""
    for size, padding, joined in itertools.product((4, 7, 14, 40), (0, 1), ((1, 1), (1, 4), (2, 2), (4, 4))):
        shape, _ = passes(size, padding)
        over = shape.passes(False, joined)[0]
        of_sums = order_of(over, as_five(shape.wide).sizes, channels, read)
        blocks, block = of_sums.blocks // of_sums.together, of_sums.terms_together(len(over.shifts) * channels)
        each = min(block, of_sums.chain) * 9 / len(over.shifts)  # the others are zeros
        added = each + blocks * max(1, block / of_sums.chain)
        assert added / (2 if channels < 8 else 3) <= 8 + math.sqrt(9 * channels)


@pytest.mark.parametrize("length", [1, 62, 63, 64, 100, 4096, 400_000])
def test_the_least_block_is_the_least(length: int) -> None:
    least, of_equal_terms = least_block(length), 2 if length < 64 else 3
    assert (least + length / least) / of_equal_terms <= 8 + math.sqrt(length)
    assert least == 1 or (least - 1 + length / (least - 1)) / of_equal_terms > 0.9 * (8 + math.sqrt(length))


def test_sums_go_from_tap_to_tap() -> None:
    over, of_sums = order(7, 512)
    taps = in_order(np.arange(2 * 9).reshape(2, 9), over, of_sums.axes).ravel() % 9
    assert taps.tolist() == sorted(taps)


def test_a_kind_has_the_mask_of_its_positions() -> None:
    over, of_sums = order(7, 512)
    sizes = (1, 7, 7)
    table = of_sums.kinds(over, sizes)
    z, y, x = np.split(table[MOST_KINDS:], np.cumsum([axis.size for axis in over.axes])[:2])
    rows, columns = (over.axes[d].meets(sizes[d]) for d in (1, 2))
    for i, j in itertools.product(range(7), range(7)):
        met = np.outer(rows[i], columns[j]).ravel()
        assert table[z[0] + y[i] + x[j]] == sum(1 << int(bit) for bit in np.flatnonzero(met))


@pytest.mark.parametrize("length", [1, 100, 392, 1152, 1568, 2304, 4096, 6272, 100_000])
@pytest.mark.parametrize("block", [1, 49, 145, 196, 289, 392, 400])
def test_chains_are_even_and_short(length: int, block: int) -> None:
    most = even_chain(length, block)
    longest = next(chain for chain, below in CHAINS if length < below)
    assert 1 <= most <= max(longest, 3 * (8 + math.sqrt(length)))
    assert -(-block // most) <= -(-block // longest)


@pytest.mark.parametrize("channels", [32, 256])
def test_underflow_next_to_padding_has_the_same_bits_for_any_threads(channels: int) -> None:
    """−0 plus the 0 of padding would be +0, and −0 where that is left out."""
    x, w = np.full((3, channels, 14, 14), 1e-30, np.float32), np.full((40, channels, 3, 3), -1e-30, np.float32)
    made = []
    for threads in (1, 2, 3, 7):
        with aclnn.threads(threads):
            made.append(aclnn.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1).tobytes())
    assert set(made) == {np.zeros((3, 40, 14, 14), np.float32).tobytes()}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(5, 130, 7, 7), (2, 200, 3, 14), (3, 256, 1, 1), (1, 128, 4, 5, 6)])
def test_nothing_but_padding_is_left_out(shape: tuple[int, ...], transposed: bool) -> None:
    """Any number of threads gives the same bits; and of whole numbers, all sums are exact."""
    draw, ones = np.random.default_rng(7), [1] * (len(shape) - 2)
    taps = (shape[1], 48, *[3] * len(ones)) if transposed else (48, shape[1], *[3] * len(ones))
    x, w = draw.standard_normal(shape, np.float32), draw.standard_normal(taps, np.float32)
    made = set()
    for threads in (1, 2, 3, 7):
        with aclnn.threads(threads):
            made.add(aclnn.convolution(x, w, None, ones, ones, ones, transposed, [0] * len(ones), 1).tobytes())
    assert len(made) == 1
    x, w = np.rint(3 * x), np.rint(3 * w)
    of_engines = [
        aclnn.convolution(x, w, None, ones, ones, ones, transposed, [0] * len(ones), 1, engine=engine)
        for engine in ("fast", "numpy")
    ]
    assert np.array_equal(*of_engines)


ONE_CHAIN: list[dict[str, Any]] = [  # in a block of a sum, of which some positions meet two and others one
    {"batch": 2, "in_channels": 32, "out_channels": 61, "size": (3, 8, 8), "kernel": (2, 1, 1), "padding": (1, 0, 0)},
    {"batch": 1, "in_channels": 64, "out_channels": 64, "size": (33, 33), "kernel": 3, "padding": 24, "dilation": 24},
    {"batch": 3, "in_channels": 32, "out_channels": 64, "size": (14, 14), "kernel": 2, "padding": 1},
    {"batch": 3, "in_channels": 32, "out_channels": 14, "size": (14, 14), "kernel": 2, "padding": 1},
    {"batch": 3, "in_channels": 32, "out_channels": 16, "size": (5, 14, 14), "kernel": (2, 1, 2), "padding": 1},
]


@pytest.mark.parametrize("attributes", ONE_CHAIN, ids=str)
def test_who_stands_beside_a_position_changes_no_bit(attributes: dict[str, Any]) -> None:
    case, found = convolution_case(device=CPU, **attributes), set()
    for threads in range(1, 9):
        aclnn.cache_clear()
        filled = fill(case, 2)
        with aclnn.threads(threads):
            call(case, filled, engine="fast")
        found.add(b"".join(bits(case, filled)))
    assert len(found) == 1
