"""Rows of sums are written where they belong, past the caches or not, and nothing else is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("numba")

from aclnn.kernels.matmul.tiles import columns
from aclnn.kernels.native import jit
from aclnn.kernels.native.threads import Work

TYPES = "FFIiiiiIF"
UNTOUCHED = np.float32(-7.25)


def rows_of(kind: str, count: int) -> np.ndarray:
    """Where positions lie: runs of neighbours of every length, with and without gaps between them."""
    if kind == "side by side":
        return np.arange(count)
    if kind == "every other":
        return 2 * np.arange(count)
    lengths = itertools.cycle((1, 5, 17, 40, 16, 3, 64))
    gaps = np.concatenate([[0, *[1] * (n - 1)] for n, _ in zip(lengths, range(count), strict=False)])[:count]
    return np.cumsum(np.where(gaps == 0, 4, 1))


@pytest.mark.parametrize("name", ["results.put", "results.put_apart", "results.put_far"])
@pytest.mark.parametrize("kind", ["side by side", "every other", "runs"])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("step", [1024, 1000])
@pytest.mark.parametrize("begin", [0, 1, 7, 15])
def test_sums_are_written_where_they_belong(name: str, kind: str, listed: bool, step: int, begin: int) -> None:
    rng, width = np.random.default_rng(3), columns()
    for count, channels in ((1, 1), (15, width), (16, width - 3), (70, width), (288, width - 1)):
        places = rows_of(kind, count)
        sums = rng.standard_normal((count, width)).astype("f4")
        bias = rng.standard_normal(width).astype("f4")
        order = rng.permutation(count).astype("i8")
        out = np.full(begin + step * channels + 2048, UNTOUCHED)
        given = [sums.ctypes.data, out.ctypes.data + 4 * begin, places.ctypes.data, width, count, channels, step]
        given += [order.ctypes.data if listed else 0, bias.ctypes.data]
        Work(jit.load(name, TYPES), 1, 1, given, 1).run()
        expected = np.full_like(out, UNTOUCHED)
        at = begin + places[:, None] + step * np.arange(channels)
        expected[at] = (sums[order] if listed else sums)[:, :channels] + bias[:channels]
        np.testing.assert_array_equal(out, expected)


def test_results_at_odd_addresses_are_written_too() -> None:
    """No line begins where an element does."""
    width, count = columns(), 100
    sums, places = np.arange(count * width, dtype="f4").reshape(count, width), np.arange(count)
    memory = np.zeros(4 * 1024 * width + 64, np.uint8)
    odd = memory[-memory.ctypes.data % 64 + 2 :][: 4 * 1024 * width].view("f4")
    given = [sums.ctypes.data, odd.ctypes.data, places.ctypes.data, width, count, width, 1024, 0, 0]
    Work(jit.load("results.put_far", TYPES), 1, 1, given, 1).run()
    np.testing.assert_array_equal(odd.reshape(width, 1024)[:, :count], sums.T)
