"""The threads of the BLAS that numpy brings along.

Judging a dump is thousands of small matrix products. OpenBLAS shares each among all cores, and its threads spin while
they wait for each other: beside one other busy process a product of 16 × 15,376 × 16 took 348 ms on two threads and
0.7 ms on one. So calls are judged on one thread each, and processes (`--jobs`) share the calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.run_once import ProcessLock


class _Switch(NamedTuple):
    """How many threads the library uses, asked and set: for the whole process."""

    get: Any
    set: Any


class _Users:
    """Who wants one thread now: the first one in notes how many there were, the last one out puts that back."""

    def __init__(self) -> None:
        self.lock = ProcessLock()
        self.count = self.before = 0

    def enter(self, switch: _Switch) -> None:
        with self.lock():
            if not self.count:
                self.before = switch.get()
                switch.set(1)
            self.count += 1

    def leave(self, switch: _Switch) -> None:
        with self.lock():
            self.count -= 1
            if not self.count:
                switch.set(self.before)


_users = _Users()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for matrix products while it lasts; where the library cannot be told, that costs time alone."""
    switch = _switch()
    if switch is None:
        yield
        return
    _users.enter(switch)
    try:
        yield
    finally:
        _users.leave(switch)


@cache
def _switch() -> _Switch | None:
    """That of the OpenBLAS inside numpy's wheel; a BLAS of the system is left alone."""
    package = Path(np.__file__).parent
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            found = _switch_of(path)
            if found is not None:
                return found
    return None


def _switch_of(path: Path) -> _Switch | None:
    try:
        library = ctypes.CDLL(str(path))  # loaded already: this only finds it again
    except OSError:
        return None
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            pair = [getattr(library, f"{prefix}_{verb}_num_threads{suffix}", None) for verb in ("get", "set")]
            if all(pair):
                return _Switch(*pair)
    return None
