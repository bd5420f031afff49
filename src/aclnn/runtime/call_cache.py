"""The calls that were made, each with its plan and with what the next one like it needs: one key, one owner.

It is bounded in calls, in bytes and in idle runs; whoever was not used for longest goes first, and all of it can be
given back at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import WeakSet

from aclnn.base.run_once import ProcessLock
from aclnn.kernels.native import floating
from aclnn.kernels.native.floating import is_default
from aclnn.kernels.registry import Run, forgetters
from aclnn.runtime import large_outputs, scratch
from aclnn.runtime.call_key import CallKey
from aclnn.runtime.plan import Plan, failure
from aclnn.runtime.replay import Replay

MOST_CALLS = 1024
MOST_BYTES = 2**26  # of keys, plans and views; lists of tensors may be long
MOST_RUNS = 128  # that wait, of all calls together: a training step of a ResNet-50 needs 106
MOST_RUNS_OF_ONE = 2

_BYTES_OF_CALL, _BYTES_OF_TENSOR = 2**14, 2**12  # roughly what tracemalloc says of small calls, and of long lists

_last_used = attrgetter("used")


class CachedCall:
    """A plan with the runs that wait for the next call of it, and with what is left to do for a functional one.

    To make a run takes 0.1 ms, and its first call as much again; but a run keeps native code alive, some megabytes.
    """

    __slots__ = ("__weakref__", "idle", "plan", "replay", "size", "used")

    def __init__(self, plan: Plan, used: int = 0):
        self.plan, self.used = plan, used  # when: hits and misses so far
        self.replay: Replay | None = None
        self.idle: list[Run] = []
        tensors = sum(len(plan.call.specs(a.name)) for a in plan.op.tensors)
        self.size = _BYTES_OF_CALL + _BYTES_OF_TENSOR * tensors

    def run(self, *given: Any) -> None:
        """Runs the kernel on scratch and tensors. Whatever it raises becomes a code.

        A run that has ended well is kept for the next call. A call inside this one, or on another thread, has another.
        """
        idle = self.idle
        try:
            run = idle.pop()  # nobody else has it now
        except IndexError:
            run = self._new_run()
        try:
            if is_default():
                run(*given)
            else:
                with floating.default():
                    run(*given)
        except Exception as error:
            raise failure(self.plan.op, self.plan.kernel, error) from error
        if len(idle) < MOST_RUNS_OF_ONE:
            idle.append(run)

    def _new_run(self) -> Run:
        made = self.plan.instantiate()
        call_cache.make_room_for_a_run(self)
        return getattr(made, "function", None) or made


class CacheInfo(NamedTuple):
    hits: int
    misses: int
    size: int
    limit: int


class CallCache:
    """Safe to share between threads, and to enter again: finding is a step of a dict, and changes hold a lock."""

    def __init__(self, most_calls: int = MOST_CALLS, most_bytes: int = MOST_BYTES, most_runs: int = MOST_RUNS):
        self._most_calls, self._most_bytes, self._most_runs = most_calls, most_bytes, most_runs
        self._lock = ProcessLock()
        self.start_afresh()

    def start_afresh(self) -> None:
        self._calls: dict[CallKey, CachedCall] = {}
        self._bytes = 0
        self._forget_familiar()
        self._with_runs: WeakSet[CachedCall] = WeakSet()
        self._runs = 0  # at most so many wait
        self._hits = self._misses = 0

    def ready(self, key: CallKey) -> CachedCall | None:
        """The call of a key, if there is nothing to check or to find out any more; without the lock."""
        cached = self._calls.get(key)
        return None if cached is None or cached.replay is None else cached

    def note_use(self, cached: CachedCall) -> None:
        """A call that was kept is made again; without the lock: of two threads at once, one count may be lost."""
        self._hits += 1
        cached.used = self._hits + self._misses

    def keep_familiar(self, key: CallKey, calls: Any) -> None:
        """They go with the calls that they keep alive, and where there are too many."""
        if len(self.familiar) >= self._most_calls:
            self._forget_familiar()
        self.familiar[key] = calls

    def _forget_familiar(self) -> None:
        self.familiar: dict[CallKey, Any] = {}  # see familiar_calls.py
        self.latest: dict[Any, Any] = {}  # of them, by operator

    def get(self, key: CallKey, make: Callable[[], Plan]) -> CachedCall:
        """The call of a key; planned now if there is none."""
        with self._lock():
            cached = self._calls.get(key)
            if cached is not None:
                self._hits += 1
                cached.used = self._hits + self._misses
                return cached
            self._misses += 1
        plan = make()  # outside the lock: a plan may take long, and may raise; two threads may both make it
        with self._lock():
            cached = self._calls.get(key)
            if cached is None:
                cached = self._calls[key] = CachedCall(plan, self._hits + self._misses)
                self._bytes += cached.size
                self._make_room(key)
        return cached

    def _make_room(self, newest: CallKey) -> None:
        """Lets go of an eighth of what there may be, so that this is seldom."""
        if len(self._calls) <= self._most_calls and self._bytes <= self._most_bytes:
            return
        self._forget_familiar()
        oldest_first = sorted((key for key in self._calls if key is not newest), key=lambda key: self._calls[key].used)
        for key in oldest_first:
            if len(self._calls) <= self._most_calls * 7 // 8 and self._bytes <= self._most_bytes * 7 // 8:
                return
            self._bytes -= self._calls.pop(key).size

    def make_room_for_a_run(self, cached: CachedCall) -> None:
        """One more run will wait for calls like this one: those that were not used for longest give up theirs."""
        with self._lock():
            self._with_runs.add(cached)
            self._runs += 1
            if self._runs <= self._most_runs:
                return
            waiting = sorted(self._with_runs, key=_last_used)
            self._runs = 1 + sum(len(one.idle) for one in waiting)  # some were dropped meanwhile
            for one in waiting:
                if self._runs <= self._most_runs * 7 // 8:
                    return
                if one is not cached:
                    self._runs -= len(one.idle)
                    one.idle.clear()

    def idle_runs(self) -> int:
        with self._lock():
            return sum(len(one.idle) for one in self._with_runs)

    def info(self) -> CacheInfo:
        with self._lock():
            return CacheInfo(self._hits, self._misses, len(self._calls), self._most_calls)

    def clear(self) -> None:
        with self._lock():
            for one in self._with_runs:  # of those too that others still hold
                one.idle.clear()
            self.start_afresh()


call_cache = CallCache()
if hasattr(os, "register_at_fork"):
    # The threads that some of the plans count on stayed in the parent, and so did whoever was changing the cache.
    os.register_at_fork(after_in_child=call_cache.start_afresh)


def clear() -> None:
    """Forgets all calls, and gives back the scratch, the runs and the programs that were kept for them."""
    call_cache.clear()
    scratch.clear()
    large_outputs.clear()
    for forget in forgetters:
        forget()
