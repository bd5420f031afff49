"""The short way gives what the long way gives: the same bits, the same kinds of array, the same refusals."""

from __future__ import annotations

import sys
import threading
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn.base import device as devices
from aclnn.base import dtype as dtypes
from aclnn.runtime.call_cache import call_cache

X = np.array([[-2.0, -0.5], [0.0, 1.5]], np.float32)
G = np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)


@pytest.fixture(autouse=True)
def _afresh() -> None:
    aclnn.cache_clear()


def elu(g: Any = G, alpha: Any = 1.5, scale: Any = 1.0, inner: Any = 1.0, is_result: Any = False, x: Any = X) -> Any:
    return aclnn.elu_backward(g, alpha, scale, inner, is_result, x)


def remembered() -> int:
    return sum(cached.replay is not None for cached in call_cache._calls.values())


def long_way(g: Any, alpha: float, scale: float, inner: float, is_result: bool, x: Any) -> Any:
    """The same call with everything bound and checked."""
    names = ("gradOutput", "alpha", "scale", "inputScale", "isResult", "selfOrResult")
    return aclnn.elu_backward._call(
        dict(zip(names, (g, alpha, scale, inner, is_result, x), strict=True)), None, None, None
    )


def test_the_second_call_is_short_and_counts_as_a_hit() -> None:
    first = elu()
    assert remembered() == 1
    hits = aclnn.cache_info().hits
    assert elu().tobytes() == first.tobytes() == long_way(G, 1.5, 1.0, 1.0, False, X).tobytes()
    assert aclnn.cache_info().hits > hits
    aclnn.cache_clear()
    assert remembered() == 0


def counted(call: Any) -> int:
    """How many functions of Python a call enters."""
    entered = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


SETTINGS: dict[str, dict[str, Any]] = {
    "product": {"product": "Atlas A3"},
    "product object": {"product": devices.CPU},
    "engine": {"engine": "numpy"},
    "both": {"product": "cpu", "engine": "reference"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_arguments_that_set_product_and_engine_are_part_of_the_call(settings: dict[str, Any]) -> None:
    def call() -> Any:
        return aclnn.elu_backward(G, 1.5, 1.0, 1.0, False, X, **settings)

    first = call()
    assert remembered() == 1
    assert call().tobytes() == first.tobytes()
    assert counted(call) <= counted(elu) - 10  # that one was not made before
    assert remembered() == 2
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match="no engine"):
            aclnn.elu_backward(G, 1.5, 1.0, 1.0, False, X, engine="fastest")
        with pytest.raises(aclnn.AclnnError, match="Atlas 200I/500 A2"):
            aclnn.elu_backward(G, 1.5, 1.0, 1.0, False, X, product="310B")


def into(out: Any, g: Any = G, x: Any = X) -> Any:
    return aclnn.elu_backward(g, 1.5, 1.0, 1.0, False, x, out=out)


@pytest.mark.parametrize("view", ["dense", "spread", "reversed", "transposed"])
def test_outputs_that_are_given_are_written_every_time(view: str) -> None:
    def make() -> Any:
        whole = np.full((4, 6), 7, np.float32)
        return {
            "dense": whole[:2, :2].copy(),
            "spread": whole[::2, ::3],
            "reversed": whole[:2, 1::-1],
            "transposed": whole[:2, :2].T,
        }[view]

    expected = elu().tobytes()
    for _ in range(40):  # more places than are remembered
        out = make()
        assert into(out) is out
        assert out.tobytes() == expected
    assert counted(lambda: into(out)) <= 20
    (same,) = into((out,))  # handed back as it is given
    assert same is out


def test_an_output_that_meets_an_input_is_refused_every_time() -> None:
    whole = np.arange(12, dtype=np.float32)
    x, apart, shifted = whole[:4], whole[4:8], whole[1:5]
    g = np.ones(4, np.float32)
    expected = aclnn.elu_backward(g, 1.5, 1.0, 1.0, False, x).tobytes()
    for _ in range(3):
        assert into(apart, g, x).tobytes() == expected
        with pytest.raises(aclnn.AclnnError, match="gradInput overlaps selfOrResult in memory"):
            into(shifted, g, x)
        with pytest.raises(aclnn.AclnnError, match="gradInput overlaps selfOrResult in memory"):
            into(x[::-1], g, x)
    assert whole.tobytes()[:16] == np.arange(4, dtype=np.float32).tobytes()


def test_an_output_may_be_an_input_where_the_contract_says_so() -> None:
    expected = elu().tobytes()
    for _ in range(3):
        x = X.copy()
        assert into(x, G, x) is x
        assert x.tobytes() == expected
        x = X.copy()
        assert counted(lambda x=x: into(x, G, x)) > 0
        assert x.tobytes() == expected


def test_an_output_that_cannot_be_written_is_refused_every_time() -> None:
    out = np.empty_like(X)
    into(out)
    out.flags.writeable = False
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match="read-only"):
            into(out)
        with pytest.raises(aclnn.AclnnError, match="shape"):
            into(np.empty((4, 2), np.float32))
        with pytest.raises(aclnn.AclnnError, match="out has 2 elements"):
            into((np.empty_like(X), np.empty_like(X)))


