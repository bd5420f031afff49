"""Same bits: run after run, from many threads, on streams, by plans, in other processes, through the cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill
from aclnn.contract.model import Op
from aclnn.runtime.call_cache import CallCache
from tests.harness import bits, call

ENGINES = ("auto", "fast", "numpy", "reference")


def run_bits(case: Case, engine: str) -> list[bytes]:
    filled = fill(case, seed=1)
    call(case, filled, engine=engine)
    return bits(case, filled)


def run_planned(case: Case, engine: str, stream: aclnn.Stream | None) -> list[bytes]:
    """The same by the two phases: plan, workspace, run."""
    filled = fill(case, seed=1)
    given = {a.name: filled[a.name] for a in case.op.inputs}
    out = tuple(filled[a.name] for a in case.op.fresh) or None
    executor = getattr(aclnn, case.op.python)._plan(given, out, case.device, engine, True)
    for _ in range(1 if any(a.updated for a in case.op.outputs) else 3):
        executor.run(np.empty(executor.workspace_size, np.uint8), stream)
    if stream is not None:
        stream.synchronize()
    return bits(case, filled)


def at_once(work: Callable[[], Any], times: int) -> list[Any]:
    """The same work from several threads that start together."""
    start = threading.Barrier(times)

    def begin() -> Any:
        start.wait()
        return work()

    with ThreadPoolExecutor(times) as pool:
        return [f.result() for f in [pool.submit(begin) for _ in range(times)]]


def served(case: Case, engine: str) -> bool:
    try:
        run_bits(case, engine)
    except aclnn.AclnnError as error:
        return "cannot serve" not in error.message
    return True


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("op", ops.all_ops(), ids=lambda o: o.name)
def test_threads_plans_and_streams_give_the_bits_of_a_serial_call(op: Op, engine: str) -> None:
    case = next(ops.cases(op))
    if not served(case, engine):
        pytest.skip("this engine does not serve the case")
    expected = run_bits(case, engine)
    assert run_planned(case, engine, None) == expected
    assert at_once(lambda: run_bits(case, engine), 4) == [expected] * 4
    with aclnn.Stream() as one, aclnn.Stream() as other:
        streams = iter([one, other] * 2)
        assert at_once(lambda: run_planned(case, engine, next(streams)), 4) == [expected] * 4


def test_one_repeatable_executor_from_many_threads_runs_one_at_a_time() -> None:
    x = np.linspace(-3, 3, 4096, dtype=np.float32)
    out = np.empty_like(x)
    executor = aclnn.elu.plan(x, out=out, repeatable=True)
    workspace = np.empty(executor.workspace_size, np.uint8)
    at_once(lambda: [executor.run(workspace) for _ in range(50)], 4)
    assert out.tobytes() == aclnn.elu(x).tobytes()


def test_the_plan_cache_under_threads() -> None:
    cache, plan = CallCache(most_calls=8), aclnn.elu.plan(np.ones(1, np.float32)).plan
    at_once(lambda: [cache.get(i % 16, lambda: plan) for i in range(2000)] and None, 4)
    info = cache.info()
    assert info.size <= 8
    assert info.hits + info.misses == 8000


def test_a_cache_that_is_cleared_all_the_time_changes_no_result() -> None:
    case = next(ops.cases(ops.find("convolution_backward")))
    expected, stop = run_bits(case, "auto"), threading.Event()

    def clear() -> None:
        while not stop.is_set():
            aclnn.cache_clear()

    cleaner = threading.Thread(target=clear)
    cleaner.start()
    try:
        assert at_once(lambda: [run_bits(case, "auto") for _ in range(10)], 3) == [[expected] * 10] * 3
    finally:
        stop.set()
        cleaner.join()


DIGEST = """
import hashlib, sys
import aclnn
from aclnn import ops
from tests.hostile.test_same_bits import run_bits
with aclnn.threads(int(sys.argv[2])):
    for op in ops.all_ops():
        found = run_bits(next(ops.cases(op)), sys.argv[1])
        print(op.name, hashlib.sha256(b"".join(found)).hexdigest())
"""


def digests(engine: str, threads: int) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    ended = subprocess.run(
        [sys.executable, "-c", DIGEST, engine, str(threads)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
def test_two_processes_give_the_same_bits(engine: str) -> None:
    first, second = digests(engine, 2), digests(engine, 2)
    assert first == second
    here = [hashlib.sha256(b"".join(run_bits(next(ops.cases(op)), engine))).hexdigest() for op in ops.all_ops()]
    if engine != "auto":  # there the number of threads is part of the plan
        assert [line.split()[1] for line in first] == here
