"""Calls are kept under one key, refreshed on every hit, and bounded: in number, in bytes, in runs that wait."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.kernels.onednn import program
from aclnn.runtime.call_cache import MOST_CALLS, MOST_RUNS, CachedCall, CallCache, call_cache
from aclnn.runtime.plan import Plan


def convolve(width: int) -> Any:
    x, w = np.ones((1, 8, 8, width), np.float32), np.ones((8, 8, 3, 3), np.float32)
    return aclnn.convolution(x, w, None, 1, 1, 1, False, 0, 1, 0, engine="fast")


def alive(kind: type) -> int:
    gc.collect()
    return sum(type(thing) is kind for thing in gc.get_objects())


def test_many_shapes_keep_no_more_programs_alive_than_is_said() -> None:
    pytest.importorskip("numba")
    aclnn.cache_clear()
    before = alive(program.Session), alive(program.Program)
    for width in range(9, 9 + MOST_RUNS + 40):
        convolve(width)
    assert call_cache.idle_runs() <= MOST_RUNS
    assert alive(program.Session) - before[0] <= MOST_RUNS
    assert alive(program.Program) - before[1] <= 128
    aclnn.cache_clear()
    assert call_cache.idle_runs() == 0
    assert alive(program.Session) <= before[0]


def cached(cache: CallCache, key: str, plan: Plan) -> CachedCall:
    return cache.get(key, lambda: plan)


def plan_of(count: int) -> Plan:
    return aclnn.elu.plan(np.ones(count, np.float32), engine="numpy").plan


def test_what_was_used_last_stays_and_what_was_not_used_for_longest_goes() -> None:
    cache, plan = CallCache(most_calls=8), plan_of(1)
    for key in "abcdefgh":
        cached(cache, key, plan)
    kept = cached(cache, "a", plan)  # a hit
    cached(cache, "i", plan)
    assert cache.info().size <= 8
    assert cached(cache, "a", plan) is kept
    misses = cache.info().misses
    cached(cache, "b", plan)
    assert cache.info().misses == misses + 1


def test_a_call_that_is_ready_counts_as_used() -> None:
    aclnn.cache_clear()
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    aclnn.elu(x)
    (entry,) = call_cache._calls.values()
    for n in range(1, MOST_CALLS + 20):
        aclnn.elu(x)
        aclnn.elu(x, alpha=float(n + 1))
    assert entry in call_cache._calls.values()
    assert aclnn.cache_info().size <= MOST_CALLS


def test_calls_are_bounded_in_bytes() -> None:
    plan = plan_of(1)
    size = CachedCall(plan).size
    cache = CallCache(most_bytes=10 * size)
    for n in range(100):
        cached(cache, f"{n}", plan)
        assert cache._bytes == sum(one.size for one in cache._calls.values()) <= 10 * size
    assert "99" in cache._calls
    many = CallCache(most_bytes=size // 2)  # not even one: it is kept while it is the last
    assert cached(many, "a", plan) is cached(many, "a", plan)


def test_a_call_takes_about_as_many_bytes_as_is_said() -> None:
    """Long lists of tensors count by the tensor: that of many calls with thousands of them would be gigabytes."""
    params = [np.ones((8, 2), np.float32)] * 2
    x, state = np.ones((3, 2, 2), np.float32), np.ones((1, 2, 2), np.float32)
    flags: dict[str, Any] = {"has_bias": False, "num_layers": 1, "bidirectional": False, "batch_first": False}
    few = aclnn.lstm.plan(x, params, (state, state), **flags).plan
    elu = plan_of(1)
    assert CachedCall(few).size > CachedCall(elu).size
    aclnn.cache_clear()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for n in range(200):
            aclnn.elu(np.ones(4, np.float32), alpha=float(n + 2), engine="numpy")
        grown = (tracemalloc.get_traced_memory()[0] - before) / 200
    finally:
        tracemalloc.stop()
    assert grown <= CachedCall(elu).size


def test_the_runs_that_were_not_used_for_longest_make_room_and_are_made_again() -> None:
    aclnn.cache_clear()
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    expected = aclnn.elu(x, engine="numpy").tobytes()
    (entry,) = call_cache._calls.values()
    (run,) = entry.idle
    for n in range(2 * MOST_RUNS):
        aclnn.elu(x, engine="numpy")
        aclnn.elu(x, alpha=float(n + 2), engine="numpy")
        assert call_cache.idle_runs() <= MOST_RUNS
    assert entry.idle == [run]  # used all the time
    for n in range(2 * MOST_RUNS):
        aclnn.elu(x, alpha=float(n + 1000), engine="numpy")
    assert entry.idle == []
    assert aclnn.elu(x, engine="numpy").tobytes() == expected
    assert len(entry.idle) == 1
    aclnn.cache_clear()
    assert call_cache.idle_runs() == 0
    assert aclnn.cache_info() == (0, 0, 0, MOST_CALLS)


def test_a_run_that_failed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from aclnn.kernels.registry import Kernel, Prepared
    from aclnn.runtime import plan as plan_module

    def fail(*given: Any) -> None:
        raise ZeroDivisionError

    kernel = Kernel("failing", "numpy", lambda call, threads: Prepared(lambda: fail))
    aclnn.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(plan_module, "kernels_of", lambda *names: (kernel,))
        for _ in range(3):
            with pytest.raises(aclnn.AclnnError):
                aclnn.elu(np.ones(3, np.float32), engine="numpy")
    aclnn.cache_clear()
    assert call_cache.idle_runs() == 0
