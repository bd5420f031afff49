"""Right results without what makes the kernels fast: oneDNN, numba, instruction sets; and beside torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn.kernels.onednn import library as onednn

pytest.importorskip("numba")

ROOT = Path(__file__).parents[2]

WITHOUT = """
import sys, warnings
warnings.simplefilter("ignore")  # advice about dropout
sys.modules.update(dict.fromkeys({missing}))  # importing one of them fails
{before}
from aclnn import ops
from tests.harness import assert_sound
from tests.kernels.cases import LARGE, executor
{after}
for case in LARGE:
    assert_sound(case, "auto")
if {every}:
    for op in ops.all_ops():
        for case in ops.cases(op):
            assert_sound(case, "auto")
from aclnn.contract.cases import fill
print(*sorted({{executor(case, fill(case)).kernel for case in LARGE}}))
"""

NO_ONEDNN = {"ACLNN_ONEDNN": "/nowhere/libdnnl.so.3"}
"""A library that is not there is not looked for elsewhere."""


def kernels(
    missing: tuple[str, ...] = (), every: bool = False, before: str = "", after: str = "", **variables: str
) -> set[str]:
    """The kernels that the large cases run on in such a process, which must get all cases right."""
    program = WITHOUT.format(missing=missing, every=every, before=before, after=after)
    environment = {**os.environ, **variables}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return set(ended.stdout.split())


EVERY = [False, pytest.param(True, marks=pytest.mark.long)]


@pytest.mark.parametrize("every", EVERY)
def test_without_numba(every: bool) -> None:
    assert kernels(("numba", "llvmlite"), every) == {"numpy"}


@pytest.mark.parametrize("every", EVERY)
def test_without_onednn(every: bool) -> None:
    assert "onednn" not in kernels((), every, **NO_ONEDNN)


@pytest.mark.long
@pytest.mark.parametrize("isa", ["AVX2", "AVX512_CORE", "AVX512_CORE_BF16", "DEFAULT"])
def test_every_instruction_set(isa: str) -> None:
    assert ("onednn" in kernels((), True, ONEDNN_MAX_CPU_ISA=isa)) == (isa == "DEFAULT" and onednn.library().has_amx)


LOAD_TORCH = "import torch; torch.ones(300, 300) @ torch.ones(300, 300)"


@pytest.mark.torch
@pytest.mark.parametrize("place", ["before", "after"])
def test_beside_torch(place: str) -> None:
    of_bfloat16 = {"onednn"} if onednn.library().has_amx else set()
    assert kernels(**{place: LOAD_TORCH}) == {"direct", "numba", "tiles"} | of_bfloat16


SMALL_STACKS = """
import numpy as np, aclnn
state, gates = np.ones((256, 1024), np.float32), np.ones((256, 4096), np.float32)
with aclnn.threads(2):
    aclnn.thnn_fused_lstm_cell_backward(state, state, state, state, gates, has_bias=True)
"""


def test_workers_with_small_stacks() -> None:
    """What a kernel sums up lies in the workspace: 229 KB on the stack once ended the process."""
    environment = {**os.environ, "OMP_STACKSIZE": "48k"}
    ended = subprocess.run([sys.executable, "-c", SMALL_STACKS], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
