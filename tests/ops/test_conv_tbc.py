"""The convolution over time against its seed sample, PyTorch, finite differences, and the corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.foreign_arrays import to_torch
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.ops.conv_tbc import conv_tbc_backward_case
from tests.harness import assert_sound, call

ENGINES = ["auto", "numpy", "reference"]
GRADIENTS = ("gradInput", "gradWeight", "gradBias")
INPUTS = ("self", "input", "weight", "bias")
FLOATS = st.sampled_from([FLOAT32, FLOAT16, BFLOAT16])

Sizes = dict[str, Any]


@st.composite
def sizes(draw: st.DrawFn) -> Sizes:
    """Any convolution over time that has an output."""
    kernel, pad = draw(st.integers(1, 5)), draw(st.integers(0, 4))
    shortest = max(1, kernel - 2 * pad)
    found = {name: draw(st.integers(1, 4)) for name in ("batch", "in_channels", "out_channels")}
    return found | {"kernel": kernel, "pad": pad, "time": draw(st.integers(shortest, shortest + 4))}


def double(sizes: Sizes) -> Case:
    return conv_tbc_backward_case(**sizes, dtype=FLOAT64, device=CPU)


def arrays(filled: dict[str, Any], *names: str) -> list[np.ndarray]:
    return [filled[name].view for name in names or INPUTS]


def forward(x: np.ndarray, w: np.ndarray, bias: np.ndarray, pad: int) -> np.ndarray:
    """By definition: every output step is the sum over the taps that fall inside the input."""
    steps = len(x) + 2 * pad + 1 - len(w)
    y = np.zeros((steps, x.shape[1], w.shape[2])) + bias
    for u in range(steps):
        for k in range(len(w)):
            if 0 <= u - pad + k < len(x):
                y[u] += np.einsum("bc,co->bo", x[u - pad + k], w[k])
    return y


def by_torch(case: Case, filled: dict[str, Any]) -> dict[str, np.ndarray]:
    """The gradients that PyTorch computes in the dtypes of the case."""
    import torch

    given_ = [to_torch(np.array(a, order="C")) for a in arrays(filled)]
    found = torch.ops.aten.conv_tbc_backward(*given_, case.values["pad"])
    return {name: t.to(torch.float64).numpy() for name, t in zip(GRADIENTS, found, strict=True)}


def assert_within_the_allowed_error(case: Case, filled: dict[str, Any], gradients: dict[str, Any]) -> None:
    for output in judge(case.op, case.call, {**views(filled, case.op), **gradients}):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_seed_sample(engine: str) -> None:
    g, x, w = (np.ones(shape, np.float32) for shape in ((5, 1, 2), (5, 1, 2), (1, 2, 2)))
    results = aclnn.conv_tbc_backward(g, x, w, np.ones(2, np.float32), 0, 1, engine=engine)
    for result, shape, value in zip(results, ((5, 1, 2), (1, 2, 2), (2,)), (2, 5, 5), strict=True):
        assert result.shape == shape
        assert (result == value).all()


@pytest.mark.torch
@settings(max_examples=300)
@given(sizes(), st.integers(0, 9), st.sampled_from(["numpy", "reference"]))
def test_against_torch_in_float64(sizes: Sizes, seed: int, engine: str) -> None:
    case = double(sizes)
    filled = assert_sound(case, engine, seed)
    assert_within_the_allowed_error(case, filled, by_torch(case, filled))


@pytest.mark.torch
@settings(max_examples=300)
@given(sizes(), FLOATS, st.integers(0, 9), st.sampled_from(["auto", "numpy"]))
def test_against_torch_in_every_dtype(sizes: Sizes, dtype: DType, seed: int, engine: str) -> None:
    """Torch adds taps in float16 and bfloat16 themselves, so its float64 gradients of the same inputs count."""
    case, wide = conv_tbc_backward_case(**sizes, dtype=dtype), double(sizes)
    filled, widened = assert_sound(case, engine, seed), fill(wide)
    for mine, copy in zip(arrays(filled), arrays(widened), strict=True):
        copy[...] = mine
    assert_within_the_allowed_error(wide, widened, by_torch(wide, widened))
    if dtype is FLOAT32:
        assert_within_the_allowed_error(case, filled, by_torch(case, filled))


@settings(max_examples=100)
@given(sizes(), st.integers(0, 9), st.sampled_from(["numpy", "reference"]))
def test_against_central_differences(sizes: Sizes, seed: int, engine: str) -> None:
    """The slope of Σ self·output along a random direction in input, weight and bias."""
    case = double(sizes)
    filled = fill(case, seed)
    call(case, filled, engine=engine)
    g, *given_ = arrays(filled)
    rng = np.random.default_rng(seed)
    ways = [rng.normal(size=a.shape) for a in given_]

    def loss(step: float) -> float:
        x, w, bias = (a + step * way for a, way in zip(given_, ways, strict=True))
        return float((g * forward(x, w, bias, sizes["pad"])).sum())

    slope = (loss(1e-3) - loss(-1e-3)) / 2e-3
    ours = sum((a * way).sum() for a, way in zip(arrays(filled, *GRADIENTS), ways, strict=True))
    assert ours == pytest.approx(slope, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_inf_reach_what_depends_on_them_and_never_meet_the_padding(value: float, engine: str) -> None:
    case = conv_tbc_backward_case(time=4, kernel=3, pad=2)  # output step u meets the inputs u − 2, u − 1 and u
    filled = fill(case)
    filled["weight"].view[...] = 1
    filled["self"].view[0, 0, 1] = value  # the first output step: meets padding, padding, input 0
    call(case, filled, engine=engine)
    grad_x, grad_w, grad_b = (~np.isfinite(a) for a in arrays(filled, *GRADIENTS))
    expected = np.zeros_like(grad_x)
    expected[0, 0] = True
    assert (grad_x == expected).all()
    expected = np.zeros_like(grad_w)
    expected[2, :, 1] = True
    assert (grad_w == expected).all()
    assert grad_b.tolist() == [False, True, False, False]
    assert np.isnan(filled["gradBias"].view[1]) == np.isnan(value)


@pytest.mark.parametrize("engine", ENGINES)
def test_zero_times_inf_is_nan_inside_the_input(engine: str) -> None:
    case = conv_tbc_backward_case(time=3, kernel=1)
    filled = fill(case)
    filled["weight"].view[...] = 0
    filled["self"].view[1, 0, 0] = np.inf
    call(case, filled, engine=engine)
    assert np.isnan(filled["gradInput"].view[1, 0]).all()
    assert np.isfinite(filled["gradInput"].view[[0, 2]]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_cube_math_type_rounds_the_inputs_but_not_what_the_bias_sums(engine: str) -> None:
    fine = np.float32(1 + 2**-12)  # HF32 rounds it up, float16 down
    g, x, w = (np.full((1, 1, 1), fine) for _ in range(3))
    seen = {0: fine, 1: np.float32(1 + 2**-11), 2: np.float32(1), 3: np.float32(1 + 2**-11)}
    for cube, value in seen.items():
        results = aclnn.conv_tbc_backward(g, x, w, w[0, 0], 0, cube, engine=engine)
        assert results[0] == results[1] == value * value
        assert results[2] == fine


@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("value", [0.1, 0.7])
def test_long_sums_of_equal_terms_keep_the_bound(value: float, engine: str) -> None:
    """200,000 terms in gradBias and gradWeight, 4,096 in gradInput."""
    for sizes in ({"time": 1000, "batch": 200, "out_channels": 2}, {"time": 2, "out_channels": 4096}):
        case = conv_tbc_backward_case(**sizes, in_channels=1, kernel=1)
        filled = fill(case)
        for name in ("self", "input", "weight"):
            filled[name].view[...] = value
        call(case, filled, engine=engine)
        assert_within_the_allowed_error(case, filled, {})


def test_refusals_say_what_is_wrong() -> None:
    g, x, w, bias = arrays(fill(conv_tbc_backward_case(time=5, kernel=2)))
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.conv_tbc_backward(g, x, w, bias, 1)
    assert refused.value.code == 161002
    assert refused.value.message == (
        "aclnnConvTbcBackward: self has shape [4, 2, 4] but must have shape [6, 2, 4] "
        "([input.shape[0] + pad × 2 + 1 − weight.shape[0], input.shape[1], weight.shape[2]])."
    )
    with pytest.raises(aclnn.AclnnError, match="bias is null; it must be given") as missing:
        aclnn.conv_tbc_backward(g, x, w, None, 0)
    assert missing.value.code == 161001
    with pytest.raises(aclnn.AclnnError, match="input has dtype float16 but self has dtype float32"):
        aclnn.conv_tbc_backward(g, x.astype(np.float16), w, bias, 0)
    empty = [a[:0] for a in (g, x)]
    with pytest.raises(aclnn.AclnnError, match=r"self.shape is \[0, 2, 4\]; each element must be 1..2147483646"):
        aclnn.conv_tbc_backward(empty[0], x[:1], w, bias, 0)


@pytest.mark.torch
def test_torch_tensors_in_torch_tensors_out() -> None:
    import torch

    case = conv_tbc_backward_case(pad=1, dtype=BFLOAT16)
    filled = fill(case)
    results = aclnn.conv_tbc_backward(*(to_torch(a.copy()) for a in arrays(filled)), 1)
    call(case, filled)
    for result, name in zip(results, GRADIENTS, strict=True):
        assert result.dtype == torch.bfloat16
        assert (result.float().numpy() == filled[name].view.astype(np.float32)).all()
