"""Every rule of every operator: a call that breaks it, and only it first, gets its code and its sentence."""

from __future__ import annotations

import pytest

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill
from aclnn.contract.check import check
from aclnn.contract.model import Op
from aclnn.contract.rule import Rule
from aclnn.contract.stage import Stage
from tests.every.mutate import failing_cases
from tests.harness import call

FAILING: dict[str, dict[Rule, Case]] = {op.name: failing_cases(ops.cases(op)) for op in ops.all_ops()}
EACH = [
    pytest.param(op, rule, id=f"{op.name}-{i}-{rule.kind}")
    for op in ops.all_ops()
    for i, rule in enumerate(op.all_rules)
]


OF_CALLS = [each for each in EACH if each.values[1].stage is not Stage.VALUE]  # VALUE is asked of data: test_lstm.py


@pytest.mark.parametrize(("op", "rule"), OF_CALLS)
def test_rule_has_a_failing_case_with_its_code_and_text(op: Op, rule: Rule) -> None:
    case = FAILING[op.name].get(rule)
    assert case is not None, f"no failing case for: {rule.statement('en')}"
    violation = check(op, case.call)
    assert violation is not None
    with pytest.raises(aclnn.AclnnError) as refused:
        call(case, fill(case))
    assert refused.value.code == rule.code
    assert refused.value.message == violation.sentence("en")
    assert refused.value.message_zh == violation.sentence("zh")
    assert refused.value.rule == rule.kind


@pytest.mark.parametrize(("op", "rule"), EACH)
def test_sentences_are_whole_in_both_languages(op: Op, rule: Rule) -> None:
    case = FAILING[op.name].get(rule)
    said = [rule.statement("en"), rule.statement("zh")]
    if case is not None:
        violation = check(op, case.call)
        assert violation is not None
        said += [violation.sentence("en"), violation.sentence("zh")]
        assert said[2].startswith(f"{op.name}: ")
        assert said[2].endswith(".")
        assert said[3].endswith("。")
    for text in said:
        assert "{" not in text
        assert "None" not in text
    assert not said[0].isascii() or said[1] != said[0]
