"""Calls that PyTorch knows again: only those that are the same to an operator, and never longer than they are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import aclnn  # noqa: E402
import aclnn.torch  # noqa: E402
from aclnn.runtime import familiar_calls  # noqa: E402
from aclnn.runtime.call_cache import CallCache, call_cache  # noqa: E402
from aclnn.runtime.familiar_calls import recall  # noqa: E402

pytestmark = pytest.mark.torch

X = torch.tensor([[-2.0, -0.5], [0.25, 1.5]])
SCALARS = (1.5, 1.0, 1.0)


@pytest.fixture(autouse=True)
def _afresh() -> None:
    aclnn.cache_clear()


def known(*tensors: Any, attributes: tuple[Any, ...] = SCALARS, operator: Any = aclnn.elu) -> bool:
    return recall(operator.op, tensors, attributes) is not None


def made(*tensors: Any, attributes: tuple[Any, ...] = SCALARS, operator: Any = aclnn.elu) -> Any:
    for _ in range(3):
        result = operator.apply(tensors, attributes)
    return result


def test_a_call_is_familiar_after_it_was_made_and_gives_the_same() -> None:
    assert not known(X)
    first = aclnn.elu(X, *SCALARS)
    assert torch.equal(made(X), first)
    assert known(X)
    assert known(X + 1)
    hits = aclnn.cache_info().hits
    assert torch.equal(aclnn.elu(X + 1, *SCALARS), torch.nn.functional.elu(X + 1, 1.5))
    assert aclnn.cache_info().hits == hits + 1


OTHERS = {
    "another shape": torch.zeros(2, 3),
    "other strides": torch.zeros(2, 2).t(),
    "another dtype": torch.zeros(2, 2, dtype=torch.float16),
    "one that learns": torch.zeros(2, 2, requires_grad=True),
    "a parameter": torch.nn.Parameter(torch.zeros(2, 2)),
    "a negated view": torch._neg_view(torch.zeros(2, 2)),
    "no memory": torch.zeros(2, 2, device="meta"),
    "an array": np.zeros((2, 2), np.float32),
    "a list": [[0.0, 0.0], [0.0, 0.0]],
    "nothing": None,
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_another_tensor_is_not_familiar(other: Any) -> None:
    made(X)
    assert known(X)
    assert not known(other)


@pytest.mark.parametrize("attributes", [(1.5, 1, 1.0), (1.5, True, 1.0), (1.5, 1.0, 2.0), ([1.5], 1.0, 1.0)], ids=str)
def test_equal_numbers_of_other_types_are_not_familiar(attributes: tuple[Any, ...]) -> None:
    made(X)
    assert not known(X, attributes=attributes)
    assert known(X, attributes=(float("1.5"), 1.0, 1.0))  # the same, of the same type, in another object


@pytest.mark.parametrize("as_array", [False, True])
def test_calls_that_take_turns_are_each_known(as_array: bool) -> None:
    """The latest call is asked first; what differs from it in one thing is another."""
    x = X.numpy() if as_array else X
    out, half, scalars = x + 0, x[:1] + 0, [(1.5, 1.0, 1.0), (1.5, 1, 1.0), (1.5, True, 1.0), (2.0, 1.0, 1.0)]
    expected = {given: aclnn.elu(x + 0, *given, engine="reference") for given in scalars}
    for _ in range(4):
        for given in scalars:
            np.testing.assert_allclose(aclnn.elu(x, *given), expected[given], rtol=1e-6)
            np.testing.assert_allclose(aclnn.elu(half, *given), expected[given][:1], rtol=1e-6)
            assert aclnn.elu(x, *given, out=out) is out
            np.testing.assert_allclose(out, expected[given], rtol=1e-6)
            with aclnn.engine("numpy"):
                np.testing.assert_allclose(aclnn.elu(x, *given), expected[given], rtol=1e-6)
    hits = aclnn.cache_info().hits
    for given in scalars:
        assert recall(aclnn.elu.op, (x,), given) is not None
        assert recall(aclnn.elu.op, (x,), given, out) is not None
    assert aclnn.cache_info().hits == hits


@pytest.mark.parametrize("kept", [0, 4, 12], ids="{} bytes".format)
def test_memory_that_is_gone_in_part_is_refused(kept: int) -> None:
    x, y = X.clone(), X.clone()
    made(x)
    made(y)
    y.untyped_storage().resize_(kept)
    assert torch.equal(aclnn.elu(x, *SCALARS), torch.nn.functional.elu(x, 1.5))
    with pytest.raises(aclnn.AclnnError, match="cannot be read"):
        aclnn.elu(y, *SCALARS)


def test_flags_in_place_of_numbers_are_refused_though_the_numbers_are_familiar() -> None:
    x, w = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 1, 1)
    window = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    for _ in range(3):
        aclnn.torch.convolution(x, w, None, *window)
    with pytest.raises(aclnn.AclnnError, match="must be an integer"):
        aclnn.torch.convolution(x, w, None, (True, True), *window[1:])


def test_which_tensor_is_absent_is_part_of_a_call() -> None:
    gates, state, bias = torch.randn(2, 8), torch.randn(2, 2), torch.randn(8)
    cell: Any = aclnn.thnn_fused_lstm_cell
    made(gates, gates.clone(), state, bias, bias.clone(), attributes=(), operator=cell)
    made(gates, gates.clone(), state, None, None, attributes=(), operator=cell)
    for one, other, expected in ((bias, bias.clone(), True), (None, None, True), (bias, None, False)):
        assert known(gates, gates.clone(), state, one, other, attributes=(), operator=cell) == expected


def test_settings_are_part_of_a_call() -> None:
    made(X)
    with aclnn.engine("numpy"):
        assert not known(X)
        made(X)
        assert known(X)
    with aclnn.threads(1):
        assert not known(X)
    assert known(X)


def test_memory_that_is_gone_is_refused() -> None:
    x = X.clone()
    made(x)
    x.untyped_storage().resize_(0)
    assert known(x)
    with pytest.raises(aclnn.AclnnError, match="cannot be read"):
        aclnn.elu(x, *SCALARS)


def test_what_is_forgotten_is_not_familiar() -> None:
    made(X)
    aclnn.cache_clear()
    assert not known(X)
    assert not call_cache.familiar


def test_familiar_calls_go_with_those_that_are_kept() -> None:
    few = CallCache(most_calls=2)
    for number in range(5):
        few.keep_familiar(number, ())
        assert len(few.familiar) <= 2


def test_no_more_than_a_few_alike_are_kept() -> None:
    for size in range(2, 5 + familiar_calls.MOST_ALIKE):
        made(torch.zeros(2 * size, 2 * size)[:2, :2])
    ((_, calls),) = call_cache.familiar.values()
    assert len(calls) == familiar_calls.MOST_ALIKE


def test_one_tensor_twice_is_served_and_not_kept() -> None:
    result = made(X, X, attributes=(*SCALARS, False), operator=aclnn.elu_backward)
    assert torch.equal(result, torch.ops.aten.elu_backward(X, 1.5, 1.0, 1.0, False, X))
    assert not call_cache.familiar


def test_modes_and_transforms_are_seen_though_a_call_is_familiar() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.name())
            return func(*args, **(kwargs or {}))

    for _ in range(3):
        aclnn.torch.elu(X)
    assert known(X, attributes=(1.0, 1.0, 1.0))
    with Watching():
        aclnn.torch.elu(X)
    assert seen == ["aclnn::elu"]
    with torch.profiler.profile() as profile:
        aclnn.torch.elu(X)
    assert "aclnn::elu" in {event.key for event in profile.key_averages()}
    with torch.inference_mode():
        assert aclnn.torch.elu(X).is_inference() == torch.ops.aclnn.elu.default(X).is_inference()
