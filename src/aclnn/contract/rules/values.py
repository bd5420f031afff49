"""What only the data can say."""

from __future__ import annotations

from dataclasses import dataclass

from aclnn.base.geometry import Array
from aclnn.base.language import Text
from aclnn.contract.call import Call
from aclnn.contract.expr import Expr
from aclnn.contract.rule import Rule, Words
from aclnn.contract.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Descending(Rule):
    """The elements of a tensor do not increase and lie in 0..most. Only the data can say: asked when the work runs."""

    arg: str
    most: Expr
    stage: Stage = Stage.VALUE
    en = "{arg}[{index}] is {value}{before}; the elements must lie in 0..{limit} and not increase, {limit} being {most}"
    zh = "{arg}[{index}]是{value}{before}；各元素应在0到{limit}之间且不递增，{limit}即{most}"
    doc_en = "the elements of {arg} lie in 0..{most} and do not increase (checked when the work runs)"
    doc_zh = "{arg}的元素在0到{most}之间且不递增（执行时检查）"

    def broken_by(self, call: Call, values: Array) -> Words | None:
        limit = self.most.value(call)
        wrong = (values < 0) | (values > limit)
        wrong[1:] |= values[1:] > values[:-1]
        if not wrong.any():
            return None
        index = int(wrong.argmax())
        before = "" if index == 0 else Text(f" after {values[index - 1]}", f"（前一个元素是{values[index - 1]}）")
        found = {"index": index, "value": int(values[index]), "before": before, "limit": limit}
        return found | self.doc_words()
