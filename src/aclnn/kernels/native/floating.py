"""The floating-point state that kernels run under: every result is rounded to nearest, and no subnormal becomes zero.

A program linked with -ffast-math, torch.set_flush_denormal or fesetround change the state of a thread, and threads that
it starts inherit it. Kernels run under the default state, wherever they are called from; what was there is put back.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aclnn.base.run_once import once
from aclnn.kernels.native.memory import function_address

_LEAST_NORMAL, _HALF = 2.0**-1022, 0.5
_ONE, _LITTLE, _MORE = 1.0, 2.0**-53, 1.5 * 2.0**-53  # to nearest, the first is too little to be added to 1
_STATE_SIZE = 512  # bytes: more than any fenv_t has


def is_default() -> bool:
    """Whether this thread keeps subnormals and rounds to nearest: arithmetic itself answers sooner than a library."""
    return _LEAST_NORMAL * _HALF != 0 and _ONE + _LITTLE == _ONE != _ONE + _MORE


class _Environment:
    """fegetenv and fesetenv of the C library."""

    def __init__(self, library: ctypes.CDLL):
        self.get, self.set = library.fegetenv, library.fesetenv
        self.get.argtypes = self.set.argtypes = [ctypes.c_void_p]
        self.set_address = function_address(self.set)
        self.default = ctypes.c_void_p(-1).value or 0  # FE_DFL_ENV of glibc and musl
        if hasattr(library, "_FE_DFL_ENV"):  # of macOS
            self.default = ctypes.addressof(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))


class _Cleared(threading.local):
    workers = 0  # of this thread's, that have the default state


_cleared = _Cleared()


@once
def _environment() -> _Environment | None:
    try:
        return _Environment(ctypes.CDLL(None))
    except (OSError, AttributeError, TypeError):  # Windows has another interface
        return None


@contextmanager
def default() -> Iterator[None]:
    """The default state for this thread inside the block."""
    known = _environment()
    if known is None:
        yield
        return
    before = ctypes.create_string_buffer(_STATE_SIZE)
    known.get(before)
    _cleared.workers = 0  # new ones would begin with what this thread has had
    known.set(known.default)
    try:
        yield
    finally:
        known.set(before)


def clear_workers(parallel: Callable[[int, int, int, int], None], threads: int) -> None:
    """Gives the default state to the OpenMP threads that library code is about to run on: they have the one that this
    thread had when somebody started them. Called under the default state; our own kernels see to it themselves."""
    known = _environment()
    if known is not None and _cleared.workers < threads:
        parallel(known.set_address, known.default, threads, 0)
        _cleared.workers = threads
