"""Threads of our own, where there is no OpenMP (macOS, Windows, musl): they sleep while there is nothing to do.

Every thread that launches work has its own helpers, so that none waits for the work of another.
"""

from __future__ import annotations

import ctypes
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from aclnn.base.run_once import fork_count
from aclnn.kernels.native.abi import HOW_MANY, WHO
from aclnn.kernels.native.entry import Entry


class _Mine(threading.local):
    """The helpers of a thread: how many, in which process, and they themselves."""

    known: tuple[int, int] = (0, 0)
    helpers: ThreadPoolExecutor | None = None


_mine = _Mine()


def run(entry: Entry, block: Any, threads: int) -> None:
    """Runs a kernel on so many threads, this one included; comes back when all have ended, whatever happens."""
    shares = [_share(block, k, threads) for k in range(threads)]
    helpers = _helpers(threads - 1)
    others, mine = list[Future[None]](), shares[:1]
    try:
        for share in shares[1:]:
            try:
                others.append(helpers.submit(entry.call, ctypes.addressof(share)))
            except RuntimeError:  # the interpreter ends and starts no thread any more
                mine.append(share)
        for share in mine:
            entry.call(ctypes.addressof(share))
        wait(others)
    except BaseException:  # an interrupt: the others still write to the caller's memory
        _mine.helpers = None
        _end(helpers)
        raise
    for other in others:
        other.result()


def _share(block: Any, k: int, threads: int) -> Any:
    """A copy of a block that says which thread of how many runs it."""
    share = type(block).from_buffer_copy(block)
    share[WHO], share[HOW_MANY] = k + 1, threads
    return share


def _helpers(count: int) -> ThreadPoolExecutor:
    wanted = count, fork_count()
    if _mine.helpers is None or _mine.known != wanted:
        _mine.known, _mine.helpers = wanted, ThreadPoolExecutor(count, "aclnn")
    return _mine.helpers


def _end(helpers: ThreadPoolExecutor) -> None:
    """Waits until they have ended, even if it is interrupted again."""
    while True:
        try:
            return helpers.shutdown(wait=True)
        except BaseException:
            continue
