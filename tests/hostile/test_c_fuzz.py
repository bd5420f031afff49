"""Random histories of the C interface, and memory that ends at any allocation: nothing is found any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors.toolchain import PROGRAMS, needs_compiler
from tests.hostile import c_fuzz

pytestmark = needs_compiler


def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    program = c_fuzz.build("fuzz", tmp_path)
    assert "nothing found" in c_fuzz.run([program, 1, 8, 150, 3, 60])


def test_memory_may_end_at_any_allocation(tmp_path: Path) -> None:
    program = c_fuzz.build("no_memory", tmp_path)
    assert "nothing found" in c_fuzz.run([program, 60])


@pytest.mark.long
def test_a_run_under_sanitizers_finds_nothing(tmp_path: Path) -> None:
    program = c_fuzz.build_sanitized(tmp_path)
    assert "nothing found" in c_fuzz.run([program, 1, 100, 200, 3, 60])


@pytest.mark.long
def test_with_the_engine_in_a_process_of_its_own_it_finds_nothing_either(tmp_path: Path) -> None:
    program = c_fuzz.build_sanitized(tmp_path, PROGRAMS / "remote.cpp")
    assert "nothing found" in c_fuzz.run([program, 1, 100, 200, 3, 60])
