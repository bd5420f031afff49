"""Same bits through every door: Python, C and PyTorch, on one and on two threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill, views
from aclnn.contract.model import Op
from tests.doors.c_door import CCall
from tests.doors.toolchain import needs_compiler
from tests.harness import bits
from tests.hostile.test_same_bits import run_bits

SEED = 1


def c_bits(case: Case) -> list[bytes]:
    filled = fill(case, seed=SEED)
    made = CCall(case, filled)
    code, message = made.outcome()
    made.destroy()
    assert code == 0, message
    return bits(case, filled)


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("op", ops.all_ops(), ids=lambda o: o.name)
def test_python_and_c(op: Op, threads: int) -> None:
    case = next(ops.cases(op))
    with aclnn.threads(threads):
        assert c_bits(case) == run_bits(case, "auto") == c_bits(case)


def through(value: Any, convert: Any) -> Any:
    """Arrays of an argument or a result, converted; everything else as it is."""
    if type(value) in (list, tuple):
        return type(value)(through(one, convert) for one in value)
    return convert(value) if hasattr(value, "dtype") and hasattr(value, "shape") else value


def flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [one for part in result for one in flat(part)]
    return [] if result is None else [result]


@pytest.mark.torch
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("op", [o for o in ops.all_ops() if o.fresh], ids=lambda o: o.name)
def test_python_and_pytorch(op: Op, threads: int) -> None:
    torch = pytest.importorskip("torch")
    case = next(ops.cases(op))
    filled = fill(case, seed=SEED)
    arrays = {**filled, **views(filled, op)}
    given = {a.name: through(arrays[a.name], np.ascontiguousarray) for a in op.inputs}
    as_torch = {name: through(value, lambda v: torch.from_numpy(v.copy())) for name, value in given.items()}
    call = getattr(aclnn, op.python)._call
    with aclnn.threads(threads):
        from_numpy = flat(call(given, None, case.device, None))
        from_torch = flat(call(as_torch, None, case.device, None))
    assert all(isinstance(found, torch.Tensor) for found in from_torch)
    assert [f.numpy().tobytes() for f in from_torch] == [f.tobytes() for f in from_numpy]
