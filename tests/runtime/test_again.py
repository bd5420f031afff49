"""The short way gives what the long way gives: the same bits, the same kinds of array, the same refusals."""

from __future__ import annotations

import threading
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn.base import dtype as dtypes
from aclnn.runtime.plan import plan_cache

X = np.array([[-2.0, -0.5], [0.0, 1.5]], np.float32)
G = np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)


@pytest.fixture(autouse=True)
def _afresh() -> None:
    aclnn.cache_clear()


def elu(g: Any = G, alpha: Any = 1.5, scale: Any = 1.0, inner: Any = 1.0, is_result: Any = False, x: Any = X) -> Any:
    return aclnn.elu_backward(g, alpha, scale, inner, is_result, x)


def remembered() -> int:
    return len(plan_cache.short)


def long_way(*arguments: Any) -> Any:
    """The same call with its output given."""
    return aclnn.elu_backward(*arguments, out=np.empty_like(arguments[0]))


def test_the_second_call_is_short_and_counts_as_a_hit() -> None:
    first = elu()
    assert remembered() == 1
    hits = aclnn.cache_info().hits
    assert elu().tobytes() == first.tobytes() == long_way(G, 1.5, 1.0, 1.0, False, X).tobytes()
    assert aclnn.cache_info().hits > hits
    aclnn.cache_clear()
    assert remembered() == 0


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
        again_ = convolve(stride)
        assert [a.tobytes() for a in again_[:2]] == [a.tobytes() for a in first[:2]]
        assert again_[2] is None
    with pytest.raises(aclnn.AclnnError, match="integer"):
        convolve([True, True])


@pytest.mark.torch
def test_torch_in_torch_out() -> None:
    import torch

    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        g, x = torch.from_numpy(G).to(dtype), torch.from_numpy(X).to(dtype).requires_grad_()
        results = [elu(g, x=x) for _ in range(3)]
        assert all(type(r) is torch.Tensor and r.dtype is dtype and not r.requires_grad for r in results)
        assert torch.equal(results[0], results[1])
        assert torch.equal(results[0], results[2])
    assert isinstance(elu(G, x=torch.from_numpy(X)), torch.Tensor)
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match="layout"):
            elu(torch.from_numpy(G).to_sparse())
        parameter = torch.nn.Parameter(torch.from_numpy(X))
        assert torch.equal(elu(torch.from_numpy(G), x=parameter), elu(torch.from_numpy(G), x=torch.from_numpy(X)))


@pytest.mark.torch
def test_parameters_are_short_and_stay_resizable() -> None:
    import torch

    x = torch.nn.Parameter(torch.from_numpy(X).clone())
    for _ in range(3):
        elu(torch.from_numpy(G), x=x)
    assert remembered() == 1
    x.untyped_storage().resize_(0)


@pytest.mark.torch
def test_memory_that_was_freed_or_negated_is_seen_every_time() -> None:
    import torch

    size = 4 * X.itemsize
    for _ in range(2):
        for left in (0, size - 1):
            x = torch.from_numpy(X).clone()
            elu(torch.from_numpy(G), x=x)
            x.untyped_storage().resize_(left)
            with pytest.raises(aclnn.AclnnError, match="cannot be read"):
                elu(torch.from_numpy(G), x=x)
        with pytest.raises(aclnn.AclnnError, match="lazily conjugated or negated"):
            elu(torch.from_numpy(G), x=torch._neg_view(torch.from_numpy(X)))
    whole = torch.zeros(4, 2)
    assert elu(torch.from_numpy(G), x=whole[2:]).shape == (2, 2)
    assert elu(torch.zeros(0, 2), x=torch.zeros(0, 2)).shape == (0, 2)


@pytest.mark.torch
def test_what_only_looks_like_a_remembered_tensor_is_refused_or_copied() -> None:
    import torch

    g, x = torch.from_numpy(G), torch.from_numpy(X)
    expected = elu(g, x=x)
    off = torch.frombuffer(bytearray(1 + 4 * X.itemsize), dtype=torch.float32, offset=1).view(2, 2)
    off.copy_(x)
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match="cannot be read"):
            elu(torch._efficientzerotensor((2, 2)), x=x)  # has a size but no address
        with pytest.raises(aclnn.AclnnError, match="cannot be read"):
            torch.vmap(lambda one: elu(one, x=one))(torch.stack([x, x]))
        assert torch.equal(elu(g, x=off), expected)
    assert remembered() == 1


def test_memory_of_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aclnn.runtime.plan.MOST_SHORT", 5)
    for n in range(1, 20):
        elu(np.ones(n, np.float32), x=np.ones(n, np.float32))
        assert remembered() <= 5


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


@pytest.mark.torch
def test_lists_of_torch_tensors() -> None:
    import torch

    expected = [a.tobytes() for a in flat(lstm())]
    for _ in range(2):
        assert [t.numpy().tobytes() for t in flat(lstm(torch.from_numpy))] == expected
    mixed = lstm(params=[torch.from_numpy(np.linspace(-1, k, 16).astype(np.float32).reshape(8, 2)) for k in range(2)])
    assert all(isinstance(t, torch.Tensor) for t in flat(mixed))
    assert [t.numpy().tobytes() for t in flat(mixed)] == expected
