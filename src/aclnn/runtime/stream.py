"""Streams: work runs in order on a worker of its own; what goes wrong surfaces at synchronize."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable

from aclnn.base.status import AclnnError, Status, invalid, reason

Job = Callable[[], None]

_live: weakref.WeakSet[_Queue] = weakref.WeakSet()


class Stream:
    """A queue of work with its own worker thread, started by the first job.

    with aclnn.Stream() as stream:      # leaves the block when all work is done
        plan.run(stream=stream)

    A stream that nobody holds any longer finishes its work, and its worker ends.
    """

    def __init__(self) -> None:
        self._queue = _Queue()
        weakref.finalize(self, self._queue.end).atexit = False  # _close_all also waits

    def submit(self, job: Job) -> None:
        """Puts a job at the end of the queue."""
        self._queue.submit(job)

    def synchronize(self) -> None:
        """Waits until all work is done; raises the first error since the last call, once."""
        error = self._queue.wait()
        if error is not None:
            raise error

    def query(self) -> bool:
        """Whether all work is done."""
        return self._queue.is_idle()

    def close(self) -> None:
        """Finishes what is queued and ends the worker. Closing twice is fine."""
        self._queue.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self.close()


class _Queue:
    """What a stream and its worker share. The worker knows no stream, so that it keeps none alive."""

    def __init__(self) -> None:
        self.start_afresh()
        _live.add(self)

    def start_afresh(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._busy = False
        self._closed = False
        self._error: BaseException | None = None
        self._worker: threading.Thread | None = None

    def submit(self, job: Job) -> None:
        with self._changed:
            if self._closed:
                raise invalid("the stream is closed; it takes no more work.", "stream")
            if self._worker is None:
                self._worker = self._started()  # before the job is there: without a worker nobody would ever run it
            self._jobs.append(job)
            self._changed.notify_all()

    def _started(self) -> threading.Thread:
        worker = threading.Thread(target=self._work, name="aclnn-stream", daemon=True)
        try:
            worker.start()
        except (RuntimeError, MemoryError) as error:
            text = f"the stream has no thread to run on ({reason(error)})."
            raise AclnnError(Status.ACLNN_ERR_RUNTIME_ERROR, text, argument="stream") from error
        return worker

    def wait(self) -> BaseException | None:
        if self._worker is threading.current_thread():
            raise invalid("work on a stream cannot wait for the stream itself.", "stream")
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs and not self._busy)
            error, self._error = self._error, None
        return error

    def is_idle(self) -> bool:
        with self._changed:
            return not self._jobs and not self._busy

    def end(self) -> None:
        """Lets the worker go when it is done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self) -> None:
        self.end()
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join()

    def _work(self) -> None:
        try:
            self._work_off()
        except BaseException as error:  # raised in this thread by another one: no job raises past _outcome
            with self._changed:
                self._busy = False
                self._error = self._error or error
                self._worker = self._started() if self._jobs else None
                self._changed.notify_all()

    def _work_off(self) -> None:
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
    for queue in list(_live):
        queue.close()


def _after_fork() -> None:
    for queue in list(_live):  # the workers stayed in the parent
        queue.start_afresh()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
