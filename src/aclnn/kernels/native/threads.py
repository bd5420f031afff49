"""Running native code on n threads, through the OpenMP runtime that oneDNN uses.

How many: `aclnn.threads(n)`, else ACLNN_NUM_THREADS, else OMP_NUM_THREADS, else the affinity mask. The number is part
of the plan, and every launch names it: nothing is set for the process or left behind in a thread.

numba's own thread layers are not used. Its omp layer brings a second libgomp beside the one that torch and oneDNN share
(they find each other by the name libgomp.so.1), and two of them slow each other down 1.7 to 2.6 times; its workqueue
layer aborts the process on concurrent launches. Where there is no libgomp, pool.py has threads of our own.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import getpid
from typing import Any, NamedTuple

from aclnn.base.geometry import Array
from aclnn.base.run_once import look_before_fork, once
from aclnn.kernels.native import pool, recorded_launches, tensor_calls
from aclnn.kernels.native.abi import FIRST_ARGUMENT, HOW_MANY, WHO
from aclnn.kernels.native.entry import Entry
from aclnn.kernels.native.memory import address, aligned, function_address

_NAME = "libgomp.so.1"
_process = os.getpid()
_has_threads = False  # whether libgomp was there at the last fork
_lost_threads = False  # whether it was there when this process was forked off


class Runtime:
    """The libgomp of this process."""

    def __init__(self, library: ctypes.CDLL):
        self.parallel = library.GOMP_parallel  # (function, argument, threads, flags): what `#pragma omp parallel` calls
        self.parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        self.parallel.restype = None
        self.who = function_address(library.omp_get_thread_num)
        self.how_many = function_address(library.omp_get_num_threads)
        self.parallel_address = function_address(library.GOMP_parallel)


class Limits(NamedTuple):
    """How many threads library code on the calling thread may use, asked and set."""

    get: Callable[[], int]
    set: Callable[[int], None]

    @classmethod
    def of(cls, library: ctypes.CDLL) -> Limits:
        """Those of the OpenMP runtime that a library is linked to; fixed to one thread where there is none."""
        try:
            get, set_ = library.omp_get_max_threads, library.omp_set_num_threads
        except AttributeError:
            return cls(lambda: 1, lambda threads: None)
        set_.restype = None
        return cls(get, set_)

    @contextmanager
    def held_at(self, threads: int) -> Iterator[None]:
        """Sets the limit inside the block and puts it back: torch shares it."""
        before = self.get()
        if before == threads:
            yield
            return
        self.set(threads)
        try:
            yield
        finally:
            self.set(before)


@once
def runtime() -> Runtime | None:
    """libgomp, whoever loaded it first; None where there is none."""
    try:
        return Runtime(ctypes.CDLL(_NAME))
    except (OSError, AttributeError):
        return None


def forked() -> bool:
    """Whether a fork took OpenMP's threads away: libgomp would wait for them for ever."""
    return _lost_threads or os.getpid() != _process


def usable(threads: int) -> int:
    """How many of the threads asked for can be had."""
    return 1 if threads == 1 or forked() or runtime() is None else threads


class Work:
    """A kernel and its arguments, ready to be launched. Belongs to one executor: arguments change from run to run."""

    def __init__(
        self,
        entry: Entry,
        items: int,
        chunk: int,
        arguments: Sequence[int | float],
        threads: int,
        keep: object = None,  # memory that arguments point to
    ):
        self.threads, self._keep = threads, keep
        self.tensors: Sequence[Array | None] = ()  # that arguments point to for good
        self._tape = recorded_launches.current()
        self.entry, self._omp = entry, runtime() if threads > 1 else None
        self.block: Any = (ctypes.c_int64 * (FIRST_ARGUMENT + len(arguments)))()
        self.address = ctypes.addressof(self.block)
        self.block[0], self.block[1] = items, chunk
        for i, value in enumerate(arguments):
            self.block[FIRST_ARGUMENT + i] = value if isinstance(value, int) else bits_of(value)

    def point(self, first: int, *addresses: int) -> None:
        """Sets the arguments from `first` on."""
        start = FIRST_ARGUMENT + first
        self.block[start : start + len(addresses)] = addresses

    def arm(self) -> int:
        """Makes the block fit for the threads that can be had now, and says how many they are."""
        threads, omp = usable(self.threads), runtime()
        self.block[WHO], self.block[HOW_MANY] = (0, 0) if threads == 1 or omp is None else (omp.who, omp.how_many)
        return threads

    def run(self) -> None:
        if self._tape is not None:
            team = self.arm()
            self._tape.launches.append(
                recorded_launches.Launched(self.entry.address, tuple(self.block), self.threads, team)
            )
            return
        if self.threads == 1:
            self.entry.call(self.address)
            return
        omp = self._omp
        if _lost_threads or getpid() != _process:  # as forked() has it, a call less: this is asked for every loop
            self.arm()
            self.entry.call(self.address)
        elif omp is not None:
            self.block[WHO], self.block[HOW_MANY] = omp.who, omp.how_many
            omp.parallel(self.entry.address, self.address, self.threads, 0)
        else:
            pool.run(self.entry, self.block, self.threads)


class LaunchedRun:
    """A run that is one piece of work, whose first arguments are where tensors lie: all of them, or those at `places`;
    0 for none. The argument `scratch`, if there is one, is where the workspace's first cache line begins."""

    def __init__(self, make: Callable[[], Work], places: Sequence[int] | None = None, scratch: int | None = None):
        self._make, self._places, self._scratch = make, places, scratch
        self._work = make()
        alone = places is None and scratch is None and self._work.threads == 1
        self.function = self._work.entry.on_arrays(self._work.block, self._work) if alone else None

    def __call__(self, workspace: Array | None, *tensors: Array | None) -> None:
        self._point(self._work, workspace, tensors)
        self._work.run()

    def on_tensors(self, *what: Any) -> Callable[..., Any] | None:
        """The same as one call of torch tensors that makes its result: see tensor_calls.py."""
        if self.function is None:
            return None
        work = self._make()
        return tensor_calls.on_tensors(work.entry, work.address, work, *what)

    def bound(self, workspace: Array | None, *tensors: Array | None) -> Callable[[], None]:
        """The same on these tensors, which it keeps alive, for good: no address is looked up again."""
        work = self._make()
        work.tensors = (workspace, *tensors)
        self._point(work, workspace, tensors)
        return work.run

    def _point(self, work: Work, workspace: Array | None, tensors: Sequence[Array | None]) -> None:
        if self._scratch is not None and workspace is not None:
            work.point(self._scratch, aligned(address(workspace)))
        used = tensors if self._places is None else [tensors[i] for i in self._places]
        for i, tensor in enumerate(used, FIRST_ARGUMENT):
            work.block[i] = 0 if tensor is None else address(tensor)


def bits_of(value: float) -> int:
    """The bits of a value rounded to float32, as a block carries them."""
    return ctypes.c_uint32.from_buffer(ctypes.c_float(value)).value  # struct refuses what rounds to infinity


def worth(items: int, least: int, threads: int) -> int:
    """How many threads have at least `least` items each."""
    return max(1, min(threads, items // least))


def _look_for_threads() -> None:
    global _has_threads
    try:
        ctypes.CDLL(_NAME, mode=os.RTLD_NOLOAD)  # torch may have loaded it
        _has_threads = True
    except OSError:
        _has_threads = False


def _after_fork() -> None:
    global _process, _lost_threads
    _process = os.getpid()
    _lost_threads = _lost_threads or _has_threads


look_before_fork(_look_for_threads)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
