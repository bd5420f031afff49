"""A workspace that meets a tensor, through a C program: refused as in Python, for every operator that needs one."""

from __future__ import annotations

from pathlib import Path

from aclnn import ops
from aclnn.contract.cases import Case
from tests.doors.toolchain import needs_compiler
from tests.hostile import c_cases, c_fuzz

pytestmark = needs_compiler

LARGER = {
    "aclnnConvolutionBackward": {"in_channels": 16, "out_channels": 16, "size": 12},
    "aclnnConvolution": {"in_channels": 16, "out_channels": 16, "size": 12},
    "aclnnConvTbcBackward": {"time": 16, "batch": 8, "in_channels": 32, "out_channels": 32},
    "aclnnConvTbc": {"time": 16, "batch": 8, "in_channels": 32, "out_channels": 32},
    "aclnnLstmBackward": {"steps": 8, "batch": 8, "input_size": 32, "hidden_size": 32},
    "aclnnLSTM": {"steps": 8, "batch": 8, "input_size": 32, "hidden_size": 32},
}
"""What makes a call large enough for a kernel with a workspace."""


def larger(name: str) -> Case:
    return ops.case_maker(ops.find(name))(**LARGER[name])


def test_a_workspace_that_meets_a_tensor_is_refused(tmp_path: Path) -> None:
    program = c_fuzz.build("workspaces", tmp_path)
    c_cases.write(map(larger, LARGER), tmp_path / "cases")
    assert c_fuzz.run([program, tmp_path / "cases"]).split() == sorted(LARGER)
