"""Once-only work with several threads, interrupts and forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from aclnn.base import run_once as once_module
from aclnn.base.run_once import Once, ProcessLock, kept, once

PATIENCE = 20.0  # seconds after which something hangs


def test_of_many_threads_that_come_first_one_makes_it():
    made = []

    @once
    def value() -> object:
        time.sleep(0.02)
        made.append(object())
        return made[-1]

    barrier = threading.Barrier(8)

    def ask() -> object:
        barrier.wait()
        return value()

    with ThreadPoolExecutor(8) as pool:
        found = [f.result() for f in [pool.submit(ask) for _ in range(8)]]
    assert len(made) == 1
    assert set(map(id, found)) == {id(made[0])}


def test_who_wants_something_else_does_not_wait():
    known: Once[str, str] = Once()
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert may_end.wait(PATIENCE)
        return "slow"

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(known.get, "a", slow)
        assert begun.wait(PATIENCE)
        assert known.get("b", lambda: "quick") == "quick"  # hangs if there is one lock for all
        may_end.set()
        assert first.result(PATIENCE) == "slow"


def test_making_that_fails_is_tried_again():
    known: Once[str, int] = Once()
    with pytest.raises(ZeroDivisionError):
        known.get("a", lambda: 1 // 0)
    assert known.get("a", lambda: 7) == 7
    known.clear()
    assert known.get("a", lambda: 8) == 8


def test_making_that_asks_for_itself_ends():
    known: Once[str, int] = Once()
    assert known.get("a", lambda: known.get("a", lambda: 1) + 1) == 1  # the first that was whole, for everybody
    assert known.get("a", lambda: 3) == 1


def test_a_fork_waits_until_nothing_is_being_made():
    known: Once[str, str] = Once()
    begun = threading.Event()
    ended = []

    def slow() -> str:
        begun.set()
        time.sleep(0.2)
        ended.append(1)
        return "made"

    thread = threading.Thread(target=known.get, args=("a", slow))
    thread.start()
    assert begun.wait(PATIENCE)

    def child() -> bool:
        return bool(ended) and known.get("a", lambda: "again") == "made" and known.get("b", lambda: "other") == "other"

    assert _in_a_child(child)
    thread.join()
    assert known.get("c", lambda: "after") == "after"


def test_a_fork_does_not_hold_up_what_it_waits_for():
    """A maker waits for a thread that makes something itself, for the first time, while a fork waits for the maker."""
    known: Once[str, str] = Once()
    making, forking = threading.Event(), threading.Event()

    def make() -> str:
        making.set()
        assert forking.wait(PATIENCE)
        time.sleep(0.1)  # the fork waits by now
        newcomer = threading.Thread(target=known.get, args=("b", lambda: "other"), daemon=True)
        newcomer.start()
        newcomer.join(PATIENCE)
        return "made" if not newcomer.is_alive() else "held up"

    thread = threading.Thread(target=known.get, args=("a", make))
    thread.start()
    assert making.wait(PATIENCE)
    forking.set()
    assert _in_a_child(lambda: known.get("a", lambda: "again") == "made")
    thread.join()


LOGS_WHILE_A_FORK_WAITS = """
import threading, time, os
from aclnn.base.run_once import Once
import logging

def make():
    began.set()
    time.sleep(0.2)  # the fork waits by now
    return logging.getLogger("new")

began = threading.Event()
threading.Thread(target=Once().get, args=("logger", make), daemon=True).start()
began.wait()
if os.fork() == 0:
    os._exit(0)
os.wait()
"""


def test_what_is_made_while_a_fork_waits_may_log() -> None:
    subprocess.run([sys.executable, "-c", LOGS_WHILE_A_FORK_WAITS], check=True, timeout=PATIENCE)


def test_a_fork_waits_no_longer_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """And its child can make what was being made."""
    monkeypatch.setattr(once_module, "_PATIENCE", 0.1)
    known: Once[str, str] = Once()
    making, may_end = threading.Event(), threading.Event()

    def make() -> str:
        making.set()
        may_end.wait(PATIENCE)
        return "made"

    thread = threading.Thread(target=known.get, args=("a", make))
    thread.start()
    assert making.wait(PATIENCE)
    assert _in_a_child(lambda: known.get("a", lambda: "again") == "again")
    may_end.set()
    thread.join()
    assert known.get("b", lambda: "after") == "after"


def test_a_child_finds_no_lock_held():
    lock = ProcessLock()
    holding, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with lock():
            holding.set()
            may_end.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(PATIENCE)
    assert not lock().acquire(blocking=False)
    assert _in_a_child(lambda: lock().acquire(timeout=1))
    may_end.set()
    thread.join()


def test_what_is_kept_is_computed_when_it_is_asked_for():
    computed = []

    class Thing:
        @kept
        def size(self) -> int:
            computed.append(self)
            return len(computed)

    first, second = Thing(), Thing()
    assert (first.size, first.size, second.size) == (1, 1, 2)
    assert computed == [first, second]
    assert isinstance(Thing.size, kept)


def test_a_child_may_ask_for_what_another_thread_was_computing():
    computing, may_end = threading.Event(), threading.Event()

    class Thing:
        @kept
        def size(self) -> int:
            if threading.current_thread() is thread:
                computing.set()
                may_end.wait(PATIENCE)
            return 3

    thing = Thing()
    thread = threading.Thread(target=lambda: thing.size)
    thread.start()
    assert computing.wait(PATIENCE)
    assert _in_a_child(lambda: thing.size == 3)
    may_end.set()
    thread.join()


def test_a_handler_may_enter_the_lock_it_interrupted():
    lock = ProcessLock()
    entered = []

    def handler(number: int, frame: object) -> None:
        with lock():
            entered.append(number)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with lock():
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert entered == [signal.SIGUSR1]


def _in_a_child(question) -> bool:
    """What a forked child answers, within PATIENCE."""
    child = os.fork()
    if child == 0:
        os._exit(0 if question() else 1)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")
