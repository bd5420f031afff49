"""Faults: memory that runs out, kernels that fail, signals, forks, exits. Reported, and the process goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.contract.cases import fill
from aclnn.contract.model import Op
from aclnn.golden.read import containers
from aclnn.kernels.onednn import library as onednn
from aclnn.runtime import memory as memory_module
from aclnn.runtime import plan as plan_module
from tests.harness import call

X = np.linspace(-2, 2, 64, dtype=np.float32)
EXPECTED = aclnn.elu(X, engine="numpy").tobytes()
ENGINES = ("auto", "numpy", "reference")


class NoMemory:
    """numpy as the runtime sees it, out of memory at the n-th np.empty."""

    def __init__(self, after: int):
        self.left = after

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, *given: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise MemoryError
        return np.empty(*given, **more)


@pytest.mark.parametrize("op", ops.all_ops(), ids=lambda o: o.name)
def test_no_memory_for_an_output_or_a_workspace(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(ops.cases(op))
    filled = fill(case)
    given = {a.name: filled[a.name] for a in op.inputs}
    for after in range(4):
        with monkeypatch.context() as patch:
            patch.setattr(memory_module, "np", NoMemory(after))
            try:
                getattr(aclnn, op.python)._call(given, None, case.device, None)
            except aclnn.AclnnError as error:
                refused = error
            else:
                break  # it needs no more memory than this
        assert refused.code == 361001
        assert "out of memory for" in refused.message
    getattr(aclnn, op.python)._call(given, None, case.device, None)


@pytest.mark.parametrize("error", [MemoryError(), ZeroDivisionError("oh\nno"), RecursionError(), OSError(28, "full")])
@pytest.mark.parametrize("phase", ["plan", "run"])
def test_a_kernel_that_fails_is_a_code_and_the_next_call_is_served(
    error: Exception, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aclnn.kernels.registry import Kernel, Prepared

    def fail(*given: Any) -> Any:
        raise error

    kernel = Kernel("failing", "numpy", fail if phase == "plan" else lambda call, threads: Prepared(lambda: fail))
    out = np.full_like(X, 7)
    with monkeypatch.context() as patch:
        patch.setattr(plan_module, "kernels_of", lambda *names: (kernel,))
        aclnn.cache_clear()
        with pytest.raises(aclnn.AclnnError) as refused:
            aclnn.elu(X, out=out, engine="numpy")
    aclnn.cache_clear()
    assert refused.value.code == (361001 if isinstance(error, MemoryError) else 561000)
    assert "\n" not in refused.value.message
    assert (out == 7).all()
    assert aclnn.elu(X, engine="numpy").tobytes() == EXPECTED


def python(program: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, **more
    )


INTERRUPTED = """
import _thread, signal, threading, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent such as nohup may have had it ignored
import numpy as np
import aclnn
x = np.ones((64, 64, 64, 64), np.float32)
w = np.ones((64, 64, 3, 3), np.float32)
def conv(x):
    return aclnn.convolution(x, w, None, 1, 1, 1, False, 0, 1, 0, engine=sys.argv[1])
small = x[:1, :, :4, :4]
expected = conv(small).tobytes()
threading.Timer(0.05, _thread.interrupt_main).start()
try:
    while True:
        conv(x)
except KeyboardInterrupt:
    print("interrupted")
assert conv(small).tobytes() == expected
with aclnn.Stream() as stream:
    aclnn.elu.plan(x).run(stream=stream) if not aclnn.elu.plan(x).workspace_size else None
print("goes on")
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_during_a_run_surfaces_and_the_process_goes_on(engine: str) -> None:
    ended = python(INTERRUPTED, engine)
    assert ended.stdout.split("\n")[:2] == ["interrupted", "goes on"], ended.stderr


FORKED = """
import os, sys, threading
import numpy as np
import aclnn
x = np.linspace(-2, 2, 1 << 17, dtype=np.float32)
image, weight = x.reshape(2, 16, 64, 64), x[:16 * 16 * 9].reshape(16, 16, 3, 3)
def work():
    conv = aclnn.convolution(image, weight, None, 1, 1, 1, False, 0, 1, 0, engine=sys.argv[1])
    return aclnn.elu(x, engine=sys.argv[1]), conv
def same(found):  # another kernel may serve the child, where a fork took the threads of the first away
    return np.allclose(found[0], expected[0]) and np.allclose(found[1], expected[1], atol=abs(expected[1]).max() / 1e5)
expected = work()
executor = aclnn.elu.plan(x, repeatable=True, engine="numpy")
stop = threading.Event()
def keep_locks_busy():
    while not stop.is_set():
        executor.run()
        aclnn.elu(x[:8], alpha=1.0)
threads = [threading.Thread(target=keep_locks_busy, daemon=True) for _ in range(2)]
[t.start() for t in threads]
for _ in range(5):
    child = os.fork()
    if child == 0:
        try:
            executor.run()
            os._exit(0 if same(work()) else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
[t.join() for t in threads]
assert same(work())
print("done")
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_children_forked_while_others_compute_compute_too(engine: str) -> None:
    ended = python(FORKED, engine)
    assert ended.stdout == "done\n", ended.stderr


AFTER_FORK = """
import os, sys
import numpy as np
import aclnn
from aclnn import ops
from aclnn.contract.cases import fill
def plans():
    for op in ops.all_ops():
        case = list(ops.cases(op))[-1]
        filled = fill(case)
        given = {a.name: filled[a.name] for a in op.inputs}
        yield op.name, getattr(aclnn, op.python)._plan(given, None, case.device, "auto", False)
