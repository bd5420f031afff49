"""What a run would launch, written down instead of launched: who knows the launches can repeat them without Python."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from aclnn.kernels.native.abi import FIRST_ARGUMENT, WHO


class Launched(NamedTuple):
    """One launch: native code, its block as it was then, the threads that were asked for and those that can be had."""

    entry: int
    block: tuple[int, ...]
    wanted: int
    threads: int

    def alone(self) -> Launched:
        """The same on the thread that launches it."""
        return self._replace(block=(*self.block[:WHO], 0, 0, *self.block[FIRST_ARGUMENT:]), threads=1)


class Tape:
    """The launches of a run in their order, and the place of its finding, if it has one."""

    def __init__(self) -> None:
        self.launches: list[Launched] = []
        self.finding: int | None = None


class _Recording(threading.local):
    tape: Tape | None = None


_recording = _Recording()


def current() -> Tape | None:
    """The tape that this thread records on."""
    return _recording.tape


@contextmanager
def recording() -> Iterator[Tape]:
    """Works and the finding that this thread makes in the block belong to its tape: the works never launch anything."""
    tape = _recording.tape = Tape()
    try:
        yield tape
    finally:
        _recording.tape = None


class Finding:
    """Where the kernels of a run write a number other than 0 when they met what they are not made for. Behind it the
    threads of a launch count the shares of its work that they take."""

    def __init__(self) -> None:
        self._place = (ctypes.c_int64 * 2)()
        self.address = ctypes.addressof(self._place)
        if (tape := current()) is not None:
            tape.finding = self.address

    def __bool__(self) -> bool:
        return self._place[0] != 0

    def clear(self) -> None:
        self._place[0] = 0

    def begin_launch(self) -> None:
        self._place[1] = 0
