"""Kernels on torch tensors as one native call: results, memory that is not fit, and what is held afterwards."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import dense
from aclnn.kernels.native import jit, tensor_calls
from aclnn.kernels.native.threads import Work
from tests.peak import peak_kilobytes

torch = pytest.importorskip("torch")
pytest.importorskip("numba")
pytestmark = pytest.mark.torch

SIZE = 6
PLAIN = [1.0, 1.0, 1.0]  # coefficients of an ELU


def elu_of(shape: tuple[int, ...], kind: Any = None) -> Any:
    """x → elu(x) for dense tensors of a shape."""
    spec = dense(FLOAT32, shape)
    work = Work(jit.load("elu.forward", "FFfff"), spec.size, 1024, [0, 0, *PLAIN], 1)
    return tensor_calls.on_tensors(work.entry, work.address, work, [spec], spec, kind or torch.Tensor)


@pytest.fixture(scope="module", autouse=True)
def _exchange() -> None:
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no exchange interface of DLPack")


@pytest.mark.parametrize("shape", [(1,), (SIZE,), (2, 3), (2, 1, 3, 4, 5), (1000,)], ids=str)
def test_it_computes_and_makes_a_tensor(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    y = elu_of(shape)(x)
    torch.testing.assert_close(y, torch.nn.functional.elu(x))
    assert (type(y), y.dtype, y.shape, y.stride(), y.requires_grad) == (
        torch.Tensor,
        x.dtype,
        x.shape,
        x.stride(),
        False,
    )
    assert y.data_ptr() % 64 == 0
    assert y.add_(1).sub_(1).isfinite().all()  # it is its own, and may be written


def test_results_are_apart_and_nobody_else_holds_them() -> None:
    elu, x = elu_of((SIZE,)), torch.randn(SIZE)
    results = [elu(x) for _ in range(50)]
    assert len({y.data_ptr() for y in results}) == len(results)
    assert sys.getrefcount(results[0]) == sys.getrefcount(torch.empty(SIZE)) + 1  # the list


def test_memory_goes_with_results() -> None:
    elu, x = elu_of((2**16,)), torch.randn(2**16)
    elu(x)
    gc.collect()
    before = peak_kilobytes()
    for _ in range(2000):  # half a gigabyte in all
        elu(x)
    assert peak_kilobytes() - before < 2**16


def _freed() -> Any:
    x = torch.randn(SIZE)
    x.untyped_storage().resize_(0)
    return x


def _freed_in_part() -> Any:
    x = torch.randn(SIZE)
    x.untyped_storage().resize_(4 * SIZE - 4)
    return x


def _late() -> Any:
    """Its storage is as large as it needs, but not from where it begins."""
    x = torch.randn(2 * SIZE)[SIZE:]
    x.untyped_storage().resize_(4 * SIZE + 8)
    return x


def _off_by_bytes() -> Any:
    memory = bytearray(4 * SIZE + 8)
    return torch.frombuffer(memory, dtype=torch.float32, count=SIZE, offset=1)


@pytest.mark.parametrize("make", [_freed, _freed_in_part, _late, _off_by_bytes])
def test_memory_that_is_not_fit_gets_no_answer(make: Any) -> None:
    elu = elu_of((SIZE,))
    assert elu(make()) is None
    assert elu(torch.zeros(SIZE)) is not None


def test_storage_that_begins_before_and_ends_behind_is_fit() -> None:
    x = torch.randn(3 * SIZE)[SIZE : 2 * SIZE]
    torch.testing.assert_close(elu_of((SIZE,))(x), torch.nn.functional.elu(x))


def test_other_counts_get_no_answer() -> None:
    elu, x = elu_of((SIZE,)), torch.zeros(SIZE)
    assert elu() is None
    assert elu(x, x) is None


@pytest.mark.parametrize("other", [None, 3, "x", np.zeros(SIZE, np.float32), torch.zeros(SIZE).to_sparse()], ids=type)
def test_what_is_no_tensor_is_an_error(other: Any) -> None:
    with pytest.raises(RuntimeError):
        elu_of((SIZE,))(other)


@pytest.mark.parametrize("broken", range(3))
def test_methods_that_fail_are_an_error(broken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(thing: Any) -> Any:
        raise MemoryError("none left")

    methods = list(tensor_calls._methods_of(torch.Tensor))
    methods[broken] = fail
    monkeypatch.setattr(tensor_calls, "_methods_of", lambda kind: methods)
    elu, x = elu_of((SIZE,)), torch.zeros(SIZE)
    for _ in range(3):
        with pytest.raises(MemoryError, match="none left"):
            elu(x)


def test_without_the_interface_there_is_no_function() -> None:
    class OfAnotherName:
        __dlpack_c_exchange_api__ = np._core._multiarray_umath._ARRAY_API  # a capsule, of another name

    assert elu_of((SIZE,), object) is None
    assert elu_of((SIZE,), OfAnotherName) is None


def test_a_function_per_thread_serves_many_at_once() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        elu, x = elu_of((SIZE,)), torch.full((SIZE,), float(seed))
        for _ in range(2000):
            if not torch.equal(elu(x), x):
                wrong.append(seed)

    team = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for one in team:
        one.start()
    for one in team:
        one.join()
    assert not wrong
