"""The compiled ELU loops: right at any shape, stride, dtype and value, with the same bits on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.tensor import TensorSpec
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.elu import fast as elu_fast
from aclnn.kernels.native import jit
from aclnn.ops.elu import elu_backward_case
from tests.harness import assert_sound, bits, call

pytest.importorskip("numba")
DTYPES = [FLOAT32, FLOAT16, BFLOAT16]
SPECIAL = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, -104.5, -100.0, -88.0, 89.5, 1e-42, -1e-42, 6e4, -6e4])


@settings(max_examples=200)
@given(
    st.lists(st.one_of(SPECIAL, st.floats(width=32)), min_size=1, max_size=70),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.floats(-2, 2, width=32),
    st.sampled_from([1.3, 0.0, 2.0**-60, 2.0**-61, 1e-20, 1e-38, 1e-44, 1e30]),
)
def test_any_value_is_sound(
    values: list[float], dtype: DType, is_result: bool, input_scale: float, alpha: float
) -> None:
    case = elu_backward_case((len(values),), alpha, 0.7, input_scale, is_result, dtype)
    filled = fill(case)
    with np.errstate(all="ignore"):
        filled["selfOrResult"].view[...] = values
        filled["gradOutput"].view[-1] = np.nan
    call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound


@pytest.mark.parametrize("offset", [0, 1, 17])
@pytest.mark.parametrize("is_result", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_large_outputs_are_streamed_past_the_caches(
    monkeypatch: pytest.MonkeyPatch, dtype: DType, is_result: bool, offset: int
) -> None:
    size = 2 * 1024 + 777
    shifted = TensorSpec(dtype, (size,), (1,), offset, storage=size + offset + 3)
    case = elu_backward_case((size,), 1.3, 0.7, 1.1, is_result, dtype).but(gradInput=shifted)
    plain = assert_sound(case, "fast")
    aclnn.cache_clear()
    monkeypatch.setattr(elu_fast, "STREAMED", 1)
    monkeypatch.setattr(elu_fast, "_waits_for_memory", lambda call: True)
    streamed = assert_sound(case, "fast")
    aclnn.cache_clear()
    assert bits(case, plain) == bits(case, streamed)


@pytest.mark.parametrize(
    ("dtype", "is_result", "streamed"), [(FLOAT32, False, True), (FLOAT16, False, False), (FLOAT16, True, True)]
)
def test_what_waits_for_arithmetic_is_not_streamed(
    monkeypatch: pytest.MonkeyPatch, dtype: DType, is_result: bool, streamed: bool
) -> None:
    loaded: list[str] = []
    load = jit.load
    monkeypatch.setattr(jit, "load", lambda name, types: loaded.append(name) or load(name, types))
    case = elu_backward_case((elu_fast.STREAMED // dtype.itemsize,), is_result=is_result, dtype=dtype)
    elu_fast.elu_backward_fast(case.call, 1)
    assert loaded == ["elu.backward_streamed" if streamed else "elu.backward"]


@pytest.mark.parametrize("is_result", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, dtype: DType, is_result: bool) -> None:
    monkeypatch.setattr(elu_fast, "PER_THREAD", 1)
    monkeypatch.setattr(elu_fast, "PER_THREAD_PLAIN", 1)
    case = elu_backward_case((5, 1031), 1.3, 0.7, 1.1, is_result, dtype)
    spread = case.but(gradInput=TensorSpec(dtype, (5, 1031), (2100, 2), 1, storage=11000))
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


LAYOUTS = {
    "one number": ((3, 1500), (0, 0), (1500, 1)),
    "a number per row": ((70, 41), (1, 0), (41, 1)),
    "a row for all": ((70, 41), (0, 1), (41, 1)),
    "turned": ((70, 41), (41, 1), (1, 70)),
    "both turned": ((70, 41), (1, 70), (1, 70)),
    "channels last": ((3, 5, 33, 7), (1155, 231, 7, 1), (1155, 1, 35, 5)),
    "every other": ((2100,), (2,), (3,)),
    "backwards": ((40, 60), (-60, -1), (60, 1)),
    "three of four": ((700, 3), (4, 1), (3, 1)),
}


@pytest.mark.parametrize("out", ["dense", "spread", "backwards"])
@pytest.mark.parametrize("is_result", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_strides_of_many_blocks_give_the_bits_of_dense_tensors(
    layout: Layout, dtype: DType, is_result: bool, out: str
) -> None:
    shape, *inputs = layout
    dense = elu_backward_case(shape, 1.3, 0.7, 1.1, is_result, dtype)
    step = {"dense": 1, "spread": 2, "backwards": -1}[out]
    written = tuple(step * s for s in dense.call["gradInput"].strides)
    case = dense.but(
        gradOutput=_laid(dtype, shape, inputs[0]),
        selfOrResult=_laid(dtype, shape, inputs[1]),
        gradInput=_laid(dtype, shape, written),
    )
    filled, plain = fill(case, 5), fill(dense)
    for name in ("gradOutput", "selfOrResult"):
        plain[name].view[...] = filled[name].view
    call(case, filled, engine="fast")
    call(dense, plain, engine="fast")
    assert filled["gradInput"].view.tobytes() == plain["gradInput"].view.tobytes()


Layout = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _laid(dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...]) -> TensorSpec:
    """A view with these strides whose elements all lie in its storage, and some more behind it."""
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    before = -sum(r for r in reach if r < 0)
    return TensorSpec(dtype, shape, strides, before, storage=before + sum(r for r in reach if r > 0) + 4)


@pytest.mark.parametrize("which", ["gradOutput", "selfOrResult"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_in_place(dtype: DType, which: str) -> None:
    case = elu_backward_case((3000,), 1.5, dtype=dtype)
    expected, filled = fill(case, 2), fill(case, 2)
    call(case, expected, engine="fast")
    filled["gradInput"] = filled[which]
    call(case, filled, engine="fast")
    assert bits(case, filled) == bits(case, expected)


def test_the_exponential_is_within_two_units() -> None:
    x = np.linspace(-87.3, 88.7, 400_001).astype(np.float32)
    x = np.concatenate([x, -np.abs(x)])
    slope = aclnn.elu_backward(np.ones_like(x), 1.0, 1.0, -1.0, False, -np.abs(x), engine="fast")
    exact = -np.exp(np.abs(x).astype(np.float64))
    finite = np.abs(exact) < np.finfo(np.float32).max
    units = np.abs(slope[finite] - exact[finite]) / np.spacing(np.abs(exact[finite]).astype(np.float32))
    assert units.max() <= 2


@pytest.mark.parametrize("alpha", [2.0**-30, 2.0**-60, 2.0**-62, 2.0**-90, 2.0**-120])
def test_slopes_of_tiny_alphas_keep_their_digits(alpha: float) -> None:
    x, large = np.linspace(-8, 0, 1001).astype(np.float32), np.float32(2.0**40)
    slope = aclnn.elu_backward(np.full_like(x, large), alpha, 1.0, 1.0, False, x, engine="fast")
    exact = float(large) * alpha * np.exp(x.astype(np.float64))
    assert np.abs(slope / exact - 1).max() <= (2e-2 if alpha < 2.0**-100 else 4 * 2.0**-24)


@pytest.mark.parametrize("alpha", [6.0, 1e38])
def test_slopes_of_large_alphas_end_at_zero(alpha: float) -> None:
    x = [-103, -104, -104.5, -105, -120, -132, -133, -134, -1e3, -1e38, -np.inf]
    case = elu_backward_case((len(x),), alpha, 1.0, 1.0, False, FLOAT32)
    filled = fill(case)
    filled["selfOrResult"].view[...], filled["gradOutput"].view[...] = x, 1
    call(case, filled, engine="fast")
    assert all(output.sound for output in judge(case.op, case.call, views(filled, case.op)))
    assert not filled["gradInput"].view[-4:].any()


def _plan(case: Case, **settings: Any) -> aclnn.Executor:
    filled = fill(case)
    given_ = {a.name: filled[a.name] for a in case.op.inputs}
    return aclnn.elu_backward._plan(given_, filled["gradInput"], case.device, settings.get("engine"), False)


def test_who_serves_what() -> None:
    small, large = elu_backward_case((4, 4)), elu_backward_case((64, 64))
    assert _plan(large).kernel == _plan(small).kernel == "numba"
    other = large.but(gradInput=TensorSpec(FLOAT16, (64, 64), (64, 1), storage=4096))
    assert _plan(other).kernel == "numpy"
    with pytest.raises(aclnn.AclnnError, match="gradOutput is float32 and gradInput float16"):
        _plan(other, engine="fast")


def test_a_bound_run_follows_its_memory() -> None:
    """The second run looks up no address: it must notice new memory, and a stream's run must not disturb it."""
    x = np.linspace(-3, 3, 5000).astype(np.float32)
    first, second = np.empty_like(x), np.empty_like(x)
    plan = aclnn.elu_backward.plan(x, 1.0, 1.0, 1.0, False, x, out=first, engine="fast", repeatable=True)
    expected = plan.run().copy()
    for _ in range(2):
        first.fill(0)
        assert (plan.run() == expected).all()
    plan.set_address("grad_input", second)
    for _ in range(2):
        first.fill(0)
        second.fill(0)
        with aclnn.Stream() as stream:
            plan.run(stream=stream)
            assert plan.run() is second
        assert (second == expected).all()
        assert not first.any()
