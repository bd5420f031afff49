"""Scratch belongs to one call while it runs, is bounded for the process, and is given back whole."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.runtime import scratch

OP = ops.find("lstm_backward")
rng = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _afresh() -> Any:
    aclnn.cache_clear()
    yield
    aclnn.cache_clear()


def take(room: int) -> Any:
    block = scratch.take(OP, room)
    assert block is not None
    assert block.size >= room
    return block


def normal(*shape: int) -> Any:
    return rng.normal(0, 1, shape).astype(np.float32)


X, H, WEIGHTS = normal(6, 4, 16), normal(1, 4, 16), [normal(64, 16), normal(64, 16)]
FLAGS = {"has_bias": False, "num_layers": 1, "bidirectional": False, "batch_first": False}
GRAD, IMAGE, KERNEL = normal(1, 8, 16, 16), normal(1, 8, 16, 16), normal(8, 8, 3, 3)


def lstm() -> list[bytes]:
    found = aclnn.lstm(X, WEIGHTS, (H, H), **FLAGS, engine="fast")
    return [a.tobytes() for r in found for a in (r if isinstance(r, list) else [r])]


def convolve() -> list[bytes]:
    window = ((8,), (1, 1), (1, 1), (1, 1), False, (0, 0), 1, (True, True, True), 0)
    return [a.tobytes() for a in aclnn.convolution_backward(GRAD, IMAGE, KERNEL, *window, engine="fast")]


def with_calls_inside(outer: Any, inner: Any, every: int) -> tuple[list[Any], list[Any]]:
    """The results of a call during which another one is made on the same thread, at every n-th event of Python."""
    events, found = 0, []

    def interrupt(frame: Any, event: str, argument: Any) -> None:
        nonlocal events
        events += 1
        if events % every == 0:
            sys.setprofile(None)
            found.append(inner())
            sys.setprofile(interrupt)

    sys.setprofile(interrupt)
    try:
        result = outer()
    finally:
        sys.setprofile(None)
    return result, found


@pytest.mark.parametrize("way", ["short", "long"])
@pytest.mark.parametrize(("outer", "inner"), [(lstm, convolve), (convolve, lstm), (lstm, lstm), (convolve, convolve)])
def test_a_call_inside_a_call_has_other_scratch(outer: Any, inner: Any, way: str) -> None:
    pytest.importorskip("numba")
    expected, of_inner = outer(), inner()
    for every in (3, 7, 50):
        if way == "long":
            aclnn.cache_clear()
        result, found = with_calls_inside(outer, inner, every)
        assert result == expected
        assert len(found) > 1 or every == 50
        assert all(one == of_inner for one in found)


def test_a_block_is_out_of_what_is_kept_while_it_is_used() -> None:
    first, second = take(1000), take(1000)
    assert not np.shares_memory(first, second)
    scratch.give_back(first)
    assert take(500) is first
    assert scratch.take(OP, 0) is None


def test_a_block_that_is_too_small_makes_room_for_a_larger_one() -> None:
    blocks = [take(room) for room in (1000, 3000, 2000)]
    for block in blocks:
        scratch.give_back(block)
    assert take(2500) is blocks[1]  # found behind one that is too small
    larger = take(5000)
    scratch.give_back(larger)
    assert sorted(b.size for b in scratch._kept.values()) == [1000, 5000]


def test_what_is_kept_is_bounded_for_all_threads_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MOST_KEPT", 10_000)
    both = threading.Barrier(8)

    def use() -> None:
        for room in (900, 4000, 1700, 10_000, 10_001):
            both.wait()
            block = take(room)
            both.wait()
            scratch.give_back(block)

    workers = [threading.Thread(target=use) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert 0 < scratch.bytes_kept() <= 10_000
    aclnn.cache_clear()
    assert scratch.bytes_kept() == 0


def test_clearing_gives_back_what_other_threads_kept() -> None:
    worker = threading.Thread(target=lstm)
    worker.start()
    worker.join()
    assert scratch.bytes_kept() > 0
    aclnn.cache_clear()
    assert scratch.bytes_kept() == 0


def test_no_block_is_handed_out_twice_whoever_comes() -> None:
    at_work: set[int] = set()
    wrong: list[int] = []

    def use(seed: int) -> None:
        sizes = np.random.default_rng(seed).integers(1, 5000, 400)
        for room in sizes:
            block = take(int(room))
            where = block.ctypes.data
            if where in at_work:
                wrong.append(where)
            at_work.add(where)
            at_work.discard(where)
            scratch.give_back(block)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=use, args=(k,)) for k in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong
