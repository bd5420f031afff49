"""Streams: in order, side by side, errors at synchronize."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from aclnn import AclnnError, Stream


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
