"""Cold starts: the first calls of a process come from four threads at once, and give the bits of one thread alone."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

# PyTorch itself hangs in the child of a process whose threads were at work in it: torch.randn already does.
MIDDLES = {"python": ["none", "fork", "spawn"], "torch": ["none", "spawn"]}
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


def lines(door: str, threads: int, middle: str, folder: Path | None) -> list[str]:
    """What a process says, with this cache or with everybody's."""
    command = [sys.executable, "-m", "tests.hostile.cold", door, str(threads), middle]
    environment = {**os.environ, **({"ACLNN_CACHE_DIR": str(folder)} if folder else {})}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return sorted(set(ended.stdout.splitlines()))


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
    expected, middles = alone(door, full), MIDDLES[door]
    wrong = [n for n in range(MANY) if lines(door, 4, middles[n % len(middles)], full) != expected]
    assert wrong == []
