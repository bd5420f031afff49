"""No sum takes what nobody wrote: scratch may hold subnormal numbers, with which a multiplication takes a hundred
cycles on some processors, so that a call took up to fifty times as long as the same call on other scratch.

A processor says so by a flag, here by a signal: nothing is timed.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

ROOT = Path(__file__).parents[2]
PROGRAM = """
import faulthandler, sys

faulthandler.enable()
from aclnn.kernels.native import entry

entry._DEFAULT_MXCSR &= ~0x100  # an operand that is subnormal ends the process
from aclnn import ops
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT32
from aclnn.base.tensor import TensorSpec
from aclnn.ops.convolution_forward import convolution_case
from tests import harness
from tests.every.checks import assert_right
from tests.every.draw import drawn

harness.MARK = 0x80  # as float32 the least normal numbers: a product with them is subnormal, and is met by the next one
{before}
for op in ops.all_ops():
    for case in (*ops.cases(op), *drawn(op, 1, 30, broadcast=False)):
        given = [v for value in case.values.values() for v in (value if isinstance(value, tuple) else [value])]
        if all(one.dtype in (FLOAT32, BFLOAT16) for one in given if isinstance(one, TensorSpec)):  # random float16
            print(case, file=sys.stderr, flush=True)  # may be subnormal itself
            assert_right(case, "fast", threads=1)
uneven = {{"in_channels": 70, "out_channels": 6, "size": (16, 41, 9), "kernel": (3, 1, 3), "padding": (1, 0, 1)}}
assert_right(convolution_case(batch=1, device=CPU, **uneven), "fast", threads=4)  # strips; the last boxes are smaller
"""
NO_ZEROS_BESIDE_CHANNELS = """
from aclnn.kernels.source import convolve_weights, matrix, panels
from aclnn.kernels.source.helpers import inner


def left_as_it_is(panel, rows, columns, channels, beyond):
    pass


for module in (convolve_weights, matrix, panels):
    module.clear_beyond = inner(left_as_it_is)
"""
NO_ZEROS_BETWEEN_ROWS = """
from aclnn.kernels.source import convolve_few
from aclnn.kernels.source.helpers import inner


def left_as_it_is(room, boxes, table):
    pass


convolve_few.clear_gaps = inner(left_as_it_is)
"""
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other processors have no such signal"),
]


def run(folder: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "ACLNN_CACHE_DIR": str(folder)}  # of code that no other process may take
    command = [sys.executable, "-c", PROGRAM.format(before=before)]
    return subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True)


def test_no_kernel_computes_with_it(tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert ended.returncode == 0, ended.stderr[-3000:]


@pytest.mark.parametrize("fault", [NO_ZEROS_BESIDE_CHANNELS, NO_ZEROS_BETWEEN_ROWS], ids=["channels", "rows"])
def test_one_that_does_is_found(fault: str, tmp_path: Path) -> None:
    ended = run(tmp_path, fault)
    assert ended.returncode == -signal.SIGFPE, ended.stderr[-3000:]
