"""Streams: work runs in order on a worker of its own; what goes wrong surfaces at synchronize."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable

Job = Callable[[], None]

_live: weakref.WeakSet[Stream] = weakref.WeakSet()


class Stream:
    """A queue of work with its own worker thread, started by the first job.

    with aclnn.Stream() as stream:      # leaves the block when all work is done
        plan.run(stream=stream)
    """

    def __init__(self) -> None:
        self._start_afresh()
        _live.add(self)

    def _start_afresh(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._busy = False
        self._closed = False
        self._error: BaseException | None = None
        self._worker: threading.Thread | None = None

    def submit(self, job: Job) -> None:
        """Puts a job at the end of the queue."""
        with self._changed:
            if self._closed:
                raise RuntimeError("the stream is closed")
            self._jobs.append(job)
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="aclnn-stream", daemon=True)
                self._worker.start()
            self._changed.notify_all()

    def synchronize(self) -> None:
        """Waits until all work is done; raises the first error since the last call, once."""
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs and not self._busy)
            error, self._error = self._error, None
        if error is not None:
            raise error

    def query(self) -> bool:
        """Whether all work is done."""
        with self._changed:
            return not self._jobs and not self._busy

    def close(self) -> None:
        """Finishes what is queued and ends the worker. Closing twice is fine."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closed)
                if not self._jobs:
                    return
                job = self._jobs.popleft()
                self._busy = True
            error = _outcome(job)
            del job  # what the job holds is free before anyone is told that it is done
            with self._changed:
                self._busy = False
                self._error = self._error or error
                self._changed.notify_all()


def _outcome(job: Job) -> BaseException | None:
    try:
        job()
    except BaseException as error:  # a worker never dies of its work
        return error
    return None


def _close_all() -> None:
    for stream in list(_live):
        stream.close()


def _after_fork() -> None:
    for stream in list(_live):  # the workers stayed in the parent
        stream._start_afresh()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
