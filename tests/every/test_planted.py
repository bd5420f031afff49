"""A fault planted on each axis is found, and only by the question that is about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.base.dtype import BFLOAT16, FLOAT32
from aclnn.contract.call import Call
from aclnn.contract.cases import Case
from aclnn.kernels.registry import Kernel, Prepared, Refusal
from aclnn.runtime import plan as planning
from tests.every.checks import assert_right, assert_same_bits
from tests.every.draw import drawn

OP = ops.find("aclnnElu")
CASES = [*ops.cases(OP), *drawn(OP, 0, 20)]
Fault = Callable[[Call, int], float]
"""What the output is multiplied with."""


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, Fault], None]]:
    """Makes every kernel of an engine wrong, as a function of the call and the number of threads says."""
    kernels_of = planning.kernels_of

    def plant(engine: str, fault: Fault) -> None:
        def faulty(name: str, file: str) -> tuple[Kernel, ...]:
            return tuple(wrong(k, fault) if k.engine == engine else k for k in kernels_of(name, file))

        monkeypatch.setattr(planning, "kernels_of", faulty)

    aclnn.cache_clear()
    yield plant
    aclnn.cache_clear()


def wrong(kernel: Kernel, fault: Fault) -> Kernel:
    def plan(call: Call, threads: int) -> Any:
        prepared = kernel.plan(call, threads)
        if not isinstance(prepared, Prepared):
            return prepared

        def instantiate() -> Any:
            run = prepared.instantiate()

            def faulty(workspace: Any, *tensors: Any) -> None:
                run(workspace, *tensors)
                tensors[-1][...] = tensors[-1] * fault(call, threads)

            return faulty

        return replace(prepared, instantiate=instantiate)

    return kernel._replace(plan=plan)


def a_bit_more(call: Call) -> float:
    """A factor that rounding allows, of float32."""
    return np.float32(1 + 2**-22) if call["out"].dtype is FLOAT32 else 1


def found(question: Callable[..., None], *asked: Any) -> bool:
    """Whether some case answers the question wrongly."""

    def answered(case: Case) -> bool:
        try:
            question(case, *asked)
        except AssertionError:
            return False
        return True

    return not all(answered(case) for case in CASES)


@pytest.mark.parametrize("engine", ["fast", "numpy"])
def test_one_engine_is_wrong(plant: Callable[[str, Fault], None], engine: str) -> None:
    plant(engine, lambda call, threads: 1.5)
    assert found(assert_right, engine)
    assert not found(assert_right, "reference")
    assert not found(assert_same_bits, engine)


def test_one_dtype_is_wrong(plant: Callable[[str, Fault], None]) -> None:
    plant("numpy", lambda call, threads: 1.5 if call["out"].dtype is BFLOAT16 else 1)
    assert found(assert_right, "numpy")


def test_one_kind_of_strides_is_wrong(plant: Callable[[str, Fault], None]) -> None:
    plant("numpy", lambda call, threads: 1 if call["self"].is_contiguous else 1.5)
    assert found(assert_right, "numpy")


def test_one_number_of_threads_gives_other_bits(plant: Callable[[str, Fault], None]) -> None:
    plant("fast", lambda call, threads: a_bit_more(call) if threads == 3 else 1)
    assert found(assert_same_bits, "fast")
    assert not found(assert_right, "fast", 3)


def test_every_second_run_gives_other_bits(plant: Callable[[str, Fault], None]) -> None:
    times = iter(range(10**9))
    plant("numpy", lambda call, threads: a_bit_more(call) if next(times) % 2 else 1)
    assert found(assert_same_bits, "numpy")
    assert not found(assert_right, "numpy")


def test_a_refusal_without_a_known_reason_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    moody = Kernel("moody", "fast", lambda call, threads: Refusal("not today"))
    monkeypatch.setattr(planning, "kernels_of", lambda name, file: (moody,))
    aclnn.cache_clear()
    with pytest.raises(aclnn.AclnnError, match="not today"):
        assert_right(CASES[0], "fast")
    aclnn.cache_clear()
