"""Threads of our own, where there is no OpenMP."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.kernels.native import pool, threads
from aclnn.kernels.native.abi import HOW_MANY, WHO

pytest.importorskip("numba")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many threads every launch had, without libgomp."""
    counts: list[int] = []
    run = pool.run

    def counted(entry: Any, block: Any, count: int) -> None:
        counts.append(count)
        run(entry, block, count)

    monkeypatch.setattr(threads, "runtime", lambda: None)
    monkeypatch.setattr(pool, "run", counted)
    aclnn.cache_clear()
    yield counts
    aclnn.cache_clear()


def gradients(count: int) -> list[bytes]:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4, 20, 30, 30)).astype(np.float32)
    w = rng.standard_normal((24, 20, 3, 3)).astype(np.float32)
    g = rng.standard_normal((4, 24, 30, 30)).astype(np.float32)
    with aclnn.threads(count):
        found = aclnn.convolution_backward(g, x, w, [24], 1, 1, 1, False, 0, 1, (True, True, True), engine="fast")
        return [one.tobytes() for one in (*found, aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x, engine="fast"))]


def test_threads_share_the_work_and_the_bits_are_the_same(launched: list[int]) -> None:
    alone = gradients(1)
    assert launched == []
    for count in (2, 3, 7):
        assert gradients(count) == alone
    assert max(launched) == 7


def test_each_thread_knows_which_it_is() -> None:
    seen: set[tuple[int, int]] = set()
    threads_at_work: set[int] = set()
    barrier = threading.Barrier(3)  # they run side by side, or nobody comes back

    def call(address: int) -> None:
        block = (ctypes.c_int64 * 6).from_address(address)
        seen.add((block[WHO], block[HOW_MANY]))
        threads_at_work.add(threading.get_ident())
        barrier.wait(20)

    pool.run(SimpleNamespace(call=call), (ctypes.c_int64 * 6)(9, 1, 0, 0, 5, 6), 3)  # type: ignore[arg-type]
    assert seen == {(1, 3), (2, 3), (3, 3)}
    assert len(threads_at_work) == 3


@pytest.mark.parametrize("first", [True, False])
def test_nobody_is_at_work_when_an_interrupt_is_seen(first: bool) -> None:
    """The others write to the caller's memory: it must not be given back before."""
    ended: list[int] = []

    def call(address: int) -> None:
        me = (ctypes.c_int64 * 6).from_address(address)[WHO]
        if (me == 1) == first:
            raise KeyboardInterrupt
        time.sleep(0.2)
        ended.append(me)

    with pytest.raises(KeyboardInterrupt):
        pool.run(SimpleNamespace(call=call), (ctypes.c_int64 * 6)(), 3)  # type: ignore[arg-type]
    assert sorted(ended) == ([2, 3] if first else [1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_helpers_of_its_own(launched: list[int]) -> None:
    expected = gradients(3)
    child = os.fork()
    if child == 0:
        os._exit(0 if gradients(3) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


AT_EXIT = """
import atexit
import numpy as np
import aclnn
from aclnn.kernels.native import threads
threads.runtime = lambda: None
x = np.linspace(-1, 1, 1 << 18).astype(np.float32)

def last():
    with aclnn.threads(3):
        print(np.isfinite(aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x, engine="fast")).all())

atexit.register(last)
"""


def test_a_call_while_the_interpreter_ends_is_computed() -> None:
    ended = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "True\n", ended.stderr
