"""ELU against its seed sample, PyTorch, finite differences, and the corners."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.ops.elu import elu_backward_case, elu_backward_reference
from tests.harness import bits, call
from tests.strategies import strided

FINITE = st.floats(-3, 3, width=32)
SCALES = st.floats(-2, 2, width=32)
SHAPES = st.lists(st.integers(0, 5), max_size=5).map(tuple)


CASES = st.builds(
    elu_backward_case,
    shape=SHAPES,
    alpha=st.floats(0, 2, width=32),
    scale=SCALES,
    input_scale=SCALES,
    is_result=st.booleans(),
    dtype=st.sampled_from([FLOAT32, FLOAT16, BFLOAT16]),
).flatmap(strided)


def test_the_seed_sample() -> None:
    x = np.array([-2, -1, 0, 1], np.float32)
    out = aclnn.elu_backward(x, 1.0, 1.0, 1.0, True, x)
    assert out.tolist() == [2, 0, 0, 1]
    assert np.signbit(out).tolist() == [False, True, False, False]


@pytest.mark.torch
@settings(max_examples=300)
@given(CASES, st.integers(0, 9))
def test_against_torch_in_float64_and_in_the_cases_own_dtype(case: Case, seed: int) -> None:
    import torch

    filled = fill(case, seed)
    g, x = filled["gradOutput"].view, filled["selfOrResult"].view
    scales = [case.values[n].rounded_to(FLOAT32) for n in ("alpha", "scale", "inputScale")]
    is_result = case.values["isResult"]
    wide = [torch.from_numpy(a.astype(np.float64, order="C")) for a in (g, x)]
    theirs = torch.ops.aten.elu_backward(wide[0], *scales, is_result, wide[1]).numpy()
    ours = elu_backward_reference(g, *scales, is_result, x)
    np.testing.assert_allclose(ours, theirs, rtol=4e-15, atol=0)
    with aclnn.product("cpu"):
        doubled = aclnn.elu_backward(wide[0], *scales, is_result, wide[1])
    np.testing.assert_allclose(doubled.numpy(), theirs, rtol=1e-14, atol=1e-300)
    narrow = [_torch(a) for a in (g, x)]
    result = aclnn.elu_backward(narrow[0], *scales, is_result, narrow[1])
    assert isinstance(result, torch.Tensor)
    assert result.dtype == narrow[0].dtype
    of_torch = torch.ops.aten.elu_backward(narrow[0], *scales, is_result, narrow[1])
    for found in (result, of_torch):
        (judged,) = judge(case.op, case.call, {**views(filled, case.op), "gradInput": found.double().numpy()})
        assert judged.sound, f"{judged.worst:.3g} times the allowed error off"


def _torch(array: np.ndarray) -> object:
    from aclnn.base.foreign_arrays import to_torch

    return to_torch(array.copy())


@settings(max_examples=100)
@given(st.lists(FINITE, min_size=1, max_size=8), st.floats(0.1, 2), st.floats(0.1, 2), st.floats(0.1, 2), st.booleans())
def test_against_central_differences(
    points: list[float], alpha: float, scale: float, inner: float, is_result: bool
) -> None:
    x = np.array(points, np.float64)
    x[np.abs(x) < 1e-3] = 0.5  # the derivative jumps at 0

    def forward(v: np.ndarray) -> np.ndarray:
        return np.where(v > 0, scale * v, alpha * scale * np.expm1(v * inner))

    step = 1e-6
    slope = (forward(x + step) - forward(x - step)) / (2 * step)
    g = np.linspace(0.5, 1.5, x.size)
    given_ = forward(x) if is_result else x
    ours = aclnn.elu_backward(g, alpha, scale, inner, is_result, given_, product="cpu")
    np.testing.assert_allclose(ours, g * slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16, FLOAT64], ids=str)
def test_nan_inf_and_both_zeros(dtype: DType, engine: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], dtype.numpy)
    g = np.array([1, 1, 1, 1, 1, np.nan, np.inf], dtype.numpy)
    with aclnn.product("cpu"), aclnn.engine(engine):
        out = aclnn.elu_backward(g, 2.0, 3.0, 1.0, False, x).astype(np.float64)
        assert np.isnan(out).tolist() == [True, False, False, False, False, True, False]
        assert out[1:5].tolist() == [3, 0, 6, 6]  # exp(-inf) is 0; both zeros take the "otherwise" branch
        assert out[6] == np.inf
        out = aclnn.elu_backward(g, 2.0, 3.0, 1.0, True, x).astype(np.float64)
        assert np.isnan(out).tolist() == [True, False, False, False, False, True, False]
        assert out[1:5].tolist() == [3, -np.inf, 6, 6]


def test_a_gradient_of_another_dtype_is_rounded_twice() -> None:
    g = np.array([1 + 2**-9], np.float32).astype(np.float16)
    x = np.ones(1, np.float16)
    out = np.empty(1, ml_dtypes.bfloat16)
    aclnn.elu_backward(g, 1.0, 1 + 2**-11, 1.0, False, x, out=out)
    assert out.astype(np.float32) == np.float16(np.float32(g[0]) * np.float32(1 + 2**-11)).astype(ml_dtypes.bfloat16)


def test_negative_scales_apply_the_formula_as_written() -> None:
    x = np.array([-1.0, 2.0], np.float32)
    out = aclnn.elu_backward(np.ones(2, np.float32), 1.0, -2.0, -3.0, True, x)
    assert out.tolist() == [-3 * (-1 - 2), -2]


def test_scalars_of_any_castable_dtype() -> None:
    x = np.array([-1.0, 2.0], np.float32)
    expected = aclnn.elu_backward(x, 1.0, 1.0, 1.0, True, x)
    for one in (1, True, np.float16(1), np.int8(1), np.array(1.0), np.uint64(1)):
        assert (aclnn.elu_backward(x, one, one, one, True, x) == expected).all()


@pytest.mark.parametrize("which", ["gradOutput", "selfOrResult"])
def test_in_place(which: str) -> None:
    case = elu_backward_case((3, 4), 1.5)
    expected, filled = fill(case, 2), fill(case, 2)
    call(case, expected)
    filled["gradInput"] = filled[which]
    call(case, filled)
    assert bits(case, filled) == bits(case, expected)


def test_float64_is_refused_with_a_sentence_that_helps() -> None:
    x = np.zeros(2)
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.elu_backward(x, 1.0, 1.0, 1.0, True, x)
    assert refused.value.message == (
        "aclnnEluBackward: gradOutput has dtype float64; on Atlas A2 it must be float32, float16 or bfloat16 "
        "(product cpu takes float64)."
    )
