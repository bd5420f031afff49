"""What a repeated run leaves behind: no large block is asked for, and the memory of the process does not grow."""

from __future__ import annotations

import gc
import os
import platform
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import aclnn
from aclnn.contract.cases import Case, fill
from aclnn.ops.conv_tbc import conv_tbc_case
from aclnn.ops.convolution_forward import convolution_case
from aclnn.ops.elu import elu_case, elu_in_place_case
from aclnn.ops.lstm_cell import thnn_fused_lstm_cell_case
from aclnn.ops.lstm_forward import lstm_case
from tests.kernels.cases import LARGE, executor

pytest.importorskip("numba")

FORWARD = [
    elu_case((67, 1031)),
    elu_in_place_case((67, 1031)),
    thnn_fused_lstm_cell_case(70, 130),
    convolution_case(batch=4, in_channels=24, out_channels=32, size=14, padding=1),
    convolution_case(batch=4, in_channels=24, out_channels=24, groups=24, size=28, padding=1),
    conv_tbc_case(50, 4, 24, 32, 3, 1),
    lstm_case(9, 6, 20, 40, 2, True),
]
CASES = [*LARGE, *FORWARD]
NAMES = [f"{c.op.python}-{i}" for i, c in enumerate(CASES)]
MAY_ALLOCATE: set[str] = set()  # operators whose kernel is a library's that must

COUNTING = """
import ctypes
import numpy as np
from tests.kernels.test_memory import CASES, NAMES, MAY_ALLOCATE, prepared
count = ctypes.CDLL(None).large_allocations
count.restype = ctypes.c_long
np.empty(100_000)
assert count() > 0, "nothing is counted"
for name, case in zip(NAMES, CASES):
    run = prepared(case, 2)
    run(3)
    before = count()
    run(5)
    asked = count() - before
    if asked and case.op.name not in MAY_ALLOCATE:
        print(name, "asked for", asked, "large blocks in 5 runs")
"""


def prepared(case: Case, threads: int) -> Callable[[int], None]:
    """A function that runs a case so many times, on the same memory."""
    filled = fill(case)
    with aclnn.threads(threads):
        plan = executor(case, filled)
    workspace = np.empty(plan.workspace_size, np.uint8)

    def run(times: int) -> None:
        for _ in range(times):
            plan.run(workspace)

    return run


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc" or not shutil.which("gcc"), reason="needs glibc and gcc")
def test_a_repeated_run_asks_for_no_large_block(tmp_path: Path) -> None:
    library = tmp_path / "count_allocations.so"
    source = Path(__file__).parent / "c" / "count_allocations.c"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    ended = subprocess.run([sys.executable, "-c", COUNTING], env=environment, cwd=root, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""


def assert_flat(case: Case, runs: int) -> None:
    run = prepared(case, 1)
    tracemalloc.start()
    try:
        run(400)  # until everything that each run replaces was made while it was traced
        python, whole = traced(), resident()
        run(runs)
        assert traced() - python < 4096 + 8 * runs  # the smallest object that each run left behind would be 28
        assert resident() - whole < 2**21
    finally:
        tracemalloc.stop()


def traced() -> int:
    """Bytes that Python objects have, without those that wait to be collected."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_memory_is_flat(case: Case) -> None:
    assert_flat(case, 300)


@needs_proc
@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_memory_is_flat_over_ten_thousand_runs(case: Case) -> None:
    assert_flat(case, 10_000)