def test_several_outputs_and_absent_ones() -> None:
    x, w, g = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32), np.ones((1, 3, 3, 3), np.float32)

    def convolve(out: Any, mask: Any) -> Any:
        return aclnn.convolution_backward(g, x, w, [3], 1, 0, 1, False, 0, 1, mask, out=out)

    dx, dw, db = convolve(None, [True, True, True])
    for _ in range(3):
        out = np.empty_like(x), np.empty_like(w), np.empty(3, np.float32)
        assert convolve(out, [True, True, True]) is out
        assert [a.tobytes() for a in out] == [a.tobytes() for a in (dx, dw, db)]
        partly = None, np.empty_like(w), None
        assert convolve(partly, [False, True, False]) is partly
        assert partly[1].tobytes() == dw.tobytes()
        whole = np.empty(100, np.float32)
        with pytest.raises(aclnn.AclnnError, match=r"grad\w+ overlaps grad\w+ in memory"):
            convolve((whole[:50].reshape(x.shape), whole[:54].reshape(w.shape), None), [True, True, False])


def test_updating_in_place_is_short_too() -> None:
    expected = aclnn.elu(X).tobytes()
    for _ in range(3):
        x = X.copy()
        assert aclnn.elu_(x) is x
        assert x.tobytes() == expected
    x = X.copy()
    assert counted(lambda: aclnn.elu_(x)) <= 20
    x.flags.writeable = False
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match="read-only"):
            aclnn.elu_(x)


@pytest.mark.torch
def test_torch_tensors_as_outputs() -> None:
    import torch

    g, x = torch.from_numpy(G), torch.from_numpy(X)
    whole = torch.zeros(9)
    for _ in range(3):
        for out in (torch.empty(2, 2), whole[1:5].view(2, 2)):
            assert into(out, g, x) is out
            assert out.numpy().tobytes() == elu().tobytes()
        with pytest.raises(aclnn.AclnnError, match="overlaps"):
            into(whole[:4].view(2, 2), g, whole[1:5].view(2, 2))
        mixed = np.empty_like(X)
        assert into(mixed, g, x) is mixed
        assert mixed.tobytes() == elu().tobytes()
        y = x.clone()
        assert aclnn.elu_(y) is y
        assert y.numpy().tobytes() == aclnn.elu(X).tobytes()


def test_results_are_fresh_every_time() -> None:
    elu()
    a, b = elu(), elu()
    a[...] = 7
    assert not np.shares_memory(a, b)
    assert b[0, 0] != 7


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("view", ["transposed", "reversed", "spread", "broadcast"])
def test_strides_and_dtypes(dtype: Any, view: str) -> None:
    x = np.arange(24).reshape(4, 6).astype(dtype)
    seen = {"transposed": x.T, "reversed": x[::-1], "spread": x[::2, ::3], "broadcast": np.broadcast_to(x[0], (3, 6))}
    once = elu(seen[view] + seen[view], x=seen[view])
    assert elu(seen[view] + seen[view], x=seen[view]).tobytes() == once.tobytes()
    assert once.dtype == dtype


def test_equal_numbers_of_other_types_are_other_calls() -> None:
    elu(alpha=1.0)
    elu(alpha=True)
    elu(alpha=1)
    elu(alpha=np.float32(1))
    assert remembered() == 4
    with pytest.raises(aclnn.AclnnError, match="isResult is a float"):
        elu(is_result=1.5)
    elu(is_result=True)
    with pytest.raises(aclnn.AclnnError, match="isResult is a float"):
        elu(is_result=1.0)


SIGNED = [float, *(d.numpy.type for d in dtypes.ALL if d.numpy is not None and d.name.startswith(("float", "bf")))]
HOLDERS = [lambda kind, zero: kind(zero), lambda kind, zero: np.array(zero, kind)]


