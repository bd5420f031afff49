"""The memory of large outputs is used again when nobody holds it, and never before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.base.dtype import FLOAT32
from aclnn.runtime import large_outputs
from aclnn.runtime.memory import output_memory

OP, SHAPE = ops.find("elu_backward"), (large_outputs.LARGE // 4,)


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    aclnn.cache_clear()
    yield
    aclnn.cache_clear()


def output(shape: tuple[int, ...] = SHAPE) -> Any:
    return output_memory(OP, "gradInput", shape, FLOAT32)


def where(array: Any) -> int:
    start: int = array.ctypes.data
    return start


def test_an_output_that_is_gone_leaves_its_memory_to_the_next() -> None:
    first = output()
    there = where(first)
    assert where(output()) != there
    del first
    assert where(output()) == there


@pytest.mark.parametrize(
    "held",
    [
        lambda a: a[5:],
        lambda a: a.reshape(2, -1).T,
        memoryview,
        lambda a: a.base,
        lambda a: np.frombuffer(a, np.uint8),
        lambda a: memoryview(a)[8:16],
        lambda a: a.__dlpack__(),
    ],
)
def test_whatever_sees_the_memory_keeps_it(held: Any) -> None:
    first = output()
    there, kept = where(first), held(first)
    del first
    assert where(output()) != there
    del kept
    assert where(output()) == there


def test_a_tensor_of_pytorch_keeps_it() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(SHAPE)
    result = aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x)
    part = result[1:3]
    there = result.data_ptr()
    del result
    assert aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x).data_ptr() != there
    del part
    assert aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x).data_ptr() == there


def test_no_more_is_kept_than_the_limit_and_clearing_gives_all_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_outputs, "MOST_KEPT", 3 * large_outputs.LARGE)
    many = [output() for _ in range(5)]
    assert len(large_outputs._blocks) == 2  # each is a line longer than the limit has room for three of
    places = [where(a) for a in many]
    del many
    larger = output((2 * SHAPE[0],))  # the free ones make room for it
    assert [block.size for block in large_outputs._blocks.values()] == [larger.nbytes + 64]
    assert where(larger) not in places[2:]
    aclnn.cache_clear()
    assert not large_outputs._blocks


def test_small_outputs_are_not_kept() -> None:
    output((SHAPE[0] - 1,))
    assert not large_outputs._blocks


def test_threads_never_share() -> None:
    """Each fills its output with its own number, and finds it there; outputs come and go all the while."""
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(60):
            mine = output()
            mine[:: SHAPE[0] // 64] = number
            again = output()
            again[:: SHAPE[0] // 64] = -number
            if not (mine[:: SHAPE[0] // 64] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
