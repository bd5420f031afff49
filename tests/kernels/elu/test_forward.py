"""The compiled loops of ELU forwards: right at any shape, stride, dtype and value, the same bits on any threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.tensor import TensorSpec
from aclnn.contract.cases import fill, kept, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.elu import fast as elu_fast
from aclnn.ops.elu import elu_case, elu_in_place_case
from tests.harness import bits, call

pytest.importorskip("numba")
DTYPES = [FLOAT32, FLOAT16, BFLOAT16]
SPECIAL = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, -104.5, -100.0, -88.0, 89.5, 1e-42, -1e-42, 6e4, -6e4])


@settings(max_examples=150)
@given(
    st.lists(st.one_of(SPECIAL, st.floats(width=32)), min_size=1, max_size=70),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.floats(-2, 2, width=32),
)
def test_any_value_is_sound(values: list[float], dtype: DType, in_place: bool, input_scale: float) -> None:
    case = (elu_in_place_case if in_place else elu_case)((len(values),), 1.3, 0.7, input_scale, dtype)
    filled = fill(case)
    with np.errstate(all="ignore"):
        filled["selfRef" if in_place else "self"].view[...] = values
    given_ = kept(views(filled, case.op), case.op)
    call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op), given_):
        assert output.sound


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, dtype: DType) -> None:
    monkeypatch.setattr(elu_fast, "PER_THREAD", 1)
    case = elu_case((5, 1031), 1.3, 0.7, 1.1, dtype)
    spread = case.but(out=TensorSpec(dtype, (5, 1031), (2100, 2), 1, storage=11000))
    for one in (case, spread):
        found = set()
        for threads in (1, 2, 3, 7):
            aclnn.cache_clear()
            with aclnn.threads(threads):
                filled = fill(one, 3)
                call(one, filled, engine="fast")
                found.add(tuple(bits(one, filled)))
        assert len(found) == 1
    aclnn.cache_clear()


@pytest.mark.parametrize("out", ["dense", "spread"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("strides", [(0, 0), (1, 0), (0, 1), (1, 70), (100, 2), (-41, -1)], ids=str)
def test_strides_of_many_blocks_give_the_bits_of_dense_tensors(
    strides: tuple[int, int], dtype: DType, out: str
) -> None:
    shape = (70, 41)
    x = np.random.default_rng(3).normal(0, 2, 8000).astype(dtype.numpy)
    start, steps = (2900 if strides[0] < 0 else 0), [s * dtype.itemsize for s in strides]
    view = np.lib.stride_tricks.as_strided(x[start:], shape, steps)
    room = np.zeros((70, 82), dtype.numpy)
    written = room[:, ::2] if out == "spread" else np.zeros(shape, dtype.numpy)
    aclnn.elu(view, 1.3, 0.7, 1.1, out=written, engine="fast")
    assert written.tobytes() == aclnn.elu(view.copy(), 1.3, 0.7, 1.1, engine="fast").tobytes()
    assert not room[:, 1::2].any()


def test_the_exponential_keeps_its_digits() -> None:
    x = -np.concatenate([np.linspace(0, 20, 200_001), np.geomspace(1e-38, 1, 200_001)]).astype(np.float32)
    exact = np.expm1(x.astype(np.float64))
    units = np.abs(aclnn.elu(x, engine="fast") - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert units.max() <= 1


def test_both_zeros_keep_their_sign() -> None:
    out = aclnn.elu(np.array([0.0, -0.0], np.float32), engine="fast")
    assert np.signbit(out).tolist() == [False, True]


def test_who_serves_what() -> None:
    small, large = np.zeros(16, np.float32), np.zeros(4096, np.float32)
    for array in (small, large):
        assert aclnn.elu.plan(array).kernel == aclnn.elu_.plan(array).kernel == "numba"
    with pytest.raises(aclnn.AclnnError, match="the input is float32 and the output float16"):
        aclnn.elu(large, out=np.zeros(4096, np.float16), engine="fast")
