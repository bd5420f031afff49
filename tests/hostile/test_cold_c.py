"""Cold starts through C: fresh processes whose first calls come from several threads, with the bits of Python."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aclnn import ops
from aclnn.contract.cases import Case
from tests.doors.toolchain import needs_compiler, run_program
from tests.hostile import c_cases, c_fuzz
from tests.hostile.test_c_workspaces import LARGER, larger

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore::UserWarning")]

THREADS = 4

Expected = tuple[Path, Counter[str]]


def all_cases() -> list[Case]:
    """Of those with kernels of their own for larger calls one such, a small one of every operator, and subnormals."""
    small = [next(ops.cases(op)) for op in ops.all_ops()]
    return [*map(larger, LARGER), *small, subnormal()]


def subnormal() -> Case:
    """Numbers that are lost where subnormals are flushed, and others that show another rounding."""
    values = np.concatenate([np.arange(-32, 32, dtype=np.float32) * np.float32(1e-40), np.linspace(-3, 3, 64)])
    return replace(ops.case_maker(ops.find("aclnnElu"))(shape=(128,)), data={"self": values.astype(np.float32)})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    """The file of calls, and the lines that a program must print."""
    file = tmp_path_factory.mktemp("cases") / "cases"
    cases = all_cases()
    c_cases.write(cases, file)
    return file, Counter({f"{i} {c_cases.written(case)}": THREADS for i, case in enumerate(cases)})


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return c_fuzz.build("cold", tmp_path_factory.mktemp("cold"))


def start(program: Path, expected: Expected, mode: str, first: int = 0, cache: Path | None = None) -> None:
    """One fresh process, with the cache that everybody has or with one of its own, which is empty."""
    file, lines = expected
    env = dict(os.environ) | ({"ACLNN_CACHE_DIR": str(cache)} if cache else {})
    ended = run_program([program, file, THREADS, mode, first % len(lines)], env, timeout=300)
    refused = [line for line in ended.stdout.splitlines() if "!" in line[:8]]
    assert (ended.returncode, refused) == (0, []), ended.stderr[-2000:]
    assert Counter(ended.stdout.splitlines()) == lines


@pytest.mark.parametrize("mode", ["plain", "fork", "odd"])
def test_first_calls_from_several_threads(mode: str, program: Path, expected: Expected) -> None:
    start(program, expected, mode, first=1)  # a convolution: oneDNN is looked for once, by all threads


@pytest.mark.long
@pytest.mark.parametrize(("mode", "times"), [("plain", 80), ("fork", 10), ("odd", 10)])
def test_first_calls_from_several_threads_every_time(mode: str, times: int, program: Path, expected: Expected) -> None:
    for number in range(times):
        start(program, expected, mode, number)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["plain", "fork"])
def test_first_calls_with_empty_caches(mode: str, program: Path, expected: Expected, tmp_path: Path) -> None:
    for number in range(5):
        start(program, expected, mode, 4 * number, tmp_path / str(number))


@pytest.mark.long
def test_a_program_with_fast_math_gets_the_same_bits(expected: Expected, tmp_path: Path) -> None:
    """Linked so, a program flushes subnormals before main begins, and its threads inherit it."""
    start(c_fuzz.build("cold", tmp_path, "-ffast-math"), expected, "plain")
