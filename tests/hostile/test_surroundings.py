"""What is around a call breaks: worker threads that are ended, disks that are full, oneDNN that fails half way."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.kernels.convolution import bfloat16_rule
from aclnn.kernels.onednn import library as onednn
from tests.doors.toolchain import needs_compiler

X = np.linspace(-2, 2, 64, dtype=np.float32)


def end_thread(ident: int) -> None:
    """Raises SystemExit in another thread, as debuggers and notebooks do to end one."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(SystemExit))


def worker_of(stream: aclnn.Stream) -> int:
    assert stream._queue.worker
    return stream._queue.worker


def test_a_worker_that_is_ended_at_work_is_reported_and_what_is_queued_is_done() -> None:
    def work() -> None:
        began.set()
        while not killed.is_set():
            time.sleep(0.001)
        time.sleep(0.01)

    began, killed, done = threading.Event(), threading.Event(), threading.Event()
    with aclnn.Stream() as stream:
        stream.submit(work)
        stream.submit(done.set)
        began.wait()
        end_thread(worker_of(stream))
        killed.set()
        with pytest.raises(SystemExit):
            stream.synchronize()
        assert done.is_set()


def use(stream: aclnn.Stream) -> None:
    stream.submit(lambda: None)
    stream.synchronize()


def use_until_it_ends(stream: aclnn.Stream) -> None:
    """The worker meets its end when it wakes up."""
    for _ in range(1000):
        use(stream)


def test_a_worker_that_is_ended_while_it_waits_is_replaced() -> None:
    out = np.zeros_like(X)
    with aclnn.Stream() as stream:
        use(stream)
        end_thread(worker_of(stream))
        with pytest.raises(SystemExit):
            use_until_it_ends(stream)
        aclnn.elu.plan(X, out=out, engine="numpy").run(stream=stream)
    assert out.tobytes() == aclnn.elu(X, engine="numpy").tobytes()


FULL = """
import resource, sys
import numpy as np
import aclnn
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
x = np.linspace(-2, 2, 4096, dtype=np.float32)
assert np.allclose(aclnn.elu(x), aclnn.elu(x, engine="reference"))
if sys.argv[1] == "build":
    from aclnn.capi.build import build
    try:
        build()
    except aclnn.AclnnError as error:
        assert error.code == 561000 and "large" in error.message, error
    else:
        raise AssertionError("built without a place")
print("goes on")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file sizes")
@pytest.mark.parametrize("what", ["jit", pytest.param("build", marks=needs_compiler)])
def test_a_disk_without_room_for_native_code(what: str, tmp_path: Path) -> None:
    """No file may grow beyond 64 bytes: kernels are compiled all the same, and nothing is left behind."""
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-B", "-c", FULL, what]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert ended.stdout == "goes on\n", ended.stderr
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert [name for name in left if name != "lock"] == []


def failing(execute: Any, after: int) -> Any:
    """dnnl_primitive_execute that is out of memory from some call on."""
    left = iter(range(after))
    return lambda *given: execute(*given) if next(left, None) is not None else 1


@pytest.mark.skipif(onednn.installed() is None or not onednn.library().has_avx512, reason="needs oneDNN and AVX-512")
@pytest.mark.parametrize("after", range(2))
def test_onednn_that_fails_half_way_is_a_code_and_the_next_call_is_right(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bfloat16_rule, "is_ahead", lambda call: "not asked")
    monkeypatch.setattr(onednn.library(), "has_amx", True)
    aclnn.cache_clear()
    rng = np.random.default_rng(0)
    sizes = ((2, 16, 32, 32), (2, 16, 32, 32), (16, 16, 3, 3))
    grad, x, w = (rng.normal(0, 1, size).astype(aclnn.bfloat16) for size in sizes)

    def gradients() -> Any:
        given = (grad, x, w, (16,), (1, 1), (1, 1), (1, 1), False, (0, 0), 1, (True, True, True), 0)
        return aclnn.convolution_backward(*given, engine="fast")

    expected = [g.tobytes() for g in gradients()]
    functions = onednn.library().functions
    with monkeypatch.context() as patch:
        patch.setattr(functions, "dnnl_primitive_execute", failing(functions.dnnl_primitive_execute, after))
        with pytest.raises(aclnn.AclnnError, match="out of memory") as refused:
            gradients()
    assert refused.value.code in (361001, 561000)
    assert [g.tobytes() for g in gradients()] == expected
    aclnn.cache_clear()
