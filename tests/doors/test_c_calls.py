"""What makes a C call cheap: phase 1 remembers, native kernels need no Python, and who waits does small work itself."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.base.dtype import FLOAT16
from aclnn.capi.engine import BoundPlan
from aclnn.capi.native import By, run_by
from aclnn.contract.cases import Case, fill
from aclnn.contract.model import Op
from aclnn.ops.convolution import convolution_backward_case
from aclnn.ops.elu import elu_backward_case
from aclnn.ops.lstm_cell import thnn_fused_lstm_cell_backward_case
from aclnn.runtime.call_cache import CachedCall
from aclnn.runtime.plan import make_plan
from tests.doors.c_door import CCall
from tests.doors.toolchain import built, compile_and_run, needs_compiler
from tests.harness import bits, call

pytestmark = needs_compiler

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "c" / "calls.cpp"

CALLS = """
import ctypes, sys, time
import aclnn
from aclnn.capi import engine
lib = ctypes.{how}(sys.argv[1])
for name in ("aclCreateTensor", "aclCreateScalar"):
    getattr(lib, name).restype = ctypes.c_void_p
planned, original = [], engine._plan
def counted(signature):
    planned.append(signature)
    return original(signature)
engine._plan = counted
count = int(sys.argv[2])
shape, memory = (ctypes.c_int64 * 1)(count), [(ctypes.c_float * count)(*[v] * count) for v in (2, -0.25, 0)]
one, zero = ctypes.c_uint64(1), ctypes.c_int64(0)
def tensor(data, rank=1):
    sizes = (ctypes.c_int64 * 2)(1, count)
    return ctypes.c_void_p(lib.aclCreateTensor(sizes if rank == 2 else shape, ctypes.c_uint64(rank), 0, None, zero, 2,
        shape, one, data))
scalar = ctypes.c_void_p(lib.aclCreateScalar(ctypes.byref(ctypes.c_float(1)), 0))
def plan(rank=1):
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    g, y, out = (tensor(data, rank) for data in memory)
    assert 0 == lib.aclnnEluBackwardGetWorkspaceSize(g, scalar, scalar, scalar, ctypes.c_bool(True), y, out,
        ctypes.byref(size), ctypes.byref(executor))
    assert size.value == 0
    return executor
"""


def run(code: str, elements: int, how: str = "CDLL") -> str:
    library = built() / "lib64" / "libopapi.so"
    command = [sys.executable, "-c", CALLS.replace("{how}", how) + code, str(library), str(elements)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
    return ended.stdout


def test_phase_1_asks_python_once_for_calls_alike() -> None:
    said = run("for _ in range(5): plan()\nprint(len(planned))\nplan(2)\nplan(2)\nprint(len(planned))", 4)
    assert said.split() == ["1", "2"]


def test_after_a_context_only_python_knows_what_a_call_means() -> None:
    said = run("plan()\nwith aclnn.product('Atlas A3'): plan()\nplan()\nprint(len(planned))", 4)
    assert said.split() == ["3"]


def test_clearing_the_cache_reaches_the_library() -> None:
    weak = "import gc, weakref\nkept = weakref.ref(original(planned[0])[1].plan)\n"
    clear = "executor = plan()\naclnn.cache_clear()\ngc.collect()\nprint(kept() is None)\n"
    ended = "lib.aclDestroyAclOpExecutor(executor)\ngc.collect()\nprint(kept() is None)\nplan()\nprint(len(planned))"
    assert run("lib.aclDestroyAclOpExecutor(plan())\n" + weak + clear + ended, 4).split() == ["False", "True", "2"]


def test_a_native_kernel_runs_while_another_thread_holds_pythons_lock() -> None:
    """PyDLL keeps the lock during a call, and the interpreter gives it up only after a minute: 500 runs get done."""
    code = """
