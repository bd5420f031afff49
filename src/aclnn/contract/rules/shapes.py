"""Shapes and sizes against each other, and how views lie in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

from aclnn.base.geometry import MOST_ELEMENTS_TO_MARK, meets_itself
from aclnn.base.language import Text
from aclnn.contract.call import Call
from aclnn.contract.expr import Expr
from aclnn.contract.rule import Pair, Rule, Words
from aclnn.contract.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Equal(Rule):
    """Two expressions are equal."""

    left: Expr
    right: Expr
    stage: Stage = Stage.SHAPE
    en = "{left} is {a} but {right} is {b}; the two must be equal"
    zh = "{left}是{a}，而{right}是{b}；两者必须相等"
    doc_en = "{left} equals {right}"
    doc_zh = "{left}等于{right}"

    def broken(self, call: Call) -> Words | None:
        a, b = self.left.value(call), self.right.value(call)
        return None if a == b else {"a": a, "b": b, "left": self.left.here(call), "right": self.right.here(call)}


@dataclass(frozen=True, kw_only=True)
class Multiple(Rule):
    what: Expr
    of: Expr
    stage: Stage = Stage.SHAPE
    en = "{what} is {a}, which {of} = {b} does not divide; it must be a multiple"
    zh = "{what}是{a}，不能被{of} = {b}整除；必须是其整数倍"
    doc_en = "{what} is a multiple of {of}"
    doc_zh = "{what}是{of}的整数倍"

    def broken(self, call: Call) -> Words | None:
        a, b = self.what.value(call), self.of.value(call)
        return None if b and a % b == 0 else {"a": a, "b": b, **self.doc_words()}


@dataclass(frozen=True, kw_only=True)
class SameShape(Pair):
    """Tensors of equal shape; two lists are compared element by element."""

    aspect = "shape"
    stage: Stage = Stage.SHAPE
    en = "{first} has shape {a} but {second} has shape {b}; the two must be equal"
    zh = "{first}的shape是{a}，而{second}的shape是{b}；两者必须一致"
    doc_en = "{first} has the shape of {second}"
    doc_zh = "{first}与{second}的shape一致"

    def broken(self, call: Call) -> Words | None:
        pairs = zip(call.named_specs(self.first), call.named_specs(self.second), strict=True)
        for (first, mine), (second, theirs) in pairs:
            if mine.shape != theirs.shape:
                return {"first": first, "a": mine.shape, "second": second, "b": theirs.shape}
        return None


@dataclass(frozen=True, kw_only=True)
class ShapeIs(Rule):
    """A tensor, or each tensor of a list, has the shape an expression gives.

    The expression is a tuple of dimensions, or a formula; for a list the formula may give one shape per element.
    """

    arg: str
    shape: tuple[Expr, ...] | Expr
    stage: Stage = Stage.SHAPE
    en = "{arg} has shape {actual} but must have shape {expected} ({formula})"
    zh = "{arg}的shape是{actual}，但应为{expected}（{formula}）"
    doc_en = "{arg} has shape {formula}"
    doc_zh = "{arg}的shape是{formula}"

    def expected(self, call: Call) -> Iterator[tuple[int, ...]]:
        """The shape of the tensor, or of one tensor of the list after the other."""
        if isinstance(self.shape, tuple):
            return repeat(tuple(e.value(call) for e in self.shape))
        value = self.shape.value(call)
        return iter(value) if value and isinstance(value[0], tuple) else repeat(tuple(value))

    def broken(self, call: Call) -> Words | None:
        for (name, spec), expected in zip(call.named_specs(self.arg), self.expected(call), strict=False):
            if spec.shape != expected:
                return {"actual": spec.shape, "expected": expected, **self.doc_words(), "arg": name}
        return None

    def doc_words(self) -> Words:
        return {"arg": self.arg, "formula": self.shape}


@dataclass(frozen=True, kw_only=True)
class InsideStorage(Rule):
    arg: str
    stage: Stage = Stage.VIEW
    en = "the view of {arg} touches elements {low} to {high} of a storage of {storage}; it must stay inside"
    zh = "{arg}的视图访问了第{low}到第{high}个元素，而存储只有{storage}个元素；视图不能越界"
    doc_en = "the view of {arg} stays inside its storage"
    doc_zh = "{arg}的视图不超出其存储范围"

    def broken(self, call: Call) -> Words | None:
        for name, spec in call.named_specs(self.arg):
            if not spec.inside_storage:
                low, high = spec.extent()
                return {"arg": name, "low": low, "high": high, "storage": spec.storage}
        return None


@dataclass(frozen=True, kw_only=True)
class NoSelfOverlap(Rule):
    arg: str
    stage: Stage = Stage.VIEW
    en = "{arg} has shape {shape} and strides {strides}, {finding}; every index must have an element of its own"
    zh = "{arg}的shape是{shape}、strides是{strides}，{finding}；每个下标必须对应不同的元素"
    doc_en = "no two indexes of {arg} are the same element"
    doc_zh = "{arg}的任意两个下标不指向同一元素"

    def broken(self, call: Call) -> Words | None:
        for name, spec in call.named_specs(self.arg):
            meets = meets_itself(spec.shape, spec.strides)
            if meets is not False:
                words = {"arg": name, "shape": spec.shape, "strides": spec.strides}
                return words | {"finding": _MEETS if meets else _TOO_MANY}
        return None


_MEETS = Text("so two indexes meet the same element", "两个下标会指向同一元素")
_TOO_MANY = Text(
    f"too irregular to check (over {MOST_ELEMENTS_TO_MARK} elements)",
    f"过于不规则而无法检查（超过{MOST_ELEMENTS_TO_MARK}个元素）",
)
