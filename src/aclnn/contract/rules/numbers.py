"""The values of attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
