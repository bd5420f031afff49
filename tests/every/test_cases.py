"""Every interesting case of every operator, on every engine that is here: right, in place, and the same bits always."""

from __future__ import annotations

import pytest

from aclnn import ops
from aclnn.contract.cases import Case
from aclnn.contract.check import check
from tests.every.checks import ENGINES, assert_right, assert_same_bits

CASES = [
    pytest.param(case, id=f"{op.name}-{i}-{case.note}") for op in ops.all_ops() for i, case in enumerate(ops.cases(op))
]


@pytest.mark.parametrize("case", CASES)
def test_case_is_valid(case: Case) -> None:
    assert check(case.op, case.call) is None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_case_is_right(case: Case, engine: str) -> None:
    for threads in (1, 3) if engine == "fast" else (2,):
        assert_right(case, engine, threads)


@pytest.mark.parametrize("case", CASES)
def test_same_bits_every_time_and_on_any_threads(case: Case) -> None:
    for engine in ENGINES:
        assert_same_bits(case, engine)