sys.setswitchinterval(60)
executor, status = plan(), ctypes.c_int(1)
lib.aclSetAclOpExecutorRepeatable(executor)
for _ in range(500): assert 0 == lib.aclnnEluBackward(None, ctypes.c_uint64(0), executor, None)
end = time.monotonic() + 30
while status.value and time.monotonic() < end: lib.aclrtStreamQuery(None, ctypes.byref(status))
print(status.value, time.monotonic() < end, memory[2][0], memory[2][count - 1])
"""
    assert run(code, 30000, "PyDLL") == "0 True 1.5 1.5\n"


NATIVE = [op for op in ops.all_ops() if ops.family_of(op) in ("elu", "lstm_cell", "convolution", "conv_tbc")]


@pytest.mark.parametrize("op", NATIVE, ids=str)
def test_native_calls_give_the_bits_of_python(op: Op) -> None:
    """Every layout, dtype and absent tensor; what is only launches the library does by itself."""
    by_itself = 0
    with aclnn.engine("fast"), aclnn.threads(1):
        for case in ops.cases(op):
            from_python, from_c = fill(case, 3), fill(case, 3)
            try:
                call(case, from_python)
            except aclnn.AclnnError:  # not for this engine
                continue
            made = CCall(case, from_c)
            assert made.outcome() == (0, ""), case.note
            made.destroy()
            assert bits(case, from_c) == bits(case, from_python), case.note
            by_itself += BoundPlan(CachedCall(make_plan(op, case.in_steps().call, "fast", 1)), 0).native is not None
    assert by_itself > 5


@pytest.mark.parametrize("threads", [1, 2])
def test_large_native_calls_give_the_bits_of_python(threads: int) -> None:
    """On two threads the kernel's team; with a bias the cell also keeps sums in the workspace, which lies anywhere."""
    with aclnn.threads(threads):
        for case in (elu_backward_case((300, 301)), thnn_fused_lstm_cell_backward_case(200, 96, dtype=FLOAT16)):
            assert BoundPlan(CachedCall(make_plan(case.op, case.call, "auto", threads)), 0).native is not None
            from_python, from_c = fill(case, 3), fill(case, 3)
            call(case, from_python)
            made = CCall(case, from_c)
            assert made.outcome() == (0, "")
            made.destroy()
            assert bits(case, from_c) == bits(case, from_python)


def padded_convolution() -> Case:
    """On tiles, where padding is multiplied: what is not finite is for another kernel."""
    return convolution_backward_case(in_channels=40, out_channels=36, padding=1)


def test_what_native_kernels_are_not_made_for_comes_from_python() -> None:
    case = padded_convolution()
    with aclnn.engine("fast"), aclnn.threads(1):
        plan = make_plan(case.op, case.call, "fast", 1)
        assert (plan.kernel, BoundPlan(CachedCall(plan), 0).native is None) == ("tiles", False)
        for value in (np.inf, np.nan, 1.0):  # in the end all is as before
            from_python, from_c = fill(case, 3), fill(case, 3)
            for filled in (from_python, from_c):
                filled["weight"].view[3, 2, 0, 0] = value
            call(case, from_python)
            made = CCall(case, from_c)
            assert made.outcome() == (0, "")
            made.destroy()
            assert bits(case, from_c) == bits(case, from_python)


def test_what_one_run_meets_is_nothing_to_another_of_the_same_plan() -> None:
    """Two threads, one with an infinity in its weight: each has its own results, every time."""
    case = padded_convolution()

    def many(value: float) -> bool:
        with aclnn.engine("fast"), aclnn.threads(1):
            wanted = fill(case, 3)
            wanted["weight"].view[3, 2, 0, 0] = value
            call(case, wanted)
            return all(self_made(value) == bits(case, wanted) for _ in range(60))

    def self_made(value: float) -> Any:
        filled = fill(case, 3)
        filled["weight"].view[3, 2, 0, 0] = value
        made, stream = CCall(case, filled), ctypes.c_void_p()
        assert made.lib.aclrtCreateStream(ctypes.byref(stream)) == 0
        assert (made.plan(), made.run(stream), made.lib.aclrtDestroyStream(stream)) == (0, 0, 0)
        made.destroy()
        return bits(case, filled)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(many, [np.inf, 1.0])) == [True, True]


