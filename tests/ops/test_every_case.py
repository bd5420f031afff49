"""Every interesting case of every operator, on every engine that is here: right, in place, and the same bits twice."""

from __future__ import annotations

import pytest

from aclnn import ops
from aclnn.contract.cases import Case, fill
from aclnn.contract.check import check
from tests.harness import assert_sound, bits, call

CASES = [
    pytest.param(case, id=f"{op.name}-{i}-{case.note}") for op in ops.all_ops() for i, case in enumerate(ops.cases(op))
]


@pytest.mark.parametrize("case", CASES)
def test_case_is_valid(case: Case) -> None:
    assert check(case.op, case.call) is None


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_case_is_sound(case: Case, engine: str) -> None:
    assert_sound(case, engine)


@pytest.mark.parametrize("case", CASES)
def test_same_bits_twice(case: Case) -> None:
    first, second = fill(case, 1), fill(case, 1)
    call(case, first)
    call(case, second)
    assert bits(case, first) == bits(case, second)
