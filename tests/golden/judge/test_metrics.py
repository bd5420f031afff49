"""The streaming pass against plain numpy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.tolerance import Precision, Terms, error_ratio
from aclnn.golden.judge import blocks as blocks_module
from aclnn.golden.judge import metrics
from aclnn.golden.judge.blocks import TargetPair, blocks
from aclnn.golden.judge.metrics import MOST_BINS, Measured, measure
from aclnn.golden.judge.standards import STANDARDS
from aclnn.golden.show.columns import METRICS

SHAPES = st.lists(st.integers(0, 9), max_size=5).map(tuple)


def measured(target: Any, golden: Any, dtype: DType = FLOAT32, standard: str = "close") -> Measured:
    return measure(TargetPair(target, dtype, golden), STANDARDS[standard].rule(dtype.name))


@given(SHAPES, st.integers(1, 30))
def test_blocks_tile_the_array_in_order(shape: tuple[int, ...], size: int) -> None:
    whole = np.arange(math.prod(shape)).reshape(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_module, "BLOCK", size)
        parts = [whole[box].ravel() for box in blocks(shape)]
    assert all(p.size <= size for p in parts)
    assert np.concatenate([np.empty(0, int), *parts]).tolist() == whole.ravel().tolist()


@settings(max_examples=50)
@given(SHAPES, st.integers(0, 2**32 - 1), st.sampled_from([FLOAT32, FLOAT16, BFLOAT16, FLOAT64]))
def test_the_numbers_are_those_of_numpy(shape: tuple[int, ...], seed: int, dtype: DType) -> None:
    rng = np.random.default_rng(seed)
    golden = rng.normal(size=shape).astype(dtype.numpy)
    target = (golden.astype(np.float64) * (1 + 1e-2 * rng.normal(size=shape))).astype(dtype.numpy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_module, "BLOCK", 64)
        found = measured(target, golden, dtype)
    t, g = target.astype(np.float64), golden.astype(np.float64)
    error = np.abs(t - g)
    assert found.count == error.size
    if not error.size:
        assert (found.max_abs, found.mean_abs, found.rmse, found.cosine) == (0, 0, 0, 1)
        return
    relative = error / (np.abs(g) + 1e-7)
    assert found.max_abs == error.max()
    assert found.max_rel == relative.max()
    assert math.isclose(found.mean_abs, error.mean(), rel_tol=1e-12)
    assert math.isclose(found.mean_rel, relative.mean(), rel_tol=1e-12)
    assert math.isclose(found.rmse, math.sqrt((error**2).mean()), rel_tol=1e-12)
    assert math.isclose(found.cosine, (t * g).sum() / math.sqrt((t * t).sum() * (g * g).sum()), rel_tol=1e-9)
    assert found.in_tolerance == np.isclose(t, g).sum()
    ratio = error_ratio(target, g, Terms(np.abs(g)), Precision(dtype.compute, (dtype,)))
    assert found.misses == (ratio > 1).sum()
    assert found.worst is not None
    assert math.isclose(found.worst.ratio, ratio.max(), rel_tol=1e-12)
    assert found.worst.target == t[found.worst.index]
    for axis in range(len(shape)):
        others = tuple(k for k in range(len(shape)) if k != axis)
        np.testing.assert_allclose(found.strips[axis], ratio.max(axis=others), rtol=1e-12)
        assert found.miss_strips[axis].tolist() == (ratio > 1).sum(axis=others).tolist()


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16, FLOAT64])
def test_ulps_count_the_numbers_in_between(dtype: DType) -> None:
    bits = f"i{dtype.itemsize}"
    one = np.ones(7, dtype.numpy)
    off = (one.view(bits) + np.array([0, 1, -1, 2, 3, 4, 5], bits)).view(dtype.numpy)
    assert measured(off, one, dtype).ulps[:6].tolist() == [1, 2, 1, 2, 1, 0]
    around_zero = np.array([1, -1, 0], bits)
    tiny = np.where(around_zero < 0, np.iinfo(bits).min + 1, around_zero).astype(bits).view(dtype.numpy)
    zeros = np.zeros(3, dtype.numpy)
    assert measured(tiny, zeros, dtype).ulps[:2].tolist() == [1, 2]
    assert measured(tiny[:1], tiny[1:2], dtype).ulps[2] == 1  # the smallest number and its negative
    assert measured(zeros, -zeros, dtype).ulps[0] == 3


def test_effective_bits() -> None:
    golden = np.ones(1000, np.float32)
    assert measured(golden, golden).effective_bits == math.inf
    assert math.isclose(measured(golden + np.float32(2**-10), golden).effective_bits, 10)
    assert measured(np.zeros(3, np.float32), golden[:3]).effective_bits == 0


def test_many_misses_are_counted_and_the_worst_are_listed() -> None:
    golden = np.ones((70, 1000), np.float32)
    target = golden + np.linspace(1, 2, golden.size, dtype=np.float32).reshape(golden.shape)
    found = measured(target, golden)
    assert found.misses == golden.size
    assert len(found.listed) == 1000
    assert found.listed[0].index == (69, 999)
    assert found.listed[0].ratio >= found.listed[-1].ratio


def test_long_axes_are_binned() -> None:
    golden = np.zeros(10 * MOST_BINS + 1, np.float32)
    target = golden.copy()
    target[-1] = 1
    found = measured(target, golden)
    assert len(found.strips[0]) <= MOST_BINS
    assert found.miss_strips[0].sum() == found.miss_strips[0][-1] == 1


def test_the_numbers_do_not_depend_on_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_PORTION", 3)
    rng = np.random.default_rng(0)
    golden = rng.normal(size=(30, 41, 400)).astype(np.float32)
    target = golden + 1e-6 * rng.normal(size=golden.shape).astype(np.float32)
    np.save(tmp_path / "t.npy", target)
    mapped = np.load(tmp_path / "t.npy", mmap_mode="r")
    with aclnn.threads(1):
        one = measured(target, golden)
    with aclnn.threads(3):
        three = measured(mapped, golden)
    assert [metric.value(one) for metric in METRICS] == [metric.value(three) for metric in METRICS]
    assert (one.squares, one.worst, one.listed) == (three.squares, three.worst, three.listed)
    assert one.ulps.tolist() == three.ulps.tolist()
