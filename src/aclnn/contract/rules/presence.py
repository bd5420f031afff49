"""Who must be there, on which product, and how many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aclnn.base.device import DEVICES
from aclnn.base.language import Text
from aclnn.base.status import Status
from aclnn.contract.call import Call
from aclnn.contract.expr import Const, Expr
from aclnn.contract.rule import Choice, Rule, Words
from aclnn.contract.stage import Stage


@dataclass(frozen=True, kw_only=True)
class NotNull(Rule):
    arg: str
    stage: Stage = Stage.NULL
    speaks_of_absence: ClassVar[bool] = True
    code: ClassVar[Status] = Status.ACLNN_ERR_PARAM_NULLPTR
    en = "{arg} is null; it must be given"
    zh = "{arg}是空指针；必须传入"
    doc_en = "{arg} is given"
    doc_zh = "{arg}非空"

    def broken(self, call: Call) -> Words | None:
        return {"arg": self.arg} if call[self.arg] is None else None


@dataclass(frozen=True, kw_only=True)
class NoNullElement(Rule):
    arg: str
    stage: Stage = Stage.LIST
    code: ClassVar[Status] = Status.ACLNN_ERR_PARAM_NULLPTR
    en = "{arg}[{index}] is null; every element of the list must be given"
    zh = "{arg}[{index}]是空指针；列表中的每个元素都必须传入"
    doc_en = "no element of {arg} is null"
    doc_zh = "{arg}中没有空指针元素"

    def broken(self, call: Call) -> Words | None:
        elements = call[self.arg]
        return {"arg": self.arg, "index": elements.index(None)} if None in elements else None


@dataclass(frozen=True, kw_only=True)
class ProductSupports(Rule):
    family: str
    stage: Stage = Stage.PRODUCT
    en = "product {product} does not support this operator; supported are {others}"
    zh = "产品{product}不支持该算子；支持的产品是{others}"
    doc_en = "the product supports the operator: {others}"
    doc_zh = "产品支持该算子：{others}"

    def broken(self, call: Call) -> Words | None:
        if call.device.supports(self.family):
            return None
        return {"product": call.device, "others": self._others()}

    def _others(self) -> Choice:
        return Choice(tuple(p for p in DEVICES if p.supports(self.family)), together=True)

    def doc_words(self) -> Words:
        return {"others": self._others()}


@dataclass(frozen=True, kw_only=True)
class Length(Rule):
    """How many elements a list or an array has."""

    arg: str
    lengths: tuple[Expr, ...]
    stage: Stage = Stage.LIST
    en = "{arg} has {count} but must have {expected}{formula_if_any}"
    zh = "{arg}有{count}，但应有{expected}个{formula_if_any}"
    doc_en = "the length of {arg} is {formula}"
    doc_zh = "{arg}的长度为{formula}"

    def broken(self, call: Call) -> Words | None:
        expected = tuple(e.value(call) for e in self.lengths)
        count = len(call[self.arg])
        if count in expected:
            return None
        elements = Text("1 element" if count == 1 else f"{count} elements", f"{count}个元素")
        words = {"arg": self.arg, "count": elements, "expected": Choice(expected)}
        return words | {"formula_if_any": self._formula_if_any()}

    def _formula_if_any(self) -> Text:
        """Where the number comes from, unless it is a constant that has just been said."""
        if all(isinstance(e, Const) for e in self.lengths):
            return Text("", "")
        formula = Choice(self.lengths)
        return Text(f" ({formula.text('en')})", f"（{formula.text('zh')}）")

    def doc_words(self) -> Words:
        return {"arg": self.arg, "formula": Choice(self.lengths)}
