"""What is done once in a process, by one thread while others wait; and locks that a fork leaves usable.

functools.cache has no lock: two threads that come first both do the work, and what the two made gets mixed. And a lock
that another thread holds during a fork stays locked in the child for ever.

Locks are handed out and entered as they are, `with lock():`. The enter and exit of a class of ours would be Python
code, and an interrupt between the acquiring and the end of that code would leave the lock held.
"""

from __future__ import annotations

import logging  # noqa: F401  (before our handlers of forks: see _before_fork)
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar, overload

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")

_forks = 0
_gate = threading.RLock()  # held by a fork: nobody begins to make anything
_makers: dict[int, Any] = {}  # for every thread that ever made something, the lock that it holds while it does
_PAUSE, _PATIENCE = 0.001, 60.0  # seconds between two looks of a fork that waits, and how long it does
_held: list[Any] = []  # what the fork under way holds of these
_lookers: list[Callable[[], None]] = []  # called before a fork


def look_before_fork(look: Callable[[], None]) -> None:
    """Has `look` called before every fork, when nothing is being made any more: what it finds, the child will have."""
    _lookers.append(look)


def fork_count() -> int:
    """How many forks lie between the first process and this one."""
    return _forks


class ProcessLock:
    """Hands out a lock that nobody outside this process can hold: a forked child gets another one.

    A thread may enter it again: the handler of a signal may make the call that it interrupted.
    """

    __slots__ = ("_of_forks",)

    def __init__(self) -> None:
        self._of_forks: dict[int, Any] = {}

    def __call__(self) -> Any:
        locks = self._of_forks
        return locks.get(_forks) or locks.setdefault(_forks, threading.RLock())  # setdefault is one step


class Once(Generic[Key, Made]):
    """A value for each key: made by one thread while others that want the same wait; who wants another does not.

    Making that raises leaves nothing behind, and the next one tries again. A fork waits until nothing is being made, so
    that no child finds a library half loaded or the lock of a compiler held.
    """

    def __init__(self) -> None:
        self.made: dict[Key, Made] = {}
        self._locks: dict[tuple[int, Key], Any] = {}  # a child has its own

    def get(self, key: Key, make: Callable[[], Made]) -> Made:
        try:
            return self.made[key]
        except KeyError:
            pass
        with _maker(), self._locks.setdefault((_forks, key), threading.RLock()):
            if key not in self.made:
                made = make()
                self.made.setdefault(key, made)  # the handler of a signal may have been faster
            return self.made[key]

    def __iter__(self) -> Iterator[Key]:
        """The keys of what was made."""
        return iter(list(self.made))

    def clear(self) -> None:
        """Forgets what was made."""
        self.made.clear()


class once(Generic[Made]):  # noqa: N801
    """A function without arguments whose result is made once: functools.cache for several threads."""

    def __init__(self, make: Callable[[], Made]):
        self.__wrapped__, self.__doc__ = make, make.__doc__
        self._made: Once[None, Made] = Once()

    def __call__(self) -> Made:
        try:
            return self._made.made[None]  # as get has it, a call less: kernels ask several times in a run
        except KeyError:
            return self._made.get(None, self.__wrapped__)

    def cache_clear(self) -> None:
        self._made.clear()


class kept(Generic[Made]):  # noqa: N801
    """A property that is computed when it is first asked for, perhaps by two threads at once, and then kept.

    functools.cached_property has a lock before Python 3.12, which a fork may leave held in the child for ever.
    """

    def __init__(self, compute: Callable[[Any], Made]):
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> kept[Made]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Made: ...
    def __get__(self, instance: object | None, owner: type) -> kept[Made] | Made:
        if instance is None:
            return self
        made: Made = instance.__dict__.setdefault(self._name, self._compute(instance))
        return made


def _maker() -> Any:
    """The lock of a thread that is about to make something."""
    me = threading.get_ident()
    mine = _makers.get(me)
    if mine is not None:
        return mine
    with _gate:
        return _makers.setdefault(me, threading.RLock())


def _before_fork() -> None:
    """Waits until nothing is being made, and lets go of everything in between: who is making something may wait for a
    thread that is about to begin, by the lock of a module, say.

    What registers for forks later is called sooner, and then waits here with what it holds. logging takes its lock,
    without which little can be made: so it comes first. Somebody else's lock is the reason for a limit.
    """
    until = time.monotonic() + _PATIENCE
    while not _all_are_held():
        _let_go()
        time.sleep(_PAUSE)
        if time.monotonic() > until:
            _gate.acquire()
            break
    for look in _lookers:
        look()


def _all_are_held() -> bool:
    """Whether this thread holds the gate and the lock of every maker now."""
    _gate.acquire()
    for lock in list(_makers.values()):
        if not lock.acquire(blocking=False):
            return False
        _held.append(lock)
    return True


def _let_go() -> None:
    while _held:
        _held.pop().release()
    _gate.release()


def _after_fork_in_child() -> None:
    global _forks, _gate
    _forks += 1
    _held.clear()
    _makers.clear()  # of threads that stayed in the parent
    _gate = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_let_go, after_in_child=_after_fork_in_child)
