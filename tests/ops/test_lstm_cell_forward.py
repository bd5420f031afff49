"""The LSTM cell forwards against PyTorch's own, its gradient against autograd, and the corners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn

ENGINES = ["auto", "numpy", "reference"]


@pytest.mark.torch
@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 5), st.booleans(), st.integers(0, 9))
def test_states_and_gradients_are_those_of_pytorchs_lstm_cell(
    batch: int, hidden: int, has_bias: bool, seed: int
) -> None:
    import torch

    made = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=made, dtype=torch.float64).requires_grad_()

    gates, hidden_gates, cx = draw(batch, 4 * hidden), draw(batch, 4 * hidden), draw(batch, hidden)
    biases = [draw(4 * hidden), draw(4 * hidden)] if has_bias else [None, None]
    i, f, g, o = (gates + hidden_gates + (sum(biases) if has_bias else 0)).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    hy = o * cy.tanh()
    arrays = [a if a is None else a.detach() for a in (gates, hidden_gates, cx, *biases)]
    with aclnn.product("cpu"):
        ours = aclnn.thnn_fused_lstm_cell(*arrays)
        torch.testing.assert_close(ours, (hy.detach(), cy.detach(), torch.cat([i, f, g, o], 1).detach()))
        grad_hy, grad_cy = draw(batch, hidden).detach(), draw(batch, hidden).detach()
        back = aclnn.thnn_fused_lstm_cell_backward(grad_hy, grad_cy, arrays[2], *ours[1:], has_bias)
    wanted = [gates, cx, *biases[:1]] if has_bias else [gates, cx]
    theirs = torch.autograd.grad((hy * grad_hy + cy * grad_cy).sum(), wanted)
    torch.testing.assert_close([b for b in back if b is not None], list(theirs))


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_stays_in_its_place_and_infinite_gates_saturate(engine: str) -> None:
    gates = np.zeros((1, 8), np.float32)
    gates[0, [0, 3, 5, 6]] = np.nan, -np.inf, np.inf, np.inf  # i of the first; f, g of the second; o of the first
    hy, cy, storage = aclnn.thnn_fused_lstm_cell(
        gates, np.zeros_like(gates), np.ones((1, 2), np.float32), engine=engine
    )
    assert np.isnan(storage[0]).tolist() == [True] + [False] * 7
    assert storage[0, [3, 5, 6]].tolist() == [0, 1, 1]
    assert np.isnan(cy[0]).tolist() == np.isnan(hy[0]).tolist() == [True, False]


@pytest.mark.parametrize(("missing", "there"), [("input", "hidden"), ("hidden", "input")])
def test_one_bias_alone_is_refused(missing: str, there: str) -> None:
    gates, bias = np.zeros((1, 8), np.float32), np.zeros(8, np.float32)
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.thnn_fused_lstm_cell(gates, gates, np.zeros((1, 2), np.float32), **{f"{there}_bias": bias})
    assert refused.value.code == 161001
    assert refused.value.message == (
        f"aclnnThnnFusedLstmCell: {missing}BiasOptional is null; it must be given when {there}BiasOptional is given."
    )
