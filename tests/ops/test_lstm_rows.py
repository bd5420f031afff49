"""LSTMs of variable length whose sequences come as rows, [T·B, I]: the same memory as [T, B, I], through every door."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.base.dtype import FLOAT16, FLOAT32, DType
from aclnn.base.tensor import TensorSpec
from aclnn.cases.trial import try_case
from aclnn.contract.cases import Case, fill
from aclnn.ops.lstm import lstm_backward_case
from aclnn.ops.lstm_forward import lstm_case
from tests.doors.c_door import CCall
from tests.doors.toolchain import needs_compiler

ENGINES = ("auto", "numpy", "reference")
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"lengths": (4, 2, 1)},
    "deep": {"lengths": (4, 4, 0), "layers": 2, "bidirectional": True},
    "no bias": {"lengths": (3, 2, 2), "has_bias": False},
}


def rows(spec: TensorSpec) -> TensorSpec:
    """A contiguous [T, B, I] as [T·B, I]."""
    steps, batch, size = spec.shape
    return spec._replace(shape=(steps * batch, size), strides=(size, 1))


def pair(make: Any, dtype: DType = FLOAT32, **shape: Any) -> tuple[Case, Case]:
    """A call as its contract has it, and the same with everything as rows that may be."""
    whole: Case = make(4, 3, 5, 2, dtype=dtype, **shape)
    assert whole.op.rows is not None
    return whole, whole.but(**{name: rows(whole.values[name]) for name in whole.op.rows.args})


def python_arguments(case: Case, filled: dict[str, Any]) -> dict[str, Any]:
    shown = [a for a in case.op.inputs if a.python != "-" and a.name in filled and a.snake != "output_mask"]
    return {a.snake: filled[a.name] for a in shown}


def flat(results: Any) -> list[np.ndarray]:
    found = []
    for result in results if isinstance(results, tuple) else (results,):
        found += result if isinstance(result, list) else [result]
    return [array for array in found if array is not None]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [lstm_case, lstm_backward_case], ids=["forward", "backward"])
def test_rows_give_the_same_bits(make: Any, shape: str, dtype: DType, engine: str) -> None:
    whole, as_rows = pair(make, dtype, **SHAPES[shape])
    function = getattr(aclnn, whole.op.python)
    expected = flat(function(**python_arguments(whole, fill(whole, 1)), engine=engine))
    for _ in range(2):  # the second call may take a shorter way
        found = flat(function(**python_arguments(as_rows, fill(as_rows, 1)), engine=engine))
        assert found[0].shape == (expected[0].shape[0] * expected[0].shape[1], expected[0].shape[2])
        assert all(a.tobytes() == b.tobytes() for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("make", [lstm_case, lstm_backward_case], ids=["forward", "backward"])
def test_outputs_may_be_rows_or_not_and_other_memory_may_be_set(make: Any) -> None:
    whole, as_rows = pair(make, **SHAPES["deep"])
    expected = flat(getattr(aclnn, whole.op.python)(**python_arguments(whole, fill(whole, 1))))
    function, given = getattr(aclnn, whole.op.python), python_arguments(as_rows, fill(as_rows, 1))
    for case in (whole, as_rows):
        out = tuple(fill(case, 1)[a.name] for a in case.op.fresh)
        views = [[t.view for t in o] if isinstance(o, list) else o.view for o in out]
        plan = function.plan(**given, out=tuple(views), repeatable=True)
        other = np.full_like(views[0], np.nan)
        for target in (views[0], other):
            plan.set_address(case.op.fresh[0].snake, target)
            plan.run(np.empty(plan.workspace_size, np.uint8))
            assert target.tobytes() == expected[0].tobytes()


def test_rows_with_strides_are_seen_as_they_lie() -> None:
    whole, _ = pair(lstm_case, **SHAPES["plain"])
    given = python_arguments(whole, fill(whole, 1))
    spread = np.full((24, 10), np.nan, np.float32)
    spread[::2, ::-2] = given["input"].view.reshape(12, 5)
    expected = aclnn.lstm(**given)[0]
    assert (aclnn.lstm(**{**given, "input": spread[::2, ::-2]})[0] == expected.reshape(12, -1)).all()


@pytest.mark.parametrize("make", [lstm_case, lstm_backward_case], ids=["forward", "backward"])
@pytest.mark.parametrize("change", ["no batch sizes", "batch first", "too few rows", "a length more"])
def test_rows_that_say_too_little_are_refused_with_one_sentence(make: Any, change: str) -> None:
    _, as_rows = pair(make, **SHAPES["plain"])
    given = python_arguments(as_rows, fill(as_rows, 1))
    if change == "no batch sizes":
        given["batch_sizes"] = None
    elif change == "batch first":
        given["batch_first"] = True
    elif change == "too few rows":
        given["input"] = given["input"].view[:11]
    else:
        given["batch_sizes"] = np.array([3, 2, 1, 1, 0])
    with pytest.raises(
        aclnn.AclnnError, match=r"input has rank 2 \(shape \[1[12], 5\]\); it must be 3 or 2 \(\[T·B"
    ) as e:
        getattr(aclnn, as_rows.op.python)(**given)
    assert e.value.code == 161002


def test_values_of_batch_sizes_are_still_judged() -> None:
    _, as_rows = pair(lstm_case, **SHAPES["plain"])
    given = python_arguments(as_rows, fill(as_rows, 1)) | {"batch_sizes": np.array([1, 2, 3, 4])}
    with pytest.raises(aclnn.AclnnError, match="batchSizes"):
        aclnn.lstm(**given)


@pytest.mark.parametrize("empty", [(0, 3), (4, 0)], ids=["no steps", "no batch"])
def test_nothing_may_be_rows_too(empty: tuple[int, int]) -> None:
    steps, batch = empty
    whole = lstm_backward_case(steps, batch, 5, 2, lengths=(0,) * batch)
    as_rows = whole.but(**{n: rows(whole.values[n]) for n in ("input", "dy", "dxOut")})
    dx, dh, *_ = aclnn.lstm_backward(**python_arguments(as_rows, fill(as_rows)))
    assert (dx.shape, dh.shape) == ((0, 5), (1, batch, 2))


@needs_compiler
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [lstm_case, lstm_backward_case], ids=["forward", "backward"])
def test_rows_through_c(make: Any, shape: str) -> None:
    whole, as_rows = pair(make, **SHAPES[shape])
    found = []
    for case in (whole, as_rows):
        filled = fill(case, 1)
        call = CCall(case, filled)
        assert call.outcome() == (0, "")
        call.destroy()
        out = [filled[a.name] for a in case.op.outputs]
        found.append([t.owner.tobytes() for o in out for t in (o if isinstance(o, list) else [o])])
    assert found[0] == found[1]


@needs_compiler
def test_a_row_too_few_through_c() -> None:
    _, as_rows = pair(lstm_backward_case, **SHAPES["plain"])
    short = as_rows.but(input=as_rows.values["input"]._replace(shape=(11, 5)))
    call = CCall(short, fill(short, 1))
    code, said = call.outcome()
    assert (code, "input has rank 2 (shape [11, 5])" in said) == (161002, True)
    call.destroy()
    assert ctypes.c_void_p(call.executor.value).value is None


def test_a_case_of_rows_runs_and_is_judged() -> None:
    for make in (lstm_case, lstm_backward_case):
        _, as_rows = pair(make, **SHAPES["deep"])
        trial = try_case(as_rows, check=True, seconds=0)
        assert trial.error is None
        assert trial.verdict == "pass"


def test_a_result_of_rows_is_compared() -> None:
    _, as_rows = pair(lstm_case, **SHAPES["plain"])
    filled = fill(as_rows, 1)
    given = {a.name: filled[a.name] for a in ops.find("aclnnLSTM").inputs}
    names = [a.name for a in as_rows.op.fresh]
    results = dict(zip(names, aclnn.lstm(**python_arguments(as_rows, filled)), strict=True))
    assert results["output"].ndim == 2
    assert aclnn.compare(results, op="aclnnLSTM", arguments=given).passed
    results["output"][7, 1] += 1
    assert not aclnn.compare(results, op="aclnnLSTM", arguments=given).passed


@pytest.mark.torch
def test_rows_through_torch() -> None:
    import torch

    import aclnn.torch

    whole, _ = pair(lstm_case, **SHAPES["deep"])
    filled = fill(whole, 1)
    x, sizes = (torch.from_numpy(filled[name].view) for name in ("input", "batchSizes"))
    params, hx = ([torch.from_numpy(t.view) for t in filled[name]] for name in ("params", "hx"))

    def loss(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, hy, cy = aclnn.torch.lstm(x, params, hx, sizes, num_layers=2, bidirectional=True)
        return y, (y * y).sum() + hy.sum() + cy.sum()

    grads = []
    for given in (x, x.reshape(12, 5)):
        given = given.clone().requires_grad_()
        y, value = loss(given)
        assert y.dim() == given.dim()
        value.backward()
        grads.append(given.grad.reshape(x.shape))
    assert torch.equal(*grads)
    compiled = torch.compile(lambda x: loss(x)[0], backend="eager", fullgraph=True)
    assert torch.equal(compiled(x.reshape(12, 5)), loss(x)[0].reshape(12, -1))
