"""Every operator on compiled code of every instruction set that this processor has, in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

ROOT = Path(__file__).parents[2]
EVERY = """
from aclnn import ops
from tests.every.checks import assert_right
from tests.every.draw import drawn

{before}
for op in ops.all_ops():
    for case in (*ops.cases(op), *drawn(op, 0, {drawn}, broadcast=False)):
        assert_right(case, "fast")
"""
PLANTED = """
from aclnn.runtime import plan
from tests.every.test_planted import wrong
kernels_of = plan.kernels_of
plan.kernels_of = lambda *which: tuple(wrong(k, lambda call, threads: 1.5) for k in kernels_of(*which))
"""
LEVELS = {"x86_64": ("sse41", "avx2", "avx512", "native"), "aarch64": ("neon", "native")}.get(platform.machine(), ())
QUICK = ("avx2", "neon")


def run(level: str, before: str = "", drawn: int = 20) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", EVERY.format(before=before, drawn=drawn)]
    variables = {**os.environ, "ACLNN_MAX_ISA": level}
    return subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("level", [pytest.param(x, marks=[pytest.mark.long] * (x not in QUICK)) for x in LEVELS])
def test_every_level_is_right(level: str) -> None:
    ended = run(level)
    assert ended.returncode == 0, ended.stderr[-3000:]


def test_a_level_that_is_wrong_is_found() -> None:
    ended = run("native", PLANTED, drawn=0)
    assert "times the allowed error off" in ended.stderr
