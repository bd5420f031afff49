"""The LSTM cell against its seed sample, PyTorch, finite differences, and the corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import FLOAT64, by_name
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.ops.lstm_cell import thnn_fused_lstm_cell_backward_case
from tests.harness import assert_sound, call

ENGINES = ["auto", "numpy", "reference"]
GRADIENTS = ("gradHyOptional", "gradCOptional")
OUTPUTS = ("gradGatesOut", "gradCxOut", "gradBiasOut")

Sizes = dict[str, Any]
SIZES = st.fixed_dictionaries(
    {
        "batch": st.integers(0, 5),
        "hidden_size": st.integers(0, 4),
        "has_bias": st.booleans(),
        "has_grad_hy": st.booleans(),
        "has_grad_cy": st.booleans(),
    }
)


def forward(a: np.ndarray, cx: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """hy, cy, storage of pre-activations a = [a_i a_f a_g a_o]."""
    i, f, g, o = np.split(a, 4, axis=1)
    i, f, o, g = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-f)), 1 / (1 + np.exp(-o)), np.tanh(g)
    cy = f * cx + i * g
    return o * np.tanh(cy), cy, np.concatenate([i, f, g, o], axis=1)


def fill_as_forward(case: Case, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """The case filled with what a forward leaves, and the pre-activations it came from."""
    filled = fill(case, seed)
    a = np.random.default_rng(seed).normal(size=case.values["storage"].shape)
    _, filled["cy"].view[...], filled["storage"].view[...] = forward(a, filled["cx"].view.astype(np.float64))
    return filled, a


def double(sizes: Sizes) -> Case:
    return thnn_fused_lstm_cell_backward_case(**sizes, dtype=FLOAT64, device=CPU)


def gradients(filled: dict[str, Any]) -> list[np.ndarray]:
    """The gradients of hy and cy that are given; zeros for those that are not."""
    given_ = [filled[name] for name in GRADIENTS]
    return [np.zeros(filled["cx"].spec.shape) if t is None else t.view for t in given_]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_seed_sample(engine: str) -> None:
    ones, storage = np.ones((1, 8), np.float32), np.ones((1, 32), np.float32)
    gates, cx, bias = aclnn.thnn_fused_lstm_cell_backward(ones, ones, ones, ones, storage, True, engine=engine)
    assert (cx == np.float32(1.4199743)).all()
    assert (cx.shape, gates.shape, bias.shape) == ((1, 8), (1, 32), (32,))
    assert not gates.any()
    assert not bias.any()


@pytest.mark.torch
@settings(max_examples=300)
@given(SIZES, st.integers(0, 9))
def test_against_autograd_of_the_forward_in_float64(sizes: Sizes, seed: int) -> None:
    import torch

    case = double(sizes)
    filled, pre = fill_as_forward(case, seed)
    call(case, filled)
    a, cx = (torch.tensor(x, requires_grad=True) for x in (pre, filled["cx"].view))
    i, f, g, o = a.chunk(4, dim=1)
    cy = f.sigmoid() * cx + i.sigmoid() * g.tanh()
    torch.autograd.backward([o.sigmoid() * cy.tanh(), cy], [torch.tensor(x) for x in gradients(filled)])
    assert a.grad is not None
    for name, theirs in zip(OUTPUTS, (a.grad, cx.grad, a.grad.sum(dim=0)), strict=True):
        if filled[name] is not None:
            np.testing.assert_allclose(filled[name].view, theirs.numpy(), rtol=1e-12, atol=1e-14)


@settings(max_examples=200)
@given(SIZES, st.sampled_from(["float32", "float16"]), st.integers(0, 9), st.sampled_from(["numpy", "reference"]))
def test_in_float32_and_float16_every_element_is_within_the_allowed_error(
    sizes: Sizes, dtype: str, seed: int, engine: str
) -> None:
    case = thnn_fused_lstm_cell_backward_case(**sizes, dtype=by_name(dtype))
    assert_sound(case, engine, seed)
    filled, _ = fill_as_forward(case, seed)
    call(case, filled, engine=engine)
    assert all(output.sound for output in judge(case.op, case.call, views(filled, case.op)))


@settings(max_examples=100)
@given(SIZES, st.integers(0, 9))
def test_against_central_differences(sizes: Sizes, seed: int) -> None:
    """The slope of Σ gradHy·hy + gradC·cy along a random direction in the pre-activations and the old state."""
    case = double(sizes)
    filled, a = fill_as_forward(case, seed)
    call(case, filled)
    rng, cx = np.random.default_rng(seed + 1), filled["cx"].view
    ways = [rng.normal(size=x.shape) for x in (a, cx)]

    def loss(step: float) -> float:
        hy, cy, _ = forward(a + step * ways[0], cx + step * ways[1])
        return float(sum((g * x).sum() for g, x in zip(gradients(filled), (hy, cy), strict=True)))

    slope = (loss(1e-5) - loss(-1e-5)) / 2e-5
    found = [filled[name].view for name in OUTPUTS[:2]]
    ours = sum((g * way).sum() for g, way in zip(found, ways, strict=True))
    assert abs(ours - slope) <= 1e-7 * (1 + sum(np.abs(g).sum() for g in found))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_null_gradient_is_zero_and_both_null_give_zeros(engine: str) -> None:
    case = thnn_fused_lstm_cell_backward_case(3, 2)
    filled = fill(case)
    cx, cy, storage = (filled[name].view for name in ("cx", "cy", "storage"))
    given_ = filled["gradHyOptional"].view
    for null, zero in (((None, given_), (given_ * 0, given_)), ((given_, None), (given_, given_ * 0))):
        found = aclnn.thnn_fused_lstm_cell_backward(*null, cx, cy, storage, True, engine=engine)
        expected = aclnn.thnn_fused_lstm_cell_backward(*zero, cx, cy, storage, True, engine=engine)
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))
    nothing = aclnn.thnn_fused_lstm_cell_backward(None, None, cx, cy, storage, True, engine=engine)
    assert [a.shape for a in nothing] == [(3, 8), (3, 2), (8,)]
    assert not any(a.any() for a in nothing)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_bias_its_gradient_is_none_and_what_is_given_for_it_stays(engine: str) -> None:
    case = thnn_fused_lstm_cell_backward_case(3, 2)
    filled = fill(case)
    inputs = [filled[name].view for name in (*GRADIENTS, "cx", "cy", "storage")]
    gates, cx, bias = aclnn.thnn_fused_lstm_cell_backward(*inputs, False, engine=engine)
    assert bias is None
    kept = np.full(8, 7.0, np.float32)
    out = (np.empty_like(gates), np.empty_like(cx), kept)
    aclnn.thnn_fused_lstm_cell_backward(*inputs, False, out=out, engine=engine)
    assert (out[0] == gates).all()
    assert (kept == 7).all()
    aclnn.thnn_fused_lstm_cell_backward(*inputs, False, out=(*out[:2], None), engine=engine)
    with pytest.raises(aclnn.AclnnError, match="gradBiasOut is null; it must be given") as refused:
        aclnn.thnn_fused_lstm_cell_backward(*inputs, True, out=(*out[:2], None), engine=engine)
    assert refused.value.code == 161001


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("batch", "hidden"), [(0, 3), (3, 0), (0, 0)])
def test_empty_sizes(batch: int, hidden: int, engine: str) -> None:
    case = thnn_fused_lstm_cell_backward_case(batch, hidden)
    filled = fill(case)
    call(case, filled, engine=engine)
    assert filled["gradBiasOut"].view.tolist() == [0] * 4 * hidden


@pytest.mark.parametrize("engine", ["numpy", "reference"])
@pytest.mark.parametrize("name", [*GRADIENTS, "cx", "cy", "storage"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_nan_and_inf_follow_ieee_arithmetic(name: str, value: float, engine: str) -> None:
    case = thnn_fused_lstm_cell_backward_case(3, 2)
    filled = fill(case, 1)
    filled[name].view[1, 0] = value
    call(case, filled, engine=engine)
    assert all(output.sound for output in judge(case.op, case.call, views(filled, case.op)))
    found = [np.isfinite(filled[output].view) for output in OUTPUTS[:2]]
    assert all(finite[[0, 2]].all() for finite in found), "another sequence was touched"
    saturates = name == "cy" and np.isinf(value)  # tanh(±inf) is ±1
    assert saturates == all(finite.all() for finite in found)


def test_a_null_gradient_does_not_hide_nan_in_the_gates() -> None:
    case = thnn_fused_lstm_cell_backward_case(2, 2, has_grad_hy=False, has_grad_cy=False)
    filled = fill(case)
    filled["storage"].view[0, 0] = np.nan
    call(case, filled)
    assert np.isnan(filled["gradGatesOut"].view).sum(axis=1).tolist() == [2, 0]  # da_i and da_g of that element
