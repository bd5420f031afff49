"""Whether arrays look like others: every way in which they may not, and objects that are no arrays."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from aclnn.kernels.native import array_guards, jit

pytest.importorskip("numba")
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def guard(*like: Any, written: int = 0) -> array_guards.Question:
    question = array_guards.guard(like, written)
    assert question is not None
    return question


def _read_only() -> Any:
    array = X.copy()
    array.flags.writeable = False
    return array


class _Subclass(np.ndarray):
    pass


@pytest.mark.parametrize(
    "other",
    [
        X[:2],
        X.T,
        X[:, ::2],
        X[:, ::-1],
        X.reshape(12),
        X.reshape(1, 3, 4),
        X.astype(np.float64),
        X.astype(np.int32),
        X.astype(ml_dtypes.bfloat16),
        X.astype(">f4"),
        np.frombuffer(bytes(49), np.uint8)[1:].view(np.float32).reshape(3, 4),
        _read_only(),
        X.view(_Subclass),
        None,
        3,
        "x",
        [X],
        X.dtype,
        np.ndarray,
        np.float32(1),
    ],
)
def test_what_looks_otherwise(other: Any) -> None:
    like_x = guard(X)
    assert like_x(X.copy()) is True
    assert like_x(other) is False
    assert like_x(X) is True


def test_any_number_of_objects() -> None:
    like_both = guard(X, X[0])
    assert like_both(X, X[1])
    assert not like_both(X)
    assert not like_both()
    assert not like_both(X, X[1], X)
    assert not like_both(*[X] * 100)
    assert guard()()


def test_dtypes_of_others_and_ranks() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16, np.int64, np.uint8, bool):
        array = np.zeros((2, 1, 3), dtype)
        assert guard(array)(array.copy())
    scalar = np.zeros((), np.float32)
    assert guard(scalar)(np.ones((), np.float32))
    assert not guard(scalar)(X)


def test_what_is_written_lies_apart() -> None:
    whole = np.zeros(40, np.float32)
    a, b = whole[:8], whole[8:16]
    writes = guard(a, b, written=1)
    assert writes(a, b)
    assert writes(b, a)
    assert writes(a, whole[20:28])
    assert not writes(a, a)
    assert not writes(a, whole[7:15])
    assert not writes(whole[7:15], a)
    assert guard(a, b)(a, a)  # both are read
    both = guard(a, b, whole[16:24], written=2)
    assert both(a, b, whole[30:38])
    assert not both(a, b, whole[12:20])
    backwards = guard(a[::-1], b, written=1)
    assert backwards(a[::-1], b)
    assert not backwards(whole[15:7:-1], b)
    nothing = guard(a[:0], b[:0], written=1)
    assert nothing(a[:0], a[:0])


@given(st.data())
def test_as_numpy_has_it(data: Any) -> None:
    shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    one, other = (np.zeros(data.draw(shapes), data.draw(st.sampled_from(["f4", "f8", "i4"]))) for _ in range(2))
    same = (one.shape, one.strides, one.dtype) == (other.shape, other.strides, other.dtype)
    assert guard(one)(other) is same


def test_answers_are_counted_and_threads_do_not_meet() -> None:
    like_x, others, wrong = guard(X), X.T, []

    def ask() -> None:
        for _ in range(20000):
            if not like_x(X) or like_x(others):
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_native_code_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise jit.NoNativeCodeError("no")

    monkeypatch.setattr(jit, "load", refuse)
    monkeypatch.setattr(array_guards, "_entry", array_guards._entry.__wrapped__)
    assert array_guards.guard((X,), 0) is None
