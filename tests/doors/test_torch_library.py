"""Every operator as torch.ops.aclnn.*: declared as PyTorch wants it, the same numbers as through Python, and named."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.base.foreign_arrays import to_torch
from aclnn.contract.cases import Case, fill
from aclnn.contract.model import HIDDEN, Op
from tests.harness import bits, call

torch = pytest.importorskip("torch")
pytest.importorskip("aclnn.torch")
pytestmark = pytest.mark.torch

CASES = [
    pytest.param(case, id=f"{op.name}-{i}-{case.note}")
    for op in ops.all_ops()
    for i, case in enumerate(islice(ops.cases(op), 4))
]


def arguments(case: Case, seed: int = 0) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A filled case as PyTorch gets it: contiguous tensors, Python numbers."""
    filled, positional, named = fill(case, seed), [], {}
    for arg in case.op.inputs:
        if arg.python == HIDDEN:
            continue
        value = as_torch(filled[arg.name])
        if arg.keyword_only:
            named[arg.snake] = value
        else:
            positional.append(value)
    return tuple(positional), named


def as_torch(value: Any) -> Any:
    if hasattr(value, "view") and hasattr(value, "owner"):
        return to_torch(np.ascontiguousarray(value.view).reshape(value.spec.shape))
    if isinstance(value, list):
        return [as_torch(v) for v in value]
    if hasattr(value, "bits"):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def overload(op: Op) -> Any:
    return getattr(torch.ops.aclnn, op.python).default


@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_pytorch_accepts_the_declaration(op: Op) -> None:
    positional, named = arguments(ops.case_maker(op)())
    with aclnn.product("cpu"):
        outcome = torch.library.opcheck(overload(op), positional, named)
    assert set(outcome.values()) == {"SUCCESS"}


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_as_through_python(case: Case) -> None:
    filled = fill(case)
    call(case, filled)
    positional, named = arguments(case)
    with aclnn.product(case.device):
        result = overload(case.op)(*positional, **named)
    results = positional[:1] if result is None else result if isinstance(result, tuple) else (result,)
    flat = [t for r in results for t in (r if isinstance(r, list) else [r]) if t is not None]
    got = [t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"" for t in flat]
    idle = {arg.name: None for arg in case.op.outputs if not arg.takes_part(case.call)}  # PyTorch has none of them
    assert got == bits(case, filled | idle)


@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_fake_results_have_the_shapes_and_dtypes_of_real_ones(op: Op) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    case = ops.case_maker(op)()
    positional, named = arguments(case)
    real = overload(op)(*positional, **named)
    with FakeTensorMode() as mode:
        faked = torch.utils._pytree.tree_map_only(torch.Tensor, mode.from_tensor, (positional, named))
        fake = overload(op)(*faked[0], **faked[1])
    described = [
        torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: (t.shape, t.dtype, t.stride()), made)
        for made in (real, fake)
    ]
    assert described[0] == described[1]
