"""Streams: work runs in order on a worker of its own; what goes wrong surfaces at synchronize.

An interrupt, or an exception that another thread raises in a worker, may come at any call or loop of this code. So
nothing here is guarded by a lock that Python code lets go of: what changes, changes by single steps of deques and
dicts; every waiter has a lock of its own, and looks again after a while in case nobody was left to wake it.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from aclnn.base.run_once import fork_count
from aclnn.base.status import AclnnError, Status, invalid, reason

Job = Callable[[], None]

MOST_JOBS = 65_536  # in a queue: as many kernels on small tensors take 120 MB
AT_EXIT = 10.0  # seconds for all streams together
_LOOK_AGAIN = 0.05  # seconds: how long a waiter sleeps whom nobody wakes

_at_work: dict[int, _Queue] = {}  # the queues that have, or had, a worker
_start_thread = _thread.start_new_thread  # threading.Thread waits for its start by Python code


class Stream:
    """A queue of work with its own worker thread, started by the first job.

    with aclnn.Stream() as stream:      # leaves the block when all work is done
        plan.run(stream=stream)

    A stream that nobody holds any longer finishes its work, and its worker ends.
    """

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}

    @property
    def _queue(self) -> _Queue:
        """The queue of this process: a forked child starts afresh, the workers stayed in the parent."""
        forks = fork_count()
        found = self._queues.get(forks)
        if found is None:
            found = self._queues.setdefault(forks, _Queue(self))
            for older in range(forks):
                self._queues.pop(older, None)
        return found

    def submit(self, job: Job) -> None:
        """Puts a job at the end of the queue; waits while that is full."""
        self._queue.submit(job)

    def synchronize(self) -> None:
        """Waits until all work is done; raises the first error since the last call, once."""
        self._queue.synchronize()

    def query(self) -> bool:
        """Whether all work is done."""
        return not self._queue.jobs

    def close(self, timeout: float | None = None) -> int:
        """Finishes what is queued and ends the worker, within so many seconds. Closing twice is fine.

        Returns how many jobs are not done when the time is up; the worker goes on with them.
        """
        return self._queue.close(timeout)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self.close()


class _Entry:
    """A job in a queue, at most once: who takes it out of `job` runs it."""

    __slots__ = ("ended", "job")

    def __init__(self, job: Job):
        self.job = [job]
        self.ended = False


class _Queue:
    """What a stream and its worker share. The worker knows no stream, so that it keeps none alive."""

    def __init__(self, stream: Stream) -> None:
        self.jobs: deque[_Entry] = deque()  # the first one stays until it has ended
        self.worker = 0  # the identity of its thread
        self.closed = False
        self._bell: SimpleQueue[Any] = SimpleQueue()
        self._stream = weakref.ref(stream, self._bell.put)  # not by code of ours, in which an interrupt would vanish
        self._errors: dict[int, BaseException] = {}  # at most one
        self._alive = threading.Lock()  # held by the worker: whatever ends it lets go
        self._starting = threading.RLock()
        self._for_the_end: deque[Any] = deque()  # the locks of those who wait
        self._for_room: deque[Any] = deque()

    def submit(self, job: Job) -> None:
        if self.closed:
            raise invalid("the stream is closed; it takes no more work.", "stream")
        self._see_to_a_worker()  # before the job is there: without a worker nobody would ever run it
        if len(self.jobs) >= MOST_JOBS:
            self._wait_for_room()
        self.jobs.append(_Entry(job))
        self._ring()

    def _wait_for_room(self) -> None:
        if self._is_mine():
            text = f"the stream has {MOST_JOBS} jobs queued, and work on it cannot wait for room on it."
            raise AclnnError(Status.ACLNN_ERR_RUNTIME_ERROR, text, argument="stream")
        self._wait(self._for_room, lambda: len(self.jobs) < MOST_JOBS)

    def synchronize(self) -> None:
        if self._is_mine():
            raise invalid("work on a stream cannot wait for the stream itself.", "stream")
        self._wait(self._for_the_end, lambda: not self.jobs)
        for key, error in self._errors.copy().items():
            try:
                if self._errors.pop(key, None) is error:
                    raise error
            except BaseException as raised:
                if raised is not error:  # an interrupt: the error is told next time
                    self._errors.setdefault(key, error)
                raise

    def close(self, timeout: float | None) -> int:
        self.closed = True
        self._ring()
        if self._is_mine():
            return len(self.jobs)  # closing from within is a wish, not a wait
        self._wait(self._for_the_end, lambda: not self.jobs, timeout)
        pause, patience = 1e-4, 0.5 if timeout is None else min(timeout, 0.5)
        while not self.jobs and self._alive.locked() and pause < patience:  # the worker is about to leave
            time.sleep(pause)
            pause *= 2
        return len(self.jobs)

    def drop(self) -> None:
        """Forgets what has not begun."""
        self.closed = True
        self.jobs.clear()

    def _is_mine(self) -> bool:
        return self.worker == _thread.get_ident() and self._alive.locked()

    def _ring(self) -> None:
        if self._bell.empty():  # one that the worker has not heard yet is enough
            self._bell.put(None)

    def _wait(self, waiting: deque[Any], is_over: Callable[[], bool], timeout: float | None = None) -> None:
        """Sleeps until it is over, or the time is up. Whoever was interrupted or ended before it could ring the bell,
        or wake others, is made up for here."""
        until = None if timeout is None else time.monotonic() + timeout
        mine = threading.Lock()
        mine.acquire()
        while not is_over():
            left = _LOOK_AGAIN if until is None else min(until - time.monotonic(), _LOOK_AGAIN)
            if left <= 0:
                return
            self._see_to_a_worker()
            self._ring()
            if mine not in waiting.copy():
                waiting.append(mine)
            if not is_over():
                mine.acquire(timeout=left)

    def _see_to_a_worker(self) -> None:
        if self._alive.locked():
            return
        with self._starting:
            if self._alive.locked():
                return
            _sweep()
            _at_work[id(self)] = self
            begun = threading.Lock()
            begun.acquire()
            try:
                _start_thread(self._work, (begun,))
            except (RuntimeError, MemoryError) as error:
                text = f"the stream has no thread to run on ({reason(error)})."
                raise AclnnError(Status.ACLNN_ERR_RUNTIME_ERROR, text, argument="stream") from error
            begun.acquire(timeout=1)  # so that nobody starts another one

    def _work(self, begun: Any) -> None:
        """The life of a worker. An exception from outside is told at synchronize; one that comes on top of it ends the
        thread, and those who wait start another."""
        with self._alive:
            self.worker = _thread.get_ident()
            begun.release()
            while True:
                try:
                    return self._work_off()
                except BaseException as error:  # raised in this thread by another one: no job raises past _outcome
                    self._keep(error)

    def _work_off(self) -> None:
        while True:
            while self.jobs:
                self._work_on(self.jobs[0])
                self._wake(self._for_room, len(self.jobs) <= MOST_JOBS // 2)
            self._wake(self._for_the_end, True)
            if self.closed or self._stream() is None:
                if not self.jobs:
                    return
            else:
                self._bell.get()

    def _work_on(self, entry: _Entry) -> None:
        if entry.job:
            error = _outcome(entry.job)
            if error is not None:
                self._keep(error)
            entry.ended = True
        elif not entry.ended:
            text = "work on the stream was ended from outside before it was done."
            self._keep(AclnnError(Status.ACLNN_ERR_INNER, text, argument="stream"))
        if self.jobs and self.jobs[0] is entry:
            self.jobs.popleft()

    def _keep(self, error: BaseException) -> None:
        """Keeps the first error until it is told."""
        if not self._errors:
            self._errors[id(error)] = error

    def _wake(self, waiting: deque[Any], now: bool) -> None:
        while now and waiting:
            if waiting[0].locked():  # only the worker, which is one, lets go of it
                waiting[0].release()
            waiting.popleft()


def _outcome(job: list[Job]) -> BaseException | None:
    """What a job raises. Taken out, it is gone, with all it holds, before anyone is told that it is done."""
    try:
        job.pop()()
    except BaseException as error:  # a worker never dies of its work
        return error
    return None


def _sweep() -> None:
    """Forgets queues whose worker is gone and has nothing left to do."""
    for key, queue in _at_work.copy().items():
        if not queue.jobs and not queue._alive.locked():
            _at_work.pop(key, None)


def _close_all() -> None:
    """At exit: what is queued is finished, within a limit for all streams together."""
    until, left = time.monotonic() + AT_EXIT, 0
    queues = list(_at_work.copy().values())
    try:
        for queue in queues:
            left += queue.close(max(until - time.monotonic(), 0.0))
    except (KeyboardInterrupt, AclnnError):  # Ctrl-C while it waits; no thread for what is left
        left = sum(len(queue.jobs) for queue in queues)
    for queue in queues:
        queue.drop()
    if left:
        what = "1 job was" if left == 1 else f"{left} jobs were"
        print(f"aclnn: {what} left on streams at exit after {AT_EXIT:g} seconds, and dropped.", file=sys.stderr)


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_at_work.clear)
