"""The whole house in half a minute: one small call per operator and per door."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.contract.model import Op
from tests.doors.toolchain import PROGRAMS, compile_and_run, needs_compiler
from tests.harness import assert_sound

X = np.array([-2, -1, 0, 1], np.float32)


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_every_operator_computes(op: Op, engine: str) -> None:
    assert_sound(ops.case_maker(op)(), engine)


def test_python_call_plan_and_stream() -> None:
    assert aclnn.elu_backward(X, 1.0, 1.0, 1.0, True, X).tolist() == [2, 0, 0, 1]
    out = np.empty(4, np.float32)
    plan = aclnn.elu_backward.plan(X, 1.0, 1.0, 1.0, True, X, out=out)
    with aclnn.Stream() as stream:
        plan.run(np.empty(plan.workspace_size, np.uint8), stream)
    assert out.tolist() == [2, 0, 0, 1]


def test_a_refusal_has_a_code_and_a_sentence() -> None:
    with pytest.raises(aclnn.AclnnError, match="alpha is -1; it must be ≥ 0 when isResult") as refused:
        aclnn.elu_backward(X, -1.0, 1.0, 1.0, True, X)
    assert refused.value.code == 161002


@pytest.mark.torch
def test_torch_tensors_in_torch_tensors_out() -> None:
    import torch

    x = torch.tensor(X).to(torch.bfloat16)
    out = aclnn.elu_backward(x, 1.0, 1.0, 1.0, True, x)
    assert isinstance(out, torch.Tensor)
    assert out.tolist() == [2, 0, 0, 1]


@needs_compiler
def test_a_cpp_program(tmp_path: Path) -> None:
    assert compile_and_run(PROGRAMS / "tiny.cpp", tmp_path) == "[2, -0, 0, 1]\n"


def test_compare_computes_its_own_golden() -> None:
    gradient = aclnn.elu_backward(X, 1.0, 1.0, 1.0, False, X)
    arguments = {"gradOutput": X, "alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": False, "selfOrResult": X}
    assert aclnn.compare({"gradInput": gradient}, op="aclnnEluBackward", arguments=arguments).sound
    found = aclnn.compare({"gradInput": gradient * 1.01}, op="aclnnEluBackward", arguments=arguments)
    assert not found.passed
    assert not found.sound
