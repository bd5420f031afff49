"""Cold starts: the first calls of a process come from four threads at once, and give the bits of one thread alone."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.hostile.cold_starts import MIDDLES, failures, lines

BOTH = [
    pytest.param(door, middle, marks=pytest.mark.torch if door == "torch" else ())
    for door, middles in MIDDLES.items()
    for middle in middles
]
QUICK = [each for each in BOTH if each.values[1] != "spawn"]
MANY = 100  # processes


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder in which a process has left what it compiled."""
    folder = tmp_path_factory.mktemp("full")
    for door in ("python", "torch"):
        lines(door, 1, "none", folder)
    return folder


@cache
def alone(door: str, folder: Path | None) -> list[str]:
    """What a process with one thread says."""
    return lines(door, 1, "none", folder)


def test_no_call_imports_masked_arrays() -> None:
    """A process that another thread forks meanwhile would wait for the import for ever."""
    program = """
import sys
from tests.hostile.cold import DOORS
for name, task in DOORS["python"](): task()
import aclnn, numpy
view = numpy.lib.stride_tricks.as_strided(numpy.zeros(9, numpy.float32), (3, 3), (8, 4))
try: aclnn.elu(numpy.zeros((3, 3), numpy.float32), out=view)
except aclnn.AclnnError: print("numpy.ma" in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


@pytest.mark.parametrize(("door", "middle"), QUICK)
def test_four_threads_first_calls(door: str, middle: str) -> None:
    pytest.importorskip("numba")
    assert lines(door, 4, middle, None) == alone(door, None)


@pytest.mark.long
@pytest.mark.parametrize(("door", "middle"), BOTH)
def test_with_an_empty_cache(door: str, middle: str, full: Path, tmp_path: Path) -> None:
    assert lines(door, 4, middle, tmp_path / "empty") == alone(door, full)


@pytest.mark.long
@pytest.mark.parametrize("door", ["python", pytest.param("torch", marks=pytest.mark.torch)])
def test_many_processes(door: str, full: Path) -> None:
    assert failures(door, MANY, full) == []
