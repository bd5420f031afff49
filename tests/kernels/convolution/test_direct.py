"""Convolutions tap by tap: right at any shape, stride, dtype and value, the same bits for any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.rounding import ALLOW_DOWN_PRECISION, KEEP, USE_FP16
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.convolution import direct, on_tiles
from aclnn.kernels.onednn import library as onednn
from aclnn.ops.convolution import convolution_backward_case
from aclnn.ops.convolution_forward import convolution_case
from tests.harness import assert_sound, bits, call
from tests.kernels.cases import executor

pytest.importorskip("numba")

DTYPES = [FLOAT32, BFLOAT16, FLOAT16]
SPECIAL = [np.nan, np.inf, -np.inf]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few channels in a group, either direction, any window; rows long enough for vectors and remainders."""
    axes = draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, 2, 5]))
    kernel = tuple(draw(st.sampled_from([1, 2, 3, 5, 11])) for _ in range(axes))

    def each(values: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(values) for _ in range(axes))

    stride, transposed, forwards = each(st.integers(1, 3)), draw(st.booleans()), draw(st.booleans())
    padding = each(st.integers(0, 6))
    if axes == 2 and draw(st.booleans()):
        padding = tuple(draw(st.integers(0, 4)) for _ in range(4))
    same: dict[str, Any] = {
        "batch": draw(st.integers(1, 3)),
        "in_channels": groups * draw(st.sampled_from([1, 1, 2, 3, 4, 6, 17])),
        "out_channels": groups * draw(st.sampled_from([1, 1, 2, 3, 4, 6, 17])),
        "size": each(st.integers(1, {1: 300, 2: 40, 3: 12}[axes])),
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "dilation": each(st.sampled_from([1, 1, 2, 3])),
        "output_padding": tuple(draw(st.integers(0, s - 1)) for s in stride) if transposed else 0,
        "groups": groups,
        "transposed": transposed,
        "dtype": draw(st.sampled_from([FLOAT32, *DTYPES])),
        "cube_math_type": draw(st.sampled_from([KEEP, KEEP, ALLOW_DOWN_PRECISION])),
        "device": CPU,
    }
    masks = [(True, True, True), (True, False, False), (False, True, True)]
    try:
        if forwards:
            return convolution_case(**same, has_bias=draw(st.booleans()))
        return convolution_backward_case(**same, output_mask=draw(st.sampled_from(masks)))
    except ValueError:  # no room for the kernel
        assume(False)
        raise


def is_direct(case: Case) -> bool:
    """Whether the kernels take a case; what they do not take is empty."""
    filled = fill(case)
    return not any(t.view.size == 0 for t in filled.values() if isinstance(t, aclnn.Tensor)) and (
        executor(case, filled, "fast").kernel == "direct"
    )


@settings(max_examples=150)
@given(cases(), st.integers(1, 3), st.integers(0, 99), st.lists(st.sampled_from(SPECIAL), max_size=3))
def test_any_shape_with_any_value(case: Case, threads: int, seed: int, specials: list[float]) -> None:
    assume(is_direct(case))
    filled, rng = fill(case, seed), np.random.default_rng(seed)
    inputs = [a.name for a in case.op.inputs if isinstance(filled[a.name], aclnn.Tensor)]
    for value in specials:
        view = filled[inputs[rng.integers(len(inputs))]].view
        view[tuple(rng.choice([0, n - 1, rng.integers(n)]) for n in view.shape)] = value  # corners meet padding
    with aclnn.threads(threads):
        call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


def depthwise(direction: str, **more: Any) -> Case:
    make = convolution_case if direction == "forwards" else convolution_backward_case
    usual = {"batch": 3, "in_channels": 6, "out_channels": 6, "groups": 6, "size": (40, 33), "padding": 1}
    return make(**{**usual, **more}, device=CPU)


def long_row(direction: str, length: int = 30_000) -> Case:
    return depthwise(direction, in_channels=2, out_channels=3, groups=1, size=(length,), kernel=5, batch=1)


def strided_views(direction: str) -> Case:
    """Rows that lie upside down and far apart, and a weight that is turned."""
    case = depthwise(direction)
    changed = {}
    for name, spec in case.values.items():
        shape = getattr(spec, "shape", ())
        if len(shape) == 4 and "eight" in name:
            changed[name] = spec._replace(strides=(9, 1, 1, 3), storage=None)
        elif len(shape) == 4:
            _, c, h, w = shape
            strides = (w * h * c * 2, 2 * w * h, -2 * w, 1)
            changed[name] = spec._replace(strides=strides, offset=2 * w * (h - 1), storage=None)
    return case.but("strided", **changed)


DIRECTIONS = pytest.mark.parametrize("direction", ["forwards", "backwards"])


@DIRECTIONS
def test_views_whose_rows_are_dense(direction: str) -> None:
    assert is_direct(strided_views(direction))
    assert_sound(strided_views(direction), "fast")


@DIRECTIONS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_same_bits_for_any_number_of_threads(direction: str, dtype: DType) -> None:
    for case in (depthwise(direction, dtype=dtype), depthwise(direction, stride=2, dtype=dtype), long_row(direction)):
        assert is_direct(case)
        found = set()
        for threads in (1, 2, 3, 7):
            filled = fill(case, 3)
            with aclnn.threads(threads):
                call(case, filled, engine="fast")
            found.add(tuple(bits(case, filled)))
        assert len(found) == 1


