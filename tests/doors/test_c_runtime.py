"""The runtime as C++ programs see it: objects, memory, streams, executors, misuse, and ways to leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.doors.toolchain import (
    PROGRAMS,
    WAYS_TO_LEAVE,
    compile_and_run,
    compile_program,
    needs_compiler,
    run_program,
)

pytestmark = needs_compiler


@pytest.mark.parametrize("name", ["handles", "memory", "streams", "executors", "threads", "host_functions"])
def test_program(name: str, tmp_path: Path) -> None:
    assert compile_and_run(PROGRAMS / f"{name}.cpp", tmp_path) == "fine\n"


def test_three_million_objects_are_alive_at_once_and_the_end_has_sentences(tmp_path: Path) -> None:
    ended = run_program([compile_program(PROGRAMS / "many.cpp", tmp_path, "-O1"), "3000000"])
    assert (ended.returncode, ended.stdout) == (0, "fine\n"), ended.stdout
    assert ended.stderr.startswith("3000000 alive at once")


@pytest.fixture(scope="module")
def exits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(PROGRAMS / "exits.cpp", tmp_path_factory.mktemp("exits"))


@pytest.mark.parametrize("mode", [*WAYS_TO_LEAVE, "fork_anywhere"])
def test_the_process_ends_as_it_asked(mode: str, exits: Path) -> None:
    ended = run_program([exits, mode])
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "", "")


@pytest.mark.long
@pytest.mark.parametrize(
    "mode", ["in_flight", "freed_in_flight", "exit_from_another_thread", "static_destructor", "fork_anywhere"]
)
def test_the_process_ends_as_it_asked_every_time(mode: str, exits: Path) -> None:
    assert [run_program([exits, mode]).returncode for _ in range(20)] == [7] * 20


@pytest.mark.long
def test_work_that_is_never_done_does_not_hold_the_exit_back(exits: Path) -> None:
    ended = run_program([exits, "stuck"], timeout=30)
    assert ended.returncode == 7
    said = "aclnn: the process exits with 1 job left on its streams after 10 seconds; it is dropped.\n"
    assert ended.stderr == said


@pytest.fixture(scope="module")
def misuse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(PROGRAMS / "misuse.cpp", tmp_path_factory.mktemp("misuse"), "-rdynamic")


MISUSE = {
    "view_outside_allocation": ["aclnnEluBackward: gradInput reaches 8 bytes beyond its allocation of 8 bytes."],
    "host_pointer": [
        "aclnnEluBackward: gradInput is 0x… , which is no device memory; it works here, hardware would fail.",
        "aclrtMemcpy: dst is 0x… , which is no device memory; it works here, hardware would fail.",
    ],
    "freed_too_early": [
        "aclrtFree: aclnnEluBackward still needs this memory for gradOutput; synchronize its stream before freeing it."
    ],
    "workspace_too_small": ["aclnnEluBackward: workspace reaches 4080 bytes beyond its allocation of 16 bytes."],
    "executor_reused": [
        "aclnnEluBackward: the executor has already run; aclSetAclOpExecutorRepeatable lets one run again."
    ],
    "destroyed_twice": ["aclDestroyTensor: this aclTensor was already destroyed."],
    "many_runs": [],
    "nothing": [],
}


@pytest.mark.parametrize("mode", MISUSE)
def test_a_mistake_is_named_in_one_sentence(mode: str, misuse: Path) -> None:
    ended = run_program([misuse, mode], {**os.environ, "ACLNN_CHECK": "1"})
    assert ended.returncode == 0, ended.stdout
    told = [line.removeprefix("aclnn: ") for line in ended.stderr.splitlines()]
    assert [_without_addresses(line) for line in told] == [_without_addresses(line) for line in MISUSE[mode]]


def test_leaks_are_listed_with_the_place_that_made_them(misuse: Path) -> None:
    ended = run_program([misuse, "leaks"], {**os.environ, "ACLNN_CHECK": "1"})
    assert ended.returncode == 0
    scalar, memory = ended.stderr.splitlines()
    assert scalar.startswith("aclnn: 1 aclScalar made at ")
    assert scalar.endswith(" was not destroyed before aclFinalize.")
    assert memory.startswith("aclnn: 24 bytes of device memory allocated at ")
    assert "misuse" in scalar
    assert "misuse" in memory


def test_a_forgotten_device_is_mentioned(misuse: Path) -> None:
    ended = run_program([misuse, "no_device"], {**os.environ, "ACLNN_CHECK": "1"})
    assert "aclrtMalloc: this thread has not called aclrtSetDevice" in ended.stderr


def test_without_the_checks_nothing_is_said(misuse: Path) -> None:
    for mode in ("host_pointer", "freed_too_early", "destroyed_twice", "leaks", "no_device"):
        ended = run_program([misuse, mode], {**os.environ, "ACLNN_CHECK": ""})
        assert (ended.returncode, ended.stderr) == (0, "")


def _without_addresses(line: str) -> str:
    words = line.replace(",", " ,").split()
    return " ".join("0x…" if word.startswith("0x") else word for word in words)
