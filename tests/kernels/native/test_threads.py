"""Launching on n threads: from several threads at once, after a fork, beside torch."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import aclnn
from aclnn.kernels.native import threads
from aclnn.kernels.native.threads import Limits, bits_of, usable, worth

pytest.importorskip("numba")

CHILD = """
import os, sys, numpy as np
{before}
import aclnn
{after}
def elu(threads):
    with aclnn.threads(threads):
        return aclnn.elu_backward(g, 1.0, 1.0, 1.0, False, x, engine="fast").tobytes()
x = np.linspace(-3, 3, 200_000).astype(np.float32)
g = np.cos(x)
parents = elu(2)
child = os.fork()
if child == 0:
    os._exit(0 if elu(2) == parents and elu(1) == parents else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) or (0 if elu(2) == parents else 2))
"""


def test_a_thread_needs_enough_to_do() -> None:
    assert [worth(items, 100, 4) for items in (0, 99, 100, 250, 399, 10_000)] == [1, 1, 1, 2, 3, 4]


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, 1e300, -1e300, 1e-45, float("inf"), float("nan")])
def test_bits_of_a_float(value: float) -> None:
    with np.errstate(over="ignore"):
        assert bits_of(value) == int(np.float32(value).view(np.uint32))


def test_a_limit_is_put_back() -> None:
    limits = Limits.of(ctypes.CDLL("libgomp.so.1"))
    before = limits.get()
    with limits.held_at(before + 3):
        assert limits.get() == before + 3
        with limits.held_at(1):
            assert limits.get() == 1
        assert limits.get() == before + 3
    assert limits.get() == before


def test_a_library_without_openmp_has_one_thread() -> None:
    limits = Limits.of(ctypes.CDLL("libm.so.6"))
    with limits.held_at(4):
        assert limits.get() == 1


def test_without_libgomp_native_loops_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "runtime", lambda: None)
    assert usable(4) == 1
    aclnn.cache_clear()
    x = np.linspace(-1, 1, 100_000).astype(np.float32)
    assert np.isfinite(aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x, engine="fast")).all()
    aclnn.cache_clear()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        pytest.param("import torch; torch.ones(300, 300) @ torch.ones(300, 300)", "", marks=pytest.mark.torch),
        pytest.param("", "import torch; torch.ones(300, 300) @ torch.ones(300, 300)", marks=pytest.mark.torch),
    ],
    ids=["alone", "torch first", "torch last"],
)
def test_a_forked_child_computes_the_same_bits(before: str, after: str) -> None:
    program = CHILD.format(before=before, after=after)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr


def launch_side_by_side(launches: int) -> None:
    """Two threads launch different work over and over; every result must have the bits of a serial run."""
    x = np.linspace(-3, 3, 40_000).astype(np.float32)
    grads = [np.cos(x), np.sin(x) + 2]
    serial = [aclnn.elu_backward(g, 1.0, 1.0, 1.0, False, x, engine="fast").tobytes() for g in grads]
    wrong: list[int] = []

    def work(k: int) -> None:
        out = np.empty_like(x)
        with aclnn.threads(2):
            plan = aclnn.elu_backward.plan(grads[k], 1.0, 1.0, 1.0, False, x, out=out, engine="fast", repeatable=True)
            for _ in range(launches):
                out.fill(0)
                plan.run()
                if out.tobytes() != serial[k]:
                    wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_two_threads_launch_at_once() -> None:
    launch_side_by_side(100)


@pytest.mark.long
def test_two_threads_launch_ten_thousand_times() -> None:
    launch_side_by_side(10_000)


LOADED_WHILE_A_FORK_WAITS = """
import ctypes, os, threading, time
from aclnn.base.run_once import Once
from aclnn.kernels.native import threads

def make():
    began.set()
    time.sleep(0.3)  # meanwhile the fork is asked for
    return ctypes.CDLL("libgomp.so.1")

began, loaded = threading.Event(), Once()
threading.Thread(target=loaded.get, args=("libgomp", make)).start()
began.wait()
child = os.fork()
if child == 0:
    os._exit(0 if threads.forked() else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_knows_of_threads_that_came_while_it_waited() -> None:
    """Else its child would use oneDNN and wait for locks that nobody holds any more."""
    if threads.runtime() is None:
        pytest.skip("no libgomp here")
    subprocess.run([sys.executable, "-c", LOADED_WHILE_A_FORK_WAITS], check=True, timeout=60)