x, w = np.ones((4, 16, 28, 28), aclnn.bfloat16), np.ones((16, 16, 3, 3), aclnn.bfloat16)
def convolution():
    return aclnn.convolution.plan(x, w, None, 1, 1, 1, False, 0, 1, 0)
before = {name: plan.kernel for name, plan in plans()} | {"large": convolution().kernel}
x.sum(), aclnn.convolution(x, w, None, 1, 1, 1, False, 0, 1, 0)
if os.fork() == 0:
    for name, plan in [*plans(), ("large", convolution())]:
        if plan.kernel != before[name]:
            print(name, before[name], plan.explain().replace(chr(10), ";"), flush=True)
    os._exit(0)
os.wait()
"""


def test_after_a_fork_the_plan_says_that_the_fork_is_why_another_kernel_serves() -> None:
    """A fork takes nothing from kernels of our own; it takes oneDNN, which only computes bfloat16, its threads."""
    pytest.importorskip("numba")
    ended = python(AFTER_FORK)
    changed = ended.stdout.splitlines()
    library = onednn.installed()
    served = library is not None and library.has_amx
    assert any(line.startswith("large onednn") for line in changed) == served, ended.stderr
    assert all("refused: a fork took oneDNN's threads away" in line for line in changed), changed


AT_EXIT = """
import sys
import numpy as np
import aclnn
x = np.ones(1 << 20, np.float32)
outs = [np.empty_like(x) for _ in range(8)]
streams = [aclnn.Stream() for _ in range(4)]
for i, out in enumerate(outs):
    plan = aclnn.elu.plan(x, out=out, engine=sys.argv[1])
    plan.run(np.empty(plan.workspace_size, np.uint8), streams[i % 4])
if sys.argv[2] == "drop":
    del streams
if sys.argv[2] == "fail":
    raise SystemExit(7)
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("how", "code"), [("end", 0), ("drop", 0), ("fail", 7)])
def test_an_interpreter_that_ends_with_work_in_flight_ends_in_peace(engine: str, how: str, code: int) -> None:
    ended = python(AT_EXIT, engine, how)
    assert (ended.returncode, ended.stderr) == (code, "")


def test_a_signal_handler_that_raises_leaves_executor_and_cache_usable() -> None:
    def ring(*given: Any) -> None:
        raise InterruptedError

    def run_for_ever() -> None:
        while True:
            executor.run()

    executor = aclnn.elu.plan(np.ones(1 << 20, np.float32), repeatable=True, engine="numpy")
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises((InterruptedError, aclnn.AclnnError)):
            run_for_ever()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    executor.run()
    assert aclnn.elu(X, engine="numpy").tobytes() == EXPECTED


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **more: Any) -> None:
        with open("/dev/full", "wb") as file:
            file.write(bytes(2**20))

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(aclnn.AclnnError, match="cannot be written: no space left on device"):
        containers.write(tmp_path / "x.npz", containers.Contents({"x": X}))
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_cannot_be_used_does_not_stop_anything(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    environment = os.environ | {"ACLNN_CACHE_DIR": str(blocked)}
    program = "import aclnn, numpy as np; print(aclnn.elu(np.float32([1, -1]))[0])"
    ended = python(program, env=environment)
    assert ended.stdout == "1.0\n", ended.stderr


def test_what_a_failed_run_leaves_is_reported_on_a_stream_too() -> None:
    case = next(c for c in ops.cases(ops.find("lstm_backward")))
    filled = fill(case)
    call(case, filled, engine="numpy")
    done = threading.Event()
    with aclnn.Stream() as stream:
        stream.submit(lambda: (_ for _ in ()).throw(SystemExit))
        stream.submit(done.set)
        with pytest.raises(SystemExit):
            stream.synchronize()
    assert done.is_set()
