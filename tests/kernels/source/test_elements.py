"""float16 in compiled code: the bits that numpy gives, with instructions for it and without."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytest.importorskip("numba")

# Every float16 and, for the way back, what lies on it, half-way to the next, and one float32 to either side.
PROGRAM = """
import numpy as np
from aclnn.kernels.native import jit
from aclnn.kernels.native.threads import Work

def converted(source, made, types):
    Work(jit.load("convert.dense", types), source.size, source.size, [source.ctypes.data, made.ctypes.data], 1).run()
    return made

halves = np.arange(2**16, dtype=np.uint16)
single = converted(halves, np.empty(halves.size, np.float32), "HF")
exact = halves.view(np.float16).astype(np.float32)
assert np.array_equal(np.signbit(single), np.signbit(exact))
assert np.array_equal(single, exact, equal_nan=True)

bits = np.concatenate([exact.view(np.uint32) + np.uint32(step) for step in (0, 1, 4095, 4096, 4097, 8191)])
small = np.arange(0x32000000, 0x38800000, 4097, dtype=np.uint32)  # rounded to a subnormal float16
values = np.concatenate([bits, small, small | 2**31, np.arange(0, 2**32, 65521, np.uint32)]).view(np.float32)
made = converted(values, np.empty(values.size, np.uint16), "FH")
with np.errstate(over="ignore"):
    expected = values.astype(np.float16)
assert np.array_equal(np.isnan(made.view(np.float16)), np.isnan(values))
numbers = ~np.isnan(values)
assert np.array_equal(made[numbers], expected.view(np.uint16)[numbers])
print(jit.converts_half())
"""


@pytest.mark.parametrize("level", ["native", "sse41"])
def test_every_float16_and_what_is_rounded_to_one(level: str) -> None:
    if level == "sse41" and platform.machine() != "x86_64":
        pytest.skip("the levels of x86-64")
    environment = {**os.environ, "ACLNN_MAX_ISA": level}
    ended = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert level == "native" or ended.stdout == "False\n"
