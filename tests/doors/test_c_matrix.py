"""Every generated case, valid and failing, through C: the codes, the text and the bits are those that Python gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill
from aclnn.contract.model import Op
from aclnn.contract.rule import Rule
from tests.doors.c_door import CCall, library
from tests.doors.toolchain import needs_compiler
from tests.every.test_rules import FAILING
from tests.harness import bits, call

pytestmark = needs_compiler


def outcome_from_python(case: Case, filled: dict[str, object]) -> tuple[int, str]:
    try:
        call(case, filled)
    except aclnn.AclnnError as error:
        return error.code, error.message
    return 0, ""


def outcome_from_c(case: Case, filled: dict[str, object]) -> tuple[int, str]:
    made = CCall(case, filled)
    try:
        return made.outcome()
    finally:
        made.destroy()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    count = library().aclnn_cpu_live_objects
    before = count()
    yield
    assert count() == before


@pytest.mark.filterwarnings("ignore::UserWarning")  # advice is passed on in Python, and logged in C
@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_valid_cases_give_the_same_bits(op: Op) -> None:
    for case in ops.cases(op):
        from_python, from_c = fill(case, 3), fill(case, 3)
        assert outcome_from_python(case, from_python) == (0, "")
        assert outcome_from_c(case, from_c) == (0, ""), case.note
        assert bits(case, from_c) == bits(case, from_python), case.note


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_failing_cases_give_the_same_code_and_text(op: Op) -> None:
    failing: dict[Rule, Case] = FAILING[op.name]
    assert failing
    for rule, case in failing.items():
        expected = outcome_from_python(case, fill(case))
        assert expected[0] == rule.code
        assert outcome_from_c(case, fill(case)) == expected, case.note
