"""The binding of oneDNN, and programs made of its primitives."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import FLOAT32
from aclnn.kernels.native import threads
from aclnn.kernels.native.memory import LINE, address, aligned
from aclnn.kernels.onednn import library as onednn
from aclnn.kernels.onednn.library import OneDnnError, strided
from aclnn.kernels.onednn.program import Buffer, Program, Recent, Session
from aclnn.kernels.shared.workspace import Arena


@pytest.fixture(autouse=True)
def _needs_onednn() -> None:
    try:
        onednn.library()
    except OneDnnError as reason:
        pytest.skip(str(reason))


def found_with(path: str) -> str:
    program = "from aclnn.kernels.onednn.library import _found\nprint(getattr(_found(), 'path', _found()))"
    environment = {**os.environ, "ACLNN_ONEDNN": path}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_found_in_the_wheel_or_where_the_environment_says() -> None:
    path = onednn.library().path
    assert found_with("").endswith("libdnnl.so.3")
    assert found_with(path) == path


def test_a_path_that_is_not_onednn_is_a_reason() -> None:
    assert "cannot be loaded" in found_with("/nowhere/libdnnl.so.3")
    assert "cannot be loaded" in found_with("libm.so.6")


@pytest.mark.parametrize(
    ("version", "runtime", "said"),
    [((2, 7, 0), 2, "is not one of"), ((4, 0, 0), 2, "is not one of"), ((3, 1, 9), 2, "is not one of")]
    + [((3, 4, 0), 4, "runs on TBB"), ((3, 4, 0), 512, "runs on SYCL"), ((3, 4, 0), 99, "runs on 99")],
)
def test_the_version_and_the_runtime_are_checked(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], runtime: int, said: str
) -> None:
    library = onednn.library()
    found = SimpleNamespace(**dict(zip(("major", "minor", "patch"), version, strict=True)), cpu_runtime=runtime)
    functions = SimpleNamespace(dnnl_version=lambda: SimpleNamespace(contents=found))
    other = onednn.Library.__new__(onednn.Library)
    other.path, other.functions = library.path, functions  # type: ignore[assignment]
    with pytest.raises(OneDnnError, match=said):
        other._check()


def test_a_forked_child_does_not_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to ask for the processor, and not to give back what it has: a lock may be held for ever."""
    lib = onednn.library()
    layout = strided(FLOAT32, (2, 3), (3, 1))
    monkeypatch.setattr(threads, "forked", lambda: True)
    monkeypatch.setattr(lib, "functions", None)
    assert lib.has_amx <= lib.has_avx512
    del layout
    gc.collect()


def test_after_a_fork_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "forked", lambda: True)
    with pytest.raises(OneDnnError, match="fork"):
        onednn.library()


def test_what_onednn_refuses_is_an_exception() -> None:
    with pytest.raises(OneDnnError, match="invalid arguments"):
        strided(FLOAT32, (-1, 2), (2, 1))


def turning(program_threads: int) -> tuple[Program, list[Buffer]]:
    """A program that turns a matrix, through a copy of it in the workspace."""
    with onednn.library().limits.held_at(program_threads):
        program = Program(program_threads)
        source, target = (program.tensor(strided(FLOAT32, (70, 90), steps)) for steps in ((90, 1), (1, 70)))
        between = program.laid_out(source, strided(FLOAT32, (70, 90), (96, 1)))
        program.copy(between, target)
    return program, [source, target]


def test_a_program_runs_on_other_threads_than_its_makers() -> None:
    program, buffers = turning(2)
    a = np.random.default_rng(0).normal(size=(70, 90)).astype(np.float32)
    results: list[bytes] = []

    def work() -> None:
        session = Session(program)
        for _ in range(20):
            workspace, turned = np.empty(program.arena.size, np.uint8), np.full((90, 70), np.nan, np.float32)
            session.bind(aligned(address(workspace)), list(zip(buffers, map(address, (a, turned)), strict=True)))
            session.run()
            results.append(turned.tobytes())

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 80
    assert set(results) == {np.ascontiguousarray(a.T).tobytes()}


def test_threads_are_put_back_after_a_run() -> None:
    program, buffers = turning(1)
    workspace = np.empty(program.arena.size, np.uint8)
    arrays = [np.ones((70, 90), np.float32), np.zeros((90, 70), np.float32)]
    session = Session(program)
    session.bind(aligned(address(workspace)), list(zip(buffers, map(address, arrays), strict=True)))
    with onednn.library().limits.held_at(3):
        session.run()
        assert onednn.library().limits.get() == 3
    assert (arrays[1] == 1).all()


@example([(65, True), (1, False), (0, True), (65, False)])
@given(st.lists(st.tuples(st.integers(0, 500), st.booleans()), max_size=30))
def test_an_arena_never_gives_the_same_bytes_twice(wishes: list[tuple[int, bool]]) -> None:
    arena, held = Arena(), {}
    for i, (size, gives_back) in enumerate(wishes):
        offset = arena.reserve(size)
        assert offset % LINE == 0
        for other, room in held.values():
            assert offset + size <= other or other + room <= offset
        held[i] = (offset, size)
        if gives_back:
            arena.release(*held.pop(next(iter(held))))
    assert all(offset + size <= arena.size for offset, size in held.values())


def test_an_arena_uses_bytes_again() -> None:
    arena = Arena()
    first, second = arena.reserve(100), arena.reserve(100)
    arena.release(first, 100)
    arena.release(second, 100)
    assert arena.reserve(256) == 0
    assert arena.size == 256 + LINE


def test_recent_keeps_the_newest() -> None:
    recent: Recent[int] = Recent(lambda made: 1, limit=2)
    assert [recent.get(k, lambda k=k: k) for k in (1, 2, 1, 3)] == [1, 2, 1, 3]
    assert recent.get(1, lambda: -1) == 1
    assert recent.get(2, lambda: -2) == -2


def test_recent_keeps_few_steps_but_always_the_newest() -> None:
    recent: Recent[int] = Recent(lambda made: made, most_steps=10)
    for steps in (4, 5, 6):
        recent.get(steps, lambda steps=steps: steps)
    assert len(recent) == 1
    recent.get(3, lambda: 3)
    assert len(recent) == 2
    recent.get(99, lambda: 99)
    assert len(recent) == 1
    assert recent.get(99, lambda: -1) == 99


FIRST_CALLS = """
import threading, numpy as np, aclnn
x, w = np.ones((4, 16, 28, 28), np.float32), np.ones((16, 16, 3, 3), np.float32)
barrier, found = threading.Barrier(10), []
def first():
    barrier.wait()
    found.append(aclnn.convolution(x, w, None, 1, 1, 1, False, 0, 1).tobytes())
workers = [threading.Thread(target=first) for _ in range(10)]
[w.start() for w in workers], [w.join() for w in workers]
print(len(found), len(set(found)))
"""


def test_first_calls_of_ten_threads_share_one_library() -> None:
    ended = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("10 1\n", "")


def test_what_is_kept_is_forgotten_and_not_inherited() -> None:
    made = iter(range(9))
    recent: Recent[int] = Recent(lambda made: 1)
    assert [recent.get("a", lambda: next(made)) for _ in range(2)] == [0, 0]
    aclnn.cache_clear()
    assert recent.get("a", lambda: next(made)) == 1
    child = os.fork()
    if child == 0:
        os._exit(recent.get("a", lambda: 7))  # not the parent's, which counts on threads of the parent
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
