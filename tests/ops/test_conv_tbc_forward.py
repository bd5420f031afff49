"""Convolution over time forwards against PyTorch and as the adjoint of its backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import FLOAT64
from aclnn.contract.cases import Case, fill
from aclnn.ops.conv_tbc import conv_tbc_case

ENGINES = ["auto", "numpy", "reference"]


@st.composite
def cases(draw: st.DrawFn, **fixed: Any) -> Case:
    time, kernel, pad = draw(st.integers(0, 6)), draw(st.integers(1, 4)), draw(st.integers(0, 3))
    assume(time + 2 * pad + 1 - kernel >= 0)
    batch, channels, filters = (draw(st.integers(0, 3)) for _ in range(3))
    return conv_tbc_case(time, batch, channels, filters, kernel, pad, device=CPU, **fixed)


def arrays(case: Case, seed: int) -> list[Any]:
    filled = fill(case, seed)
    return [np.array(filled[n].view, order="C") for n in ("self", "weight", "bias")]


@pytest.mark.torch
@settings(max_examples=100)
@given(cases(dtype=FLOAT64), st.integers(0, 9))
def test_results_and_gradients_are_pytorchs(case: Case, seed: int) -> None:
    import torch

    pad, specs = case.values["pad"], [case.values[n] for n in ("self", "weight", "output")]
    assume(not any(s.is_empty for s in specs))
    x, w, b = (torch.tensor(a, requires_grad=True) for a in arrays(case, seed))
    theirs = torch.conv_tbc(x, w, b, pad)
    g = torch.randn(theirs.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with aclnn.product("cpu"):
        torch.testing.assert_close(aclnn.conv_tbc(x.detach(), w.detach(), b.detach(), pad), theirs.detach())
        back = aclnn.conv_tbc_backward(g, x.detach(), w.detach(), b.detach(), pad)
    torch.testing.assert_close(list(back), list(torch.autograd.grad(theirs, [x, w, b], g)))


@settings(max_examples=60)
@given(cases(dtype=FLOAT64), st.integers(0, 9))
def test_its_differences_are_its_backward(case: Case, seed: int) -> None:
    """It is linear in each argument, so a difference of any size is exact."""
    given_, moved, pad = arrays(case, seed), arrays(case, seed + 1), case.values["pad"]
    with aclnn.product("cpu"):
        y = aclnn.conv_tbc(*given_, pad)
        g = np.random.default_rng(seed).normal(size=y.shape)
        back = aclnn.conv_tbc_backward(g, *given_, pad)
        for which, (change, grad) in enumerate(zip(moved, back, strict=True)):
            other = [a + change if i == which else a for i, a in enumerate(given_)]
            difference = aclnn.conv_tbc(*other, pad) - y
            np.testing.assert_allclose((g * difference).sum(), (grad * change).sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_reaches_the_steps_whose_window_holds_it(engine: str) -> None:
    x = np.ones((5, 1, 1), np.float32)
    x[3] = np.nan
    out = aclnn.conv_tbc(x, np.ones((2, 1, 1), np.float32), np.zeros(1, np.float32), 1, engine=engine)
    assert np.isnan(out[:, 0, 0]).tolist() == [False, False, False, True, True, False]


def test_an_output_below_nothing_is_refused() -> None:
    x, w, b = np.ones((1, 1, 1), np.float32), np.ones((4, 1, 1), np.float32), np.ones(1, np.float32)
    with pytest.raises(aclnn.AclnnError, match=r"aclnnConvTbc: self.shape\[0\] \+ .* is -2; it must be ≥ 0"):
        aclnn.conv_tbc(x, w, b, 0, product="cpu")
