"""Streams: in order, side by side, errors at synchronize."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from aclnn import AclnnError, Stream
from aclnn.runtime import stream as module


def test_work_on_one_stream_runs_in_order() -> None:
    done: list[int] = []
    with Stream() as stream:
        for i in range(200):
            stream.submit(lambda i=i: done.append(i))
    assert done == list(range(200))


def test_two_streams_run_side_by_side() -> None:
    meet = threading.Barrier(2, timeout=10)
    first, second = Stream(), Stream()
    first.submit(meet.wait)
    second.submit(meet.wait)  # each waits for the other: one thread could never pass
    first.synchronize()
    second.synchronize()


def test_the_first_error_surfaces_at_synchronize_once_and_later_work_still_runs() -> None:
    done = []

    def fail(text: str) -> None:
        raise ValueError(text)

    stream = Stream()
    stream.submit(lambda: fail("first"))
    stream.submit(lambda: fail("second"))
    stream.submit(lambda: done.append(1))
    with pytest.raises(ValueError, match="first"):
        stream.synchronize()
    stream.synchronize()
    assert done == [1]
    assert stream.query()


def test_a_closed_stream_takes_no_work_and_closing_twice_is_fine() -> None:
    stream = Stream()
    stream.submit(lambda: None)
    stream.close()
    stream.close()
    with pytest.raises(AclnnError, match="closed"):
        stream.submit(lambda: None)


def test_an_error_in_the_block_is_not_replaced_by_one_of_the_stream() -> None:
    stream = Stream()
    stream.submit(lambda: 1 / 0)
    with pytest.raises(KeyError), stream:
        raise KeyError


def test_a_forked_child_may_use_the_streams_it_inherited() -> None:
    stream = Stream()
    stream.submit(lambda: None)
    stream.synchronize()
    child = os.fork()
    if child == 0:
        done: list[int] = []
        stream.submit(lambda: done.append(1))
        stream.synchronize()
        os._exit(0 if done == [1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_program_that_ends_with_work_in_flight_finishes_it() -> None:
    program = "import aclnn, time; s = aclnn.Stream(); s.submit(lambda: (time.sleep(0.3), print('done')))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_closing_waits_with_a_limit_and_says_what_it_left() -> None:
    gate, done = threading.Event(), []
    stream = Stream()
    stream.submit(gate.wait)
    stream.submit(lambda: done.append(1))
    assert stream.close(timeout=0.05) == 2
    with pytest.raises(AclnnError, match="closed"):
        stream.submit(lambda: None)
    gate.set()
    assert stream.close() == 0
    assert done == [1]


def test_a_full_queue_makes_submit_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_JOBS", 8)
    gate, done = threading.Event(), []
    stream = Stream()
    stream.submit(gate.wait)

    def fill() -> None:
        for i in range(50):
            stream.submit(lambda i=i: done.append(i))

    filler = threading.Thread(target=fill)
    filler.start()
    filler.join(0.2)
    assert filler.is_alive()
    assert len(stream._queue.jobs) == 8
    gate.set()
    filler.join(10)
    assert not filler.is_alive()
    stream.synchronize()
    assert done == list(range(50))


def test_work_that_fills_its_own_stream_is_refused_where_it_would_wait_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_JOBS", 8)
    done: list[int] = []
    stream = Stream()

    def feed() -> None:
        while True:
            stream.submit(lambda: done.append(1))

    stream.submit(feed)
    with pytest.raises(AclnnError, match="8 jobs queued, and work on it cannot wait for room") as refused:
        stream.synchronize()
    assert refused.value.code == 361001
    assert done == [1] * 7


def test_the_worker_ends_with_the_stream_and_no_code_of_ours_runs_when_it_is_dropped() -> None:
    stream = Stream()
    stream.submit(lambda: None)
    stream.synchronize()
    queue = stream._queue
    assert isinstance(queue._stream.__callback__, type(queue._bell.put))  # not Python: it cannot swallow an interrupt
    del stream
    for _ in range(1000):
        if not queue._alive.locked():
            return
        time.sleep(0.005)
    pytest.fail("the worker is still there")


AT_EXIT = """
import sys, time, aclnn
from aclnn.runtime import stream
stream.AT_EXIT = float(sys.argv[1])
streams = [aclnn.Stream() for _ in range(2)]
for one in streams:
    for _ in range(3):
        one.submit(lambda: time.sleep(0.2))
"""


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("10", ""),
        ("0.3", "aclnn: 4 jobs were left on streams at exit after 0.3 seconds, and dropped.\n"),
        ("0.5", "aclnn: 2 jobs were left on streams at exit after 0.5 seconds, and dropped.\n"),
    ],
)
def test_at_exit_work_is_finished_within_a_limit_for_all_streams(limit: str, says: str) -> None:
    ended = subprocess.run([sys.executable, "-c", AT_EXIT, limit], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, says)
