"""The values of attributes, and of tensors whose data matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aclnn.base.geometry import Array
from aclnn.base.language import Text
from aclnn.contract.call import Call
from aclnn.contract.expr import Expr
from aclnn.contract.rule import Choice, Range, Rule, Words
from aclnn.contract.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Between(Rule):
    """A number, or each number of an array, lies in a range."""

    what: Expr
    range: Range
    stage: Stage = Stage.ATTRIBUTE
    en = "{what} is {value}; {each} must be {range}"
    zh = "{what}是{value}；{each}应{range}"
    doc_en = "{what} is {range}"
    doc_zh = "{what}取值{range}"

    def broken(self, call: Call) -> Words | None:
        value = self.what.value(call)
        if isinstance(value, tuple):
            holds, each = all(map(self.range.holds, value)), _EACH_ELEMENT
        else:
            holds, each = self.range.holds(value), _IT
        return None if holds else {"value": value, "each": each, **self.doc_words(), "what": self.what.here(call)}


_IT = Text("it", "")
_EACH_ELEMENT = Text("each element", "每个元素")


@dataclass(frozen=True, kw_only=True)
class EachBelow(Rule):
    """Each number of an array is at least 0 and below the number at its place in another."""

    arg: str
    other: str
    stage: Stage = Stage.ATTRIBUTE
    en = "{arg} is {value} but {other} is {bound}; each element must be at least 0 and below that of {other}"
    zh = "{arg}是{value}，而{other}是{bound}；每个元素应不小于0且小于{other}的对应元素"
    doc_en = "each element of {arg} is at least 0 and below that of {other}"
    doc_zh = "{arg}的每个元素不小于0且小于{other}的对应元素"

    def broken(self, call: Call) -> Words | None:
        values, bounds = call[self.arg], call[self.other]
        if all(0 <= v < b for v, b in zip(values, bounds, strict=True)):
            return None
        return {"value": values, "bound": bounds, **self.doc_words()}


@dataclass(frozen=True, kw_only=True)
class OneOf(Rule):
    arg: str
    among: tuple[Any, ...]
    stage: Stage = Stage.ATTRIBUTE
    en = "{arg} is {value}; it must be {expected}"
    zh = "{arg}是{value}；应为{expected}"
    doc_en = "{arg} is {expected}"
    doc_zh = "{arg}取值为{expected}"

    def broken(self, call: Call) -> Words | None:
        value = call[self.arg]
        return None if value in self.among else {"value": value, **self.doc_words()}

    def doc_words(self) -> Words:
        return {"arg": self.arg, "expected": Choice(self.among)}


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