@DIRECTIONS
@pytest.mark.parametrize(
    "shape",
    [
        {"size": (150, 150), "kernel": 3},
        {"size": (6_000,), "kernel": 31, "padding": 15},
        {"size": (30, 30), "kernel": 11, "padding": 5, "batch": 1},
        {"size": (3, 3), "batch": 4},
        {"size": (20, 20), "in_channels": 64, "out_channels": 1, "groups": 1},
        {"size": (20, 20), "in_channels": 1, "out_channels": 64, "groups": 1},
        {"size": (20, 20), "in_channels": 6, "out_channels": 6, "groups": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("values", [(1.1, 0.7, 1.0), (0.1, 0.3, 1.9), (1 / 3, 1.7, 0.77)], ids=str)
def test_equal_terms_are_within_the_bound(
    direction: str, shape: dict[str, Any], values: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "matmuls_are_ahead", lambda *given: False)
    aclnn.cache_clear()
    case = depthwise(direction, **{"in_channels": 2, "out_channels": 2, "groups": 2, **shape})
    assert is_direct(case)
    filled = fill(case)
    for name, value in zip(("input", "gradOutput", "weight"), values, strict=True):
        if name in filled:
            filled[name].view[...] = value
    call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.long
@pytest.mark.parametrize("length", [2**20, 10**7])
def test_ten_million_equal_terms_are_within_the_bound(length: int) -> None:
    x, g, w = np.full((1, 1, length), 1.1, "f"), np.full((1, 1, length), 0.7, "f"), np.ones((1, 1, 3), "f")
    _, grad_weight, _ = aclnn.convolution_backward(g, x, w, None, 1, 1, 1, False, 0, 1, (True, True, False))
    exact = float(x[0, 0, 0]) * float(g[0, 0, 0]) * np.array([length - 1, length, length - 1])
    assert (abs(grad_weight[0, 0] - exact) <= (8 + length**0.5) * 2.0**-24 * exact).all()


def test_planning_is_arithmetic_and_the_workspace_small() -> None:
    """oneDNN planned the first for 10 seconds, and the second takes a gigabyte there."""
    for channels, length, taps in ((2, 2**20, 5), (1, 2**24, 3)):
        x = np.broadcast_to(np.float32(1), (1, channels, length))
        w = np.ones((channels, channels, taps), np.float32)
        plan = aclnn.convolution_backward.plan(x, x, w, None, 1, taps // 2, 1, False, 0, 1, (True, True, False))
        assert plan.kernel == "direct"
        assert plan.workspace_size < 2**18


def refusals(case: Case) -> dict[str, str]:
    return dict(executor(case, fill(case), "auto").refused)


def test_who_is_refused_and_why() -> None:
    assert "pairs of channels" in refusals(convolution_case(in_channels=32, out_channels=32, size=20))["direct"]
    for few, many, kernel, serves in (
        (4, 4, 11, "direct"),
        (6, 6, 3, "direct"),
        (8, 8, 7, "tiles"),
        (1, 20, 3, "direct"),
    ):
        for channels in ((few, many), (many, few)):
            case = convolution_case(in_channels=channels[0], out_channels=channels[1], kernel=kernel, size=20)
            assert executor(case, fill(case), "auto").kernel == serves
    for made, read, serves in ((24, 4, "tiles"), (4, 24, "tiles"), (4, 8, "direct")):
        for transposed in (False, True):
            case = convolution_case(in_channels=read, out_channels=made, size=20, transposed=transposed)
            assert executor(case, fill(case), "auto").kernel == serves
    small = depthwise("forwards", in_channels=384, out_channels=384, groups=384, size=14)
    assert executor(small, fill(small), "auto").kernel == "direct"
    rounded = depthwise("backwards", cube_math_type=USE_FP16, size=(80, 80))
    assert f"cubeMathType {USE_FP16}" in refusals(rounded)["direct"]
    case = depthwise("forwards", size=(80, 80))
    _, c, h, w = case.values["input"].shape
    last = case.values["input"]._replace(strides=(h * w * c, 1, w * c, c))
    assert "the columns of input lie 6 elements apart" in refusals(case.but("channels last", input=last))["direct"]
    assert "more than 4096" in refusals(depthwise("forwards", size=(80, 80), kernel=65, padding=32))["direct"]
    assert "residues" in refusals(depthwise("forwards", size=(500, 500), stride=9))["direct"]


def test_what_tiles_cannot_take_is_not_refused_for_speed() -> None:
    """Sums are counted within a group; where they are too long for tiles, direct kernels are still ahead of numpy."""
    many = convolution_case(in_channels=400, out_channels=2000, groups=400, kernel=15, padding=7, size=20)
    assert on_tiles.too_far(many.call) is None
    long = convolution_case(nd=1, in_channels=2, out_channels=2048, kernel=250, padding=100, size=400)
    assert executor(long, fill(long), "fast").kernel == "direct"


def test_without_onednn_it_serves_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> onednn.Library:
        raise onednn.OneDnnError("oneDNN cannot be loaded (not there)")

    monkeypatch.setattr(onednn, "library", absent)
    aclnn.cache_clear()
    assert (
        executor(depthwise("backwards", size=(80, 80)), fill(depthwise("backwards", size=(80, 80)))).kernel == "direct"
    )
    aclnn.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize("isa", ["sse41", "avx2"])
def test_lesser_instruction_sets(isa: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "shape or terms or bits"]
    environment = {**os.environ, "ACLNN_MAX_ISA": isa}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout[-3000:]