def test_what_wakes_threads_stays_with_the_worker() -> None:
    """The team of a kernel belongs to the thread that woke it first; a second one beside it would slow both."""
    cases = (
        elu_backward_case((4,)),
        elu_backward_case((80, 801)),
        convolution_backward_case(),
        elu_backward_case((300, 301)),
    )
    plans = [make_plan(c.op, c.call, "auto", 2) for c in cases]
    natives = [BoundPlan(CachedCall(plan), 0).native for plan in plans]
    assert [*map(run_by, plans, natives)] == [By.BRINGER, By.BRINGER, By.ANYONE, By.WORKER]
    assert [native and native.threads for native in natives] == [1, 1, 1, 2]


@needs_compiler
@pytest.mark.parametrize("shape", [(80, 801), (64, 1024)])
def test_what_is_computed_where_it_is_brought_is_the_same_on_one_thread(shape: tuple[int, ...]) -> None:
    case = elu_backward_case(shape)
    wanted, filled = fill(case, 3), fill(case, 3)
    with aclnn.threads(2):
        call(case, wanted)
        made, stream = CCall(case, filled), ctypes.c_void_p()
        assert made.lib.aclrtCreateStream(ctypes.byref(stream)) == 0
        assert (made.plan(), made.run(stream)) == (0, 0)
    assert made.lib.aclrtDestroyStream(stream) == 0
    made.destroy()
    assert bits(case, filled) == bits(case, wanted)


AT_ONCE = """
#include <cstdio>
#include <cstdlib>
#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"
#define NEED(call) if ((call) != 0) std::abort()

int main() {
  NEED(aclInit(nullptr));
  aclrtStream stream;
  NEED(aclrtCreateStream(&stream));
  float g = 2, y = -0.25f, out = 0, one = 1;
  const int64_t count = 1;
  aclTensor* tensors[3];
  float* memory[3] = {&g, &y, &out};
  for (int i = 0; i < 3; ++i) {
    tensors[i] = aclCreateTensor(&count, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &count, 1, memory[i]);
  }
  aclScalar* scalar = aclCreateScalar(&one, ACL_FLOAT);
  int done = 0;
  for (int i = 0; i < 1000; ++i) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    NEED(aclnnEluBackwardGetWorkspaceSize(tensors[0], scalar, scalar, scalar, true, tensors[1], tensors[2], &size,
                                          &executor));
    g = static_cast<float>(2 * i);
    NEED(aclnnEluBackward(nullptr, 0, executor, stream));
    aclrtStreamStatus status;
    NEED(aclrtStreamQuery(stream, &status));
    done += status == ACL_STREAM_STATUS_COMPLETE && out == 1.5f * i;
  }
  NEED(aclrtSynchronizeStream(stream));
  std::printf("%d %g", done, out);
}
"""


def test_what_takes_no_time_is_done_where_it_is_brought(tmp_path: Path) -> None:
    """Who checks wants to see work that waits: every time it would be done already is unlikely beyond doubt there."""
    source = tmp_path / "at_once.cpp"
    source.write_text(AT_ONCE)
    assert compile_and_run(source, tmp_path) == "1000 1498.5"
    done, last = compile_and_run(source, tmp_path, ACLNN_CHECK="1").split()
    assert (int(done) < 1000, last) == (True, "1498.5")


def test_the_benchmark_measures_right_results(tmp_path: Path) -> None:
    """It ends with 1 if one is wrong."""
    said = compile_and_run(BENCHMARK, tmp_path, "-O2").splitlines()
    assert [line.split()[-1] for line in said] == ["us"] * 5 + ["one"] * 2
