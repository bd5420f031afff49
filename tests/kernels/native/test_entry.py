"""The way into native code: shares of threads, and the function that takes arrays from Python."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("numba")

from aclnn.base.geometry import Array
from aclnn.kernels.native import entry as entries
from aclnn.kernels.native import jit
from aclnn.kernels.native.memory import address
from aclnn.kernels.native.threads import LaunchedRun, Work

NAME, TYPES = "elu.backward", "FFFfffi"


def launch(items: int) -> LaunchedRun:
    return LaunchedRun(lambda: Work(jit.load(NAME, TYPES), items, 1024, [0, 0, 0, 1.0, 1.0, 1.0, 1], 1))


def arrays() -> tuple[Array, Array, Array]:
    x, out = np.array([5.0, -1.0, 2.0, 7.0], np.float32), np.zeros(4, np.float32)
    return x[1:3], x[1:3], out[2:]


def test_a_function_on_arrays_is_the_same_launch() -> None:
    function, given = launch(2).function, arrays()
    assert function is not None
    workspace = np.empty(1)
    for scratch in (None, workspace):
        given[2][:] = 9
        assert function(scratch, *given) is scratch
        assert given[2].base.tolist() == [0.0, 0.0, 0.0, 2.0]
    launch(2)(None, *given)
    assert given[2].base.tolist() == [0.0, 0.0, 0.0, 2.0]


def test_where_the_layout_of_arrays_is_not_known_there_is_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "LAYOUT_IS_KNOWN", False)
    made, given = launch(2), arrays()
    assert made.function is None
    made(None, *given)
    assert given[2].tolist() == [0.0, 2.0]


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_another_number_of_arrays_is_an_exception(count: int) -> None:
    function = launch(2).function
    assert function is not None
    with pytest.raises(SystemError):
        function(*[np.zeros(2, np.float32)] * count)


def test_a_function_keeps_what_it_needs_and_nothing_more() -> None:
    function, given = launch(2).function, arrays()
    assert function is not None
    gc.collect()
    counts = [sys.getrefcount(a) for a in given]
    for _ in range(100):
        function(None, *given)
    assert [sys.getrefcount(a) for a in given] == counts
    assert given[2].tolist() == [0.0, 2.0]


def test_a_function_lets_other_threads_run() -> None:
    items = 2**16
    function, x, out = launch(items).function, np.full(items, -1.0, np.float32), np.empty(items, np.float32)
    assert function is not None
    begun, ran = threading.Event(), threading.Event()
    seen: list[bool] = []

    def work() -> None:
        begun.set()
        last = (
            time.monotonic() + 30
        )  # on a busy machine the other thread may come late; a lock that is kept lets none in
        while not ran.is_set() and time.monotonic() < last:
            function(None, x, x, out)
        seen.append(ran.is_set())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # nobody is asked to make way: others run only if the lock is given up
    try:
        worker = threading.Thread(target=work)
        worker.start()
        begun.wait()
        ran.set()
        worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert seen == [True]


def test_an_entry_gives_every_thread_whole_chunks_and_no_item_twice() -> None:
    """The share of each thread, seen through a kernel that adds nothing but writes once."""
    threads, chunk, items = 3, 1024, 5 * 1024 + 7
    numbers = iter(range(threads))
    who = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: next(numbers))
    team = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: threads)
    x = np.full(items, 2.0, np.float32)
    out = np.zeros(items, np.float32)
    block = (ctypes.c_int64 * 11)(items, chunk)
    block[2] = ctypes.cast(who, ctypes.c_void_p).value or 0
    block[3] = ctypes.cast(team, ctypes.c_void_p).value or 0
    block[4:7] = [address(x), address(x), address(out)]
    block[7:11] = [0x3F800000] * 3 + [1]
    entry = jit.load(NAME, TYPES)
    ends = []
    for _ in range(threads):
        entry.call(ctypes.addressof(block))
        ends.append(int(np.count_nonzero(out)))
    assert ends == [2048, 4096, items]
