"""ELU and ELU in place against PyTorch, against their own gradient, and the corners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.contract.cases import fill
from aclnn.ops.elu import elu_case, elu_reference
from tests.harness import bits, call

SCALES = st.floats(-2, 2, width=32)
ENGINES = ["auto", "numpy", "reference"]


@pytest.mark.torch
@settings(max_examples=200)
@given(st.lists(st.floats(-30, 30), max_size=8), SCALES, SCALES, SCALES)
def test_reference_against_torch(points: list[float], alpha: float, scale: float, inner: float) -> None:
    import torch

    x = np.array(points, np.float64)
    theirs = torch.ops.aten.elu(torch.from_numpy(x), alpha, scale, inner).numpy()
    np.testing.assert_allclose(elu_reference(x, alpha, scale, inner), theirs, rtol=1e-14, atol=1e-300)


@settings(max_examples=100)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8), st.floats(0.1, 2), st.floats(0.1, 2), st.floats(0.1, 2))
def test_its_central_differences_are_its_backward(
    points: list[float], alpha: float, scale: float, inner: float
) -> None:
    x = np.array(points, np.float64)
    x[np.abs(x) < 1e-3] = 0.5  # the derivative jumps at 0
    g, step = np.linspace(0.5, 1.5, x.size), 1e-6
    with aclnn.product("cpu"):
        ahead, behind = aclnn.elu(x + step, alpha, scale, inner), aclnn.elu(x - step, alpha, scale, inner)
        slope = (ahead - behind) / (2 * step)
        from_input = aclnn.elu_backward(g, alpha, scale, inner, False, x)
        from_result = aclnn.elu_backward(g, alpha, scale, inner, True, aclnn.elu(x, alpha, scale, inner))
    np.testing.assert_allclose(from_input, g * slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(from_result, g * slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16, FLOAT64], ids=str)
def test_nan_inf_and_both_zeros(dtype: DType, engine: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype.numpy)
    out = aclnn.elu(x, 2.0, 3.0, 1.0, product="cpu", engine=engine).astype(np.float64)
    assert np.isnan(out[0])
    assert out[1:].tolist() == [np.inf, -6, 0, 0]
    assert np.signbit(out[3:]).tolist() == [False, True]


@pytest.mark.parametrize("engine", ENGINES)
def test_small_inputs_keep_their_digits(engine: str) -> None:
    x = np.array([-1e-6, -1e-20, -1e-30], np.float32)
    np.testing.assert_array_max_ulp(aclnn.elu(x, engine=engine), np.expm1(x.astype(np.float64)).astype(np.float32), 1)


def test_in_place_returns_what_it_was_given() -> None:
    x = np.array([-1.0, 0.0, 2.0], np.float32)
    expected = aclnn.elu(x, 1.5)
    assert aclnn.elu_(x, 1.5) is x
    assert x.tobytes() == expected.tobytes()


def test_in_place_writes_through_strides() -> None:
    storage = np.arange(-6, 6, dtype=np.float32)
    kept = storage.copy()
    aclnn.elu_(storage[::-2])
    assert (storage[::2] == kept[::2]).all()
    assert (storage[1::2] == aclnn.elu(kept[1::2])).all()


def test_in_place_refuses_what_it_cannot_write() -> None:
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    with pytest.raises(aclnn.AclnnError, match="aclnnInplaceElu: selfRef is read-only; an output must be writable"):
        aclnn.elu_(x)
    with pytest.raises(aclnn.AclnnError, match="so two indexes meet the same element"):
        aclnn.elu_(np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (2, 3), (0, 4)))


def test_in_place_in_two_phases() -> None:
    x = np.array([-1.0, 2.0], np.float32)
    plan = aclnn.elu_.plan(x, repeatable=True)
    once = aclnn.elu(x)
    assert plan.run() is x
    assert (x == once).all()
    plan.run()
    assert (x == aclnn.elu(once)).all()


def test_out_may_be_the_input_itself() -> None:
    case = elu_case((3, 4), 1.5)
    expected, filled = fill(case, 2), fill(case, 2)
    call(case, expected)
    filled["out"] = filled["self"]
    call(case, filled)
    assert bits(case, filled) == bits(case, expected)


@pytest.mark.torch
def test_torch_in_place() -> None:
    import torch

    x = torch.tensor([-1.0, 2.0], dtype=torch.bfloat16)
    expected = torch.nn.functional.elu(x)
    assert aclnn.elu_(x) is x
    assert torch.equal(x, expected)
