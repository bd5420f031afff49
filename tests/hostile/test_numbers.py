"""Numbers under stress: the whole float range, long sums, cancellation. Judged by what rounding can explain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import aclnn
from aclnn import ops
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.contract.cases import Case, fill, kept, views
from aclnn.golden.judge.sound import judge
from tests.harness import call, tensors

ENGINES = ("auto", "numpy", "reference")


def specials(dtype: DType) -> Any:
    """Every kind of number there is: zeros, subnormals, the smallest and largest, ordinary ones, Inf and NaN."""
    limits = dtype.limits
    tiny, least, most = (float(v) for v in (limits.smallest_normal, limits.smallest_subnormal, limits.max))
    positive = [0.0, least, 3 * least, tiny, tiny * 1.5, 1e-3, 0.5, 1.0, 3.0, 88.0, most**0.5, most / 2, most, np.inf]
    return np.array([*positive, *(-p for p in positive), np.nan]).astype(dtype.numpy)


def finite(values: Any) -> Any:
    return values[np.isfinite(values.astype(np.float64))]


def sound(case: Case, engine: str, fill_with: Callable[[str, tuple[int, ...]], Any]) -> dict[str, Any]:
    """Runs the case on these contents and judges every output; the filled case comes back."""
    filled = fill(case)
    for arg in case.op.inputs:
        tensors = filled[arg.name] if isinstance(filled[arg.name], list) else [filled[arg.name]]
        for tensor in tensors if arg.is_tensor and arg.name not in case.data else ():
            if tensor is not None:
                tensor.view[...] = fill_with(arg.domain, tensor.spec.shape)
    given = kept(views(filled, case.op), case.op)
    call(case, filled, engine=engine)
    for output in judge(case.op, case.call, views(filled, case.op), given):
        assert output.sound, f"{case.op.name} on {engine}: {output.name} is {output.worst:.3g} of what is allowed"
    return filled


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("is_result", [False, True])
def test_elu_backward_on_every_pair_of_special_numbers(dtype: DType, engine: str, is_result: bool) -> None:
    values = specials(dtype)
    case = ops.case_maker(ops.find("elu_backward"))(shape=(len(values), len(values)), dtype=dtype, is_result=is_result)
    turn = iter((np.broadcast_to(values, (len(values),) * 2), np.broadcast_to(values[:, None], (len(values),) * 2)))
    sound(case, engine, lambda domain, shape: next(turn))


@pytest.mark.parametrize("engine", ENGINES)
def test_inf_times_an_exp_that_only_float64_has(engine: str) -> None:
    """exp(−256) is 0 in float32: Inf times it is NaN there, and Inf in float64. Elsewhere Inf is the only answer."""
    case = ops.case_maker(ops.find("elu_backward"))(shape=(1,), dtype=FLOAT16, is_result=False)
    for x, may_be_nan in ((-256.0, True), (-80.0, False), (3.0, False)):
        turn = iter((np.inf, x))
        filled = sound(case, engine, lambda domain, shape, turn=turn: next(turn))  # type: ignore[misc]
        filled["gradInput"].view[...] = np.nan
        assert judge(case.op, case.call, views(filled, case.op))[0].sound == may_be_nan


def drawn_cases(*dtypes: DType) -> list[Case]:
    """A small case of every operator and dtype."""
    return [ops.case_maker(op)(dtype=dtype, device=CPU) for op in ops.all_ops() for dtype in dtypes]


def named(case: Case) -> str:
    return f"{case.op.name} {case.call.specs(case.op.inputs[0].name)[0].dtype}"


def of_the_whole_range(dtype: DType, rng: np.random.Generator, share: float, only_finite: bool, gates: bool) -> Any:
    """Contents of which a share is special; gates may keep to the interval that activations leave them in."""
    values = finite(specials(dtype)) if only_finite else specials(dtype)
    within = np.array([0.0, float(dtype.limits.smallest_subnormal), 0.5, 1.0 - dtype.unit, 1.0])
    choices = {"gate": within, "tanh": np.array([*within, *-within])} if gates else {}

    def contents(domain: str, shape: tuple[int, ...]) -> Any:
        special = rng.choice(choices.get(domain, values), shape).astype(dtype.numpy)
        return np.where(rng.random(shape) < share, special, rng.uniform(0.05, 0.95, shape).astype(dtype.numpy))

    return contents


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", drawn_cases(FLOAT32, FLOAT16, BFLOAT16), ids=named)
@settings(max_examples=5)
@example(158208838, 1.0, False, False)  # a product overflowed and met the opposite infinity
@given(st.integers(0, 2**32 - 1), st.sampled_from((0.1, 0.5, 1.0)), st.booleans(), st.booleans())
def test_numbers_of_the_whole_range(
    case: Case, engine: str, seed: int, share: float, only_finite: bool, gates: bool
) -> None:
    dtype = case.call.specs(case.op.inputs[0].name)[0].dtype
    sound(case, engine, of_the_whole_range(dtype, np.random.default_rng(seed), share, only_finite, gates))


FAULTS = [
    # operator, where an input is Inf, which element of an output is spoilt, by what factor
    ("elu", ("self", (0, 0)), ("out", (0, 0)), np.nan),
    ("elu_backward", ("gradOutput", (0, 0)), ("gradInput", (0, 1)), 1.01),
    ("conv_tbc", ("self", (0, 0, 0)), ("output", (4, 1, 0)), 1.01),
    ("convolution", ("input", (0, 0, 0, 0)), ("output", (1, 0, 0, 0)), 1.01),
    ("thnn_fused_lstm_cell", ("inputGates", (0, 0)), ("storageOut", (0, 0)), 0.99),
    ("thnn_fused_lstm_cell", ("inputGates", (0, 0)), ("storageOut", (0, 0)), np.nan),
    ("thnn_fused_lstm_cell", ("inputGates", (0, 0)), ("hyOut", (0, 0)), 1.01),
    ("thnn_fused_lstm_cell", ("cx", (0, 0)), ("cyOut", (0, 0)), np.nan),
    ("thnn_fused_lstm_cell", ("cx", (0, 0)), ("hyOut", (0, 0)), 1.01),
    ("thnn_fused_lstm_cell_backward", ("gradHyOptional", (0, 0)), ("gradGatesOut", (0, 0)), np.nan),
    ("thnn_fused_lstm_cell_backward", ("gradHyOptional", (0, 0)), ("gradGatesOut", (1, 0)), 1.01),
    ("lstm", ("input", (0, 0, 0)), ("output", (2, 1, 0)), 1.01),
    ("lstm_backward", ("dy", (0, 0, 0)), ("dxOut", (2, 1, 0)), 1.01),
]


@pytest.mark.parametrize(("op", "infinite", "spoilt", "factor"), FAULTS)
def test_a_fault_beside_an_infinity_shows(op: str, infinite: Any, spoilt: Any, factor: float) -> None:
    case = ops.case_maker(ops.find(op))(dtype=FLOAT32)
    filled = fill(case)
    filled[infinite[0]].view[infinite[1]] = np.inf
    given = kept(views(filled, case.op), case.op)
    call(case, filled, engine="numpy")
    assert all(output.sound for output in judge(case.op, case.call, views(filled, case.op), given))
    filled[spoilt[0]].view[spoilt[1]] *= factor
    assert not all(output.sound for output in judge(case.op, case.call, views(filled, case.op), given))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", drawn_cases(FLOAT32, FLOAT16), ids=named)
def test_catastrophic_cancellation(case: Case, engine: str) -> None:
    """Large terms of both signs that nearly cancel: the error is bounded by Σ|terms|, and only by that."""
    rng = np.random.default_rng(0)
    large = 100.0 if case.call.specs(case.op.inputs[0].name)[0].dtype is FLOAT16 else 1e6

    def cancelling(domain: str, shape: tuple[int, ...]) -> Any:
        if domain in ("gate", "tanh"):
            return rng.uniform(0.05, 0.95, shape)
        return rng.choice([large, -large], shape) * (1 + rng.normal(0, 1e-6, shape))

    sound(case, engine, cancelling)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("op", ["lstm", "lstm_backward", "thnn_fused_lstm_cell", "thnn_fused_lstm_cell_backward"])
def test_lstms_on_numbers_of_the_whole_range_answer_in_kind(op: str, engine: str) -> None:
    """A NaN everywhere comes back as NaN, and no extreme of a range raises, warns or stays unwritten."""
    case = ops.case_maker(ops.find(op))(dtype=FLOAT32)
    for values in (np.array([np.nan]), specials(FLOAT32), finite(specials(FLOAT32))):
        rng, filled = np.random.default_rng(0), fill(case)
        for name, tensor in tensors(filled).items():
            arg = case.op.by_name[name.partition("[")[0]]
            unwritten = 12345.0
            tensor.view[...] = rng.choice(values, tensor.spec.shape) if arg.given else unwritten
        call(case, filled, engine=engine)
        for name, tensor in tensors(filled).items():
            if case.op.by_name[name.partition("[")[0]].out:
                assert not (tensor.view == unwritten).any(), name
                assert values.size > 1 or np.isnan(tensor.view).all(), name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", [0.7, None], ids=["equal terms", "cancelling terms"])
def test_a_bias_gradient_of_a_million_terms(engine: str, value: float | None) -> None:
    long_sum(10**6, engine, value)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", [0.7, None], ids=["equal terms", "cancelling terms"])
def test_a_bias_gradient_of_ten_million_terms(engine: str, value: float | None) -> None:
    long_sum(10**7, engine, value)


def long_sum(terms: int, engine: str, value: float | None) -> None:
    """gradBias and gradWeight of a 1×1 convolution are sums over every position; held to (8 + √K)·u·Σ|terms|."""
    rng = np.random.default_rng(1)
    grad, x = (np.full((1, 1, terms), value or 0, np.float32) for _ in "gx")
    if value is None:
        grad[:], x[:] = rng.normal(0, 1, grad.shape), rng.normal(0, 1, x.shape)
    weight, flags = np.ones((1, 1, 1), np.float32), [False, True, True]
    _, grad_weight, grad_bias = aclnn.convolution_backward(
        grad, x, weight, [1], 1, 0, 1, False, 0, 1, flags, 0, product="cpu", engine=engine
    )
    products = grad.astype(np.float64) * x
    for found, exact, total in (
        (grad_weight, products.sum(), abs(products).sum()),
        (grad_bias, grad.astype(np.float64).sum(), abs(grad.astype(np.float64)).sum()),
    ):
        bound = (8 + terms**0.5) * FLOAT32.unit * total
        assert abs(float(found.reshape(-1)[0]) - exact) <= bound


def test_thousands_of_small_calls_leave_nothing_behind() -> None:
    x = np.array([-1, 1], np.float32)
    expected = aclnn.elu(x).tobytes()
    for i in range(2000):
        assert aclnn.elu(x).tobytes() == expected
        aclnn.elu(x, alpha=float(i))  # a plan of its own
    info = aclnn.cache_info()
    assert info.size <= info.limit
