"""Convolutions forwards on native code: right at any size, stride, dtype and value, and where padding meets NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32
from aclnn.contract.cases import Case, fill
from aclnn.ops.conv_tbc import conv_tbc_case
from aclnn.ops.convolution_forward import convolution_case
from tests.harness import assert_sound, bits, call
from tests.ops import test_conv_tbc_forward, test_convolution_forward
from tests.strategies import strided

pytest.importorskip("numba")

DTYPES = st.sampled_from([FLOAT32, FLOAT16, BFLOAT16])
CASES = DTYPES.flatmap(lambda d: test_convolution_forward.cases(dtype=d))
OVER_TIME = DTYPES.flatmap(lambda d: test_conv_tbc_forward.cases(dtype=d)).filter(
    lambda case: not any(case.values[name].is_empty for name in ("self", "weight", "output"))
)


@settings(max_examples=100)
@given(st.one_of(CASES, OVER_TIME), st.data())
def test_any_size_stride_dtype_and_attribute_is_sound(case: Case, data: st.DataObject) -> None:
    assert_sound(data.draw(st.one_of(st.just(case), strided(case))), "fast")


@settings(max_examples=60)
@given(CASES, st.sampled_from([np.nan, np.inf, -np.inf]), st.sampled_from(["input", "weight", "bias"]), st.data())
def test_values_that_are_not_finite_meet_no_padding(case: Case, value: float, name: str, data: st.DataObject) -> None:
    """The fast engine may spread NaN of a bfloat16 input; what must be finite in float32 is."""
    if case.values[name] is None or case.values["input"].dtype is BFLOAT16:
        return
    filled, expected = fill(case), fill(case)
    where = tuple(data.draw(st.integers(0, n - 1)) for n in filled[name].view.shape)
    for one in (filled, expected):
        one[name].view[where] = value
    call(case, filled, engine="fast")
    call(case, expected, engine="reference")
    got, want = filled["output"].view, expected["output"].view
    assert (np.isnan(got) == np.isnan(want)).all()
    assert (np.isinf(got) == np.isinf(want)).all()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
def test_the_bias_is_added_before_the_result_is_rounded(dtype: object, transposed: bool) -> None:
    """1 + 2⁻¹² of a bias decide a tie that the unbiased result, rounded first, would have lost."""
    step = float(dtype.limits.eps)  # type: ignore[attr-defined]
    x = np.full((1, 1, 4), 1 + step, dtype.numpy)  # type: ignore[attr-defined]
    w = np.full((1, 1, 1), 1 + step, dtype.numpy)  # type: ignore[attr-defined]
    bias = np.array([step], dtype.numpy)  # type: ignore[attr-defined]
    out = aclnn.convolution(x, w, bias, 1, 0, 1, transposed, 0, 1, engine="fast")
    exact = np.float64(1 + step) ** 2 + step
    assert (out.astype(np.float64) == np.float64(np.float32(exact).astype(dtype.numpy))).all()  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", [convolution_case(size=9, in_channels=8), conv_tbc_case(time=40)], ids=["conv", "tbc"])
def test_same_bits_run_after_run(case: Case) -> None:
    found = set()
    for _ in range(3):
        filled = fill(case, 1)
        call(case, filled, engine="fast")
        found.add(tuple(bits(case, filled)))
    assert len(found) == 1


def test_who_serves_what() -> None:
    x, w = np.zeros((4, 16, 32, 32), np.float32), np.zeros((16, 16, 3, 3), np.float32)
    arguments = (1, 1, 1, False, 0, 1)
    assert aclnn.convolution.plan(x, w, None, *arguments).kernel == "tiles"
    assert aclnn.convolution.plan(x[:1, :, :4, :4], w, None, *arguments).kernel == "tiles"
    assert aclnn.convolution.plan(x[:1, :2, :4, :4], w[:2, :2], None, *arguments).kernel == "direct"
    empty = np.zeros((0, 16, 32, 32), np.float32)
    with pytest.raises(aclnn.AclnnError, match="it takes float32, float16 and bfloat16"):
        aclnn.convolution(x.astype(np.float64), w.astype(np.float64), None, *arguments, product="cpu", engine="fast")
    assert aclnn.convolution(empty, w, None, *arguments).shape == (0, 16, 32, 32)
