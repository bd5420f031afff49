"""Convolutions forwards against PyTorch, as the adjoint of their backward, and the corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import FLOAT64
from aclnn.base.rounding import to_hf32
from aclnn.contract.cases import Case, fill
from aclnn.ops.convolution_forward import convolution_case
from tests.harness import call

ENGINES = ["auto", "numpy", "reference"]
ATTRIBUTES = ("stride", "padding", "dilation", "transposed", "outputPadding", "groups")


@st.composite
def cases(draw: st.DrawFn, **fixed: Any) -> Case:
    """Small convolutions with an output."""
    nd, groups, transposed = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.booleans())
    sizes: dict[str, Any] = {"groups": groups, "transposed": transposed, "has_bias": draw(st.booleans())}
    sizes |= {name: groups * draw(st.integers(1, 3)) for name in ("in_channels", "out_channels")}
    for name, low, high in (("size", 1, 5), ("kernel", 1, 3), ("stride", 1, 3), ("padding", 0, 2), ("dilation", 1, 2)):
        sizes[name] = tuple(draw(st.integers(low, high)) for _ in range(nd))
    if transposed:
        sizes["output_padding"] = tuple(draw(st.integers(0, s - 1)) for s in sizes["stride"])
    try:
        case = convolution_case(nd, draw(st.integers(1, 3)), **sizes, **fixed)
    except ValueError:
        assume(False)
    assume(not case.values["output"].is_empty)
    return case


def arrays(case: Case, seed: int) -> list[Any]:
    filled = fill(case, seed)
    return [None if filled[n] is None else np.array(filled[n].view, order="C") for n in ("input", "weight", "bias")]


def attributes(case: Case) -> list[Any]:
    return [case.values[name] for name in ATTRIBUTES]


@pytest.mark.torch
@settings(max_examples=150)
@given(cases(dtype=FLOAT64, device=CPU), st.integers(0, 9))
def test_results_and_gradients_are_pytorchs(case: Case, seed: int) -> None:
    import torch

    x, w, b = (a if a is None else torch.tensor(a, requires_grad=True) for a in arrays(case, seed))
    theirs = torch.ops.aten.convolution(x, w, b, *attributes(case))
    with aclnn.product("cpu"):
        ours = aclnn.convolution(*(a if a is None else a.detach() for a in (x, w, b)), *attributes(case))
        torch.testing.assert_close(ours, theirs.detach())
        g = torch.randn(theirs.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        mask, bias_sizes = [True, True, b is not None], None if b is None else list(b.shape)
        back = aclnn.convolution_backward(g, x.detach(), w.detach(), bias_sizes, *attributes(case), mask)
    wanted = [t for t in (x, w, b) if t is not None]
    torch.testing.assert_close([a for a in back if a is not None], list(torch.autograd.grad(theirs, wanted, g)))


@settings(max_examples=100)
@given(cases(dtype=FLOAT64, device=CPU), st.integers(0, 9))
def test_its_differences_are_its_backward(case: Case, seed: int) -> None:
    """It is linear in each argument, so a difference of any size is exact: ⟨g, y(x + d) − y(x)⟩ = ⟨gradInput, d⟩."""
    given_, moved = arrays(case, seed), arrays(case, seed + 1)
    with aclnn.product("cpu"):
        y = aclnn.convolution(*given_, *attributes(case))
        g = np.random.default_rng(seed).normal(size=y.shape)
        mask, bias_sizes = (True, True, given_[2] is not None), None if given_[2] is None else given_[2].shape
        back = aclnn.convolution_backward(g, given_[0], given_[1], bias_sizes, *attributes(case), mask)
        for which, (array, change, grad) in enumerate(zip(given_, moved, back, strict=True)):
            if array is not None:
                other = [a + change if i == which else a for i, a in enumerate(given_)]
                difference = aclnn.convolution(*other, *attributes(case)) - y
                np.testing.assert_allclose((g * difference).sum(), (grad * change).sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("transposed", [False, True])
def test_nan_and_inf_reach_what_they_meet_and_padding_takes_no_part(transposed: bool, engine: str) -> None:
    case = convolution_case(1, 1, 1, 1, size=4, kernel=3, padding=1, transposed=transposed)
    filled = fill(case)
    filled["input"].view[...] = [[[1, 2, 3, np.nan]]]
    filled["weight"].view[...] = [[[np.inf, 1, 1]]] if not transposed else [[[1, 1, np.inf]]]
    call(case, filled, engine=engine)
    out = filled["output"].view[0, 0]
    assert np.isfinite(out[0])  # its infinite tap meets only padding
    assert out[1] == np.inf
    assert np.isnan(out[2:]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_inputs_are_rounded_as_cube_math_type_says(engine: str) -> None:
    x, w = (np.random.default_rng(s).normal(size=(1, 1, 3)).astype(np.float32) for s in (0, 1))
    out = aclnn.convolution(x, w, None, 1, 0, 1, False, 0, 1, cube_math_type=3, engine=engine)
    exact = np.convolve(to_hf32(x).astype(np.float64)[0, 0], to_hf32(w).astype(np.float64)[0, 0][::-1], "valid")
    np.testing.assert_array_max_ulp(out[0, 0], exact.astype(np.float32), 2)


def test_numbers_stand_for_all_axes() -> None:
    x, w = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)
    one = aclnn.convolution(x, w, None, 2, 1, 1, False, 0, 1)
    each = aclnn.convolution(x, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)
    assert (one == each).all()


def test_an_output_below_nothing_is_refused() -> None:
    x, w = np.ones((1, 1, 1), np.float32), np.ones((1, 1, 1), np.float32)
    with pytest.raises(aclnn.AclnnError, match=r"\(input size − 1\) × stride .* is \[-1\]; each element must be ≥ 0"):
        aclnn.convolution(x, w, None, 1, 1, 1, True, 0, 1)
