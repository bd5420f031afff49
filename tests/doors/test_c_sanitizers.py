"""The library under sanitizers and valgrind, with an engine in plain C++: no leak, no race, no undefined behaviour."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from aclnn.capi import interpreter
from aclnn.capi.build import every_source, include_flags, recorded
from tests.doors.toolchain import PROGRAMS, WAYS_TO_LEAVE, needs_compiler

pytestmark = [needs_compiler, pytest.mark.long]

SUITE = ("handles", "memory", "streams", "executors", "host_functions", "threads")
KINDS = {
    "address": ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-O1", "-fsanitize=thread"],
    "valgrind": ["-O1"],
    "warnings": ["-O2", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Werror"],
}
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1",
    "TSAN_OPTIONS": "halt_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


Objects = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """The library and the C engine, compiled once for each kind of check."""
    return cache(lambda kind: compile_all(kind, tmp_path_factory.mktemp(kind)))


def compile_all(kind: str, folder: Path) -> list[str]:
    (folder / "recorded.h").write_text(recorded(interpreter.current()), encoding="utf-8")

    def compile_one(source: Path) -> str:
        made = folder / f"{source.stem}.o"
        run([*compiler(kind), f"-I{folder}", "-c", str(source), "-o", str(made)])
        return str(made)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(compile_one, [*every_source(), PROGRAMS / "c_engine.cpp"]))


def compiler(kind: str) -> list[str]:
    return ["g++", "-std=c++17", "-g", "-pthread", *KINDS[kind], *include_flags()]


def run(command: list[str], **env: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **env})
    assert ended.returncode == 0, f"{' '.join(command)[:200]}\n{ended.stdout[-2000:]}\n{ended.stderr[-6000:]}"
    return ended.stdout


def test_the_library_compiles_without_a_warning(objects: Objects) -> None:
    assert objects("warnings")


@pytest.mark.parametrize("program", SUITE)
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_program_is_clean(kind: str, program: str, objects: Objects, tmp_path: Path) -> None:
    target = str(tmp_path / program)
    run([*compiler(kind), str(PROGRAMS / f"{program}.cpp"), *objects(kind), "-ldl", "-o", target])
    assert run([target], **ENVIRONMENT).endswith("fine\n")


@pytest.mark.parametrize("program", SUITE)
def test_program_is_clean_with_python_inside(program: str, objects: Objects, tmp_path: Path) -> None:
    """Python itself leaks at exit, so leaks are counted by the handle counters of the programs alone."""
    ours = [made for made in objects("address") if not made.endswith("/c_engine.o")]
    target = str(tmp_path / program)
    run([*compiler("address"), str(PROGRAMS / f"{program}.cpp"), *ours, "-ldl", "-o", target])
    assert run([target], **ENVIRONMENT | {"ASAN_OPTIONS": "detect_leaks=0"}).endswith("fine\n")


@pytest.mark.parametrize("program", SUITE)
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_program_is_clean_with_the_engine_in_a_process_of_its_own(
    kind: str, program: str, objects: Objects, tmp_path: Path
) -> None:
    ours = [made for made in objects(kind) if not made.endswith("/c_engine.o")]
    folder, target = Path(ours[0]).parent, str(tmp_path / program)
    sources = [str(PROGRAMS / f"{name}.cpp") for name in (program, "remote")]
    run([*compiler(kind), f"-I{folder}", *sources, *ours, "-ldl", "-o", target])
    assert run([target], **ENVIRONMENT).endswith("fine\n")


@pytest.mark.parametrize("python_inside", [False, True])
def test_every_way_to_leave_is_clean(python_inside: bool, objects: Objects, tmp_path: Path) -> None:
    ours = [made for made in objects("address") if not (python_inside and made.endswith("/c_engine.o"))]
    target = str(tmp_path / "exits")
    run([*compiler("address"), str(PROGRAMS / "exits.cpp"), *ours, "-ldl", "-o", target])
    env = {**os.environ, **ENVIRONMENT, "ASAN_OPTIONS": "detect_leaks=0"}
    for mode in WAYS_TO_LEAVE:
        ended = subprocess.run([target, mode], capture_output=True, text=True, timeout=120, env=env)
        assert (ended.returncode, ended.stderr) == (7, ""), f"{mode}: {ended.stdout}{ended.stderr[-4000:]}"


def test_an_exit_does_not_wait_for_a_long_kernel(objects: Objects, tmp_path: Path) -> None:
    """It waits a few seconds, says so, and ends with its code and its output, before libraries are taken apart."""
    target = str(tmp_path / "exits")
    run([*compiler("address"), str(PROGRAMS / "exits.cpp"), *objects("address"), "-ldl", "-o", target])
    env = {**os.environ, **ENVIRONMENT, "ASAN_OPTIONS": "detect_leaks=0"}
    ended = subprocess.run([target, "long_kernel"], capture_output=True, text=True, timeout=50, env=env)
    assert (ended.returncode, ended.stdout) == (7, "said before the end")
    assert ended.stderr.startswith("aclnn: the process exits with 1 job left on its streams after 10 seconds")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize("program", SUITE[:-1])
def test_program_is_clean_in_valgrind(program: str, objects: Objects, tmp_path: Path) -> None:
    target = str(tmp_path / program)
    run([*compiler("valgrind"), str(PROGRAMS / f"{program}.cpp"), *objects("valgrind"), "-ldl", "-o", target])
    options = ["--leak-check=full", "--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect"]
    assert run(["valgrind", "-q", "--error-exitcode=9", *options, target]).endswith("fine\n")