@pytest.mark.parametrize("kind", SIGNED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("hold", HOLDERS, ids=["scalar", "0-d array"])
@pytest.mark.parametrize("signs", [(1, -1), (-1, 1)])
def test_zeros_of_both_signs_are_two_calls(kind: Any, hold: Any, signs: tuple[int, int]) -> None:
    ones = np.ones((2, 2), np.float32)
    for sign in signs * 2:
        try:
            found = elu(alpha=hold(kind, sign * 0.0), g=ones)
        except aclnn.AclnnError:  # a type that the contract does not take
            assert kind not in (float, np.float32, np.float16, ml_dtypes.bfloat16)
        else:
            assert bool(np.signbit(found)[0, 0]) == (sign < 0)
    assert remembered() == 0


class Changing(int):
    """A number that is equal to all others, and is another one every time."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Pair(NamedTuple):
    first: Any
    second: Any


def test_what_only_claims_to_be_equal_takes_the_long_way() -> None:
    for value in (Changing(2), Changing(3)):
        expected = elu(alpha=int(value)).tobytes()
        assert elu(alpha=value).tobytes() == expected
    x, w = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)
    aclnn.convolution(x, w, None, Pair(1, 1), 0, 1, False, 0, 1, 0)
    with pytest.raises(aclnn.AclnnError, match="integer"):
        aclnn.convolution(x, w, None, Pair(True, True), 0, 1, False, 0, 1, 0)
    for odd in (Decimal(1), Fraction(1), 10**400, "1"):
        for _ in range(2):
            with pytest.raises(aclnn.AclnnError, match="alpha"):
                elu(alpha=odd)


def test_nan_attributes_are_right_every_time_and_not_remembered() -> None:
    for nan in (float("nan"), float("nan"), np.float32("nan"), ml_dtypes.bfloat16("nan")):
        for _ in range(2):
            assert np.isnan(elu(alpha=nan)[0]).all()
    assert remembered() == 0


def test_contexts_are_part_of_the_call() -> None:
    with aclnn.engine("reference"):
        first = elu()
    second = elu()
    with aclnn.product("Atlas A3"):
        elu()
    with aclnn.threads(3):
        elu()
    assert remembered() == 4
    np.testing.assert_allclose(first, second, rtol=1e-6)
    elu()
    with aclnn.product("Ascend310B"), pytest.raises(aclnn.AclnnError, match="Atlas 200I/500 A2"):
        elu()


def test_what_is_wrong_is_said_every_time() -> None:
    elu()
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match="gradOutput has shape"):
            elu(x=X[:1])
        with pytest.raises(aclnn.AclnnError, match="float64"):
            elu(X.astype(np.float64), x=X.astype(np.float64))
        with pytest.raises(aclnn.AclnnError, match="alpha"):
            elu(alpha=[1.0])
        with pytest.raises(aclnn.AclnnError, match="alpha"):
            elu(alpha=np.ones(2))
        with pytest.raises(aclnn.AclnnError, match="masked array"):
            elu(np.ma.masked_array(G))


def test_arrays_off_their_boundaries_are_copied_first() -> None:
    expected = elu()
    packed = np.zeros(4, [("pad", np.int8), ("x", np.float32)])["x"].reshape(2, 2)
    shifted = np.zeros(17, np.int8)[1:].view(np.float32).reshape(2, 2)
    for odd in (packed, shifted):
        odd[...] = X
        for _ in range(2):
            assert elu(x=odd).tobytes() == expected.tobytes()


def test_lists_of_numbers() -> None:
    x, w = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)
    g = np.ones((1, 3, 3, 3), np.float32)

    def convolve(stride: Any, mask: Any = (True, True, False)) -> Any:
        return aclnn.convolution_backward(g, x, w, None, stride, [0, 0], [1, 1], False, [0, 0], 1, mask)

    first = convolve([1, 1])
    for stride in ([1, 1], (1, 1), 1, np.array([1, 1]), [np.int64(1), 1]):
        second = convolve(stride)
        assert [a.tobytes() for a in second[:2]] == [a.tobytes() for a in first[:2]]
        assert second[2] is None
    with pytest.raises(aclnn.AclnnError, match="integer"):
        convolve([True, True])


def test_many_threads_at_once() -> None:
    pytest.importorskip("numba")
    x = np.linspace(-3, 3, 50_000).astype(np.float32)
    grads = [np.cos(x) + k for k in range(4)]
    expected = [elu(g, x=x).tobytes() for g in grads]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(50):
            if elu(grads[k], x=x).tobytes() != expected[k]:
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def lstm(turn: Any = lambda array: array, params: Any = None, **more: Any) -> Any:
    x, h = np.linspace(-1, 1, 12).astype(np.float32).reshape(3, 2, 2), np.ones((1, 2, 2), np.float32)
    weights = [np.linspace(-1, k, 16).astype(np.float32).reshape(8, 2) for k in range(2)] if params is None else params
    flags = {"has_bias": False, "num_layers": 1, "bidirectional": False, "batch_first": False}
    return aclnn.lstm(turn(x), list(map(turn, weights)), (turn(h), turn(h)), **flags, **more)


def flat(results: Any) -> list[Any]:
    return [a for r in results for a in (r if isinstance(r, list) else [r])]


def test_lists_of_tensors() -> None:
    first = flat(lstm())
    assert remembered() == 1
    hits = aclnn.cache_info().hits
    assert [a.tobytes() for a in flat(lstm())] == [a.tobytes() for a in first]
    assert aclnn.cache_info().hits == hits + 1
    assert not any(np.shares_memory(a, b) for a, b in zip(flat(lstm()), first, strict=True))
    lstm(dropout=-0.0)
    assert remembered() == 1
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match=r"params"):
            lstm(params=[np.ones((8, 2), np.float32)])
        with pytest.raises(aclnn.AclnnError, match=r"params\[1\]"):
            lstm(params=[np.ones((8, 2), np.float32), np.ones((8, 2), np.float16)])
