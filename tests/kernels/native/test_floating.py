"""Whatever floating-point state a thread has, kernels compute the same bits, and the thread keeps its state."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import pytest

import aclnn
from aclnn.base.dtype import FLOAT32
from aclnn.contract.cases import Case, fill
from aclnn.kernels.native import floating
from aclnn.kernels.native.threads import runtime
from tests.harness import bits, tensors
from tests.kernels.cases import LARGE, executor

T = TypeVar("T")
pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="the states are set through glibc")

_libm = ctypes.CDLL("libm.so.6")
ROUNDINGS = {"x86_64": (0x400, 0x800, 0xC00), "aarch64": (0x400000, 0x800000, 0xC00000)}  # up and down, toward zero


@contextmanager
def state(kind: str) -> Iterator[None]:
    """Another state of this thread: "flushing", or a rounding as fesetround names it."""
    before = ctypes.create_string_buffer(512)
    _libm.fegetenv(before)
    try:
        if kind == "flushing":
            torch = pytest.importorskip("torch")
            assert torch.set_flush_denormal(True)
        else:
            assert _libm.fesetround(ROUNDINGS[platform.machine()][int(kind)]) == 0
        assert not floating.is_default()
        yield
    finally:
        _libm.fesetenv(before)
    assert floating.is_default()


STATES = [pytest.param("flushing", marks=pytest.mark.torch), "0", "1", "2"]


@pytest.mark.parametrize("kind", STATES)
def test_the_default_is_known_and_put_back(kind: str) -> None:
    assert floating.is_default()
    with state(kind):
        with floating.default():
            assert floating.is_default()
        assert not floating.is_default()


def tiny(case: Case) -> dict[str, Any]:
    """The case with numbers of which some are subnormal, and many results are."""
    filled = fill(case)
    for name, tensor in tensors(filled).items():
        if not case.op.by_name[name.partition("[")[0]].out and name in ("gradOutput", "self", "dy", "gradHyOptional"):
            tensor.view[...] = (tensor.view.astype(np.float64) * 2.0**-130).astype(tensor.view.dtype)
    return filled


def outcome(case: Case, filled: dict[str, Any], threads: int, engine: str) -> list[bytes]:
    with aclnn.threads(threads):
        plan = executor(case, filled, engine)
        plan.run(np.empty(plan.workspace_size, np.uint8))
    return bits(case, filled)


def in_a_thread(job: Callable[[], T]) -> T:
    """What the job gives on a thread of its own, which has no workers of OpenMP yet."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(job).result()


FLOAT32_CASES = [case for case in LARGE if case.call.specs(case.op.outputs[0].name)[0].dtype is FLOAT32]


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("make", [fill, tiny], ids=["fill", "tiny"])
def test_every_kernel_computes_the_same_bits(make: Callable[[Case], Any], kind: str, engine: str) -> None:
    for case in FLOAT32_CASES:
        expected = outcome(case, make(case), 2, engine)

        def in_another_state(case: Case = case) -> list[bytes]:
            filled = make(case)
            with state(kind):
                found = outcome(case, filled, 2, engine)
                assert not floating.is_default()
            return found

        assert in_a_thread(in_another_state) == expected, case


@pytest.mark.parametrize("kind", STATES)
def test_workers_that_began_in_another_state_compute_the_same_bits(kind: str) -> None:
    omp = runtime()
    assert omp is not None
    asked = ctypes.cast(_libm.fegetround, ctypes.c_void_p).value or 0
    for case in FLOAT32_CASES:
        expected = outcome(case, tiny(case), 2, "auto")

        def with_such_workers(case: Case = case) -> list[bytes]:
            with state(kind):
                omp.parallel(asked, 0, 2, 0)  # starts them
            return outcome(case, tiny(case), 2, "auto")

        assert in_a_thread(with_such_workers) == expected, case


def test_a_stream_computes_the_same_bits() -> None:
    x = np.linspace(-3, 3, 5000).astype(np.float32)
    grad = np.cos(x)
    expected = aclnn.elu_backward(grad, 1.5, 1.0, 1.0, False, x)
    out = np.empty_like(expected)
    with state("0"), aclnn.Stream() as stream:
        aclnn.elu_backward.plan(grad, 1.5, 1.0, 1.0, False, x, out=out).run(None, stream)
    assert out.tobytes() == expected.tobytes()
