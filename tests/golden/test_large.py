"""A pair of arrays larger than the memory that comparing them may take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

GIGABYTE = 2**30
PROGRAM = """
import sys, time
from aclnn.golden.compare import compare
start = time.perf_counter()
found = compare(sys.argv[1], sys.argv[2])
took = time.perf_counter() - start
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(found.passed, found.worst.where[0], int(peak.split()[1]) // 1024, f"{took:.1f} s")
"""


def write(path: Path, factor: float, fault: bool = False) -> Path:
    tile = np.random.default_rng(0).standard_normal((1024, 1024), np.float32) * np.float32(factor)
    array = np.lib.format.open_memmap(path, "w+", np.float32, (GIGABYTE // tile.nbytes, 1024, 1024))
    for i in range(len(array)):
        array[i] = tile
    if fault:
        array[200, 3, 4] += 1
    array.flush()
    return path


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of its memory from /proc")
def test_a_gigabyte_each_in_less_than_300_megabytes(tmp_path: Path) -> None:
    target, golden = write(tmp_path / "t.npy", 1 + 1e-7, fault=True), write(tmp_path / "g.npy", 1)
    command = [sys.executable, "-c", PROGRAM, str(target), str(golden)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    passed, worst, megabytes, *took = done.stdout.split()
    print("compared in", *took)  # the number itself belongs to the benchmarks
    assert passed == "False"
    assert worst == "200"
    assert int(megabytes) < 300
