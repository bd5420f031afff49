"""The closed vocabulary of rules, in the order they are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, ClassVar

from aclnn.base.dtype import FLOAT64, DType
from aclnn.base.format import Format
from aclnn.base.geometry import MOST_ELEMENTS_TO_MARK, Array, meets_itself
from aclnn.base.product import CPU, PRODUCTS
from aclnn.base.status import Status
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.contract.expr import Const, Expr
from aclnn.contract.rule import Bilingual, Choice, Range, Rule, Stage, Words, say

# --- null ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NotNull(Rule):
    arg: str
    stage: Stage = Stage.NULL
    code: ClassVar[Status] = Status.ACLNN_ERR_PARAM_NULLPTR
    en = "{arg} is null; it must be given"
    zh = "{arg}是空指针；必须传入"
    doc_en = "{arg} is given"
    doc_zh = "{arg}非空"

    def names(self) -> tuple[str, ...]:
        return ()  # the one rule that has something to say about an absent argument

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


# --- product, counts -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ProductSupports(Rule):
    family: str
    stage: Stage = Stage.PRODUCT
    en = "product {product} does not support this operator; supported are {others}"
    zh = "产品{product}不支持该算子；支持的产品是{others}"
    doc_en = "the product supports the operator: {others}"
    doc_zh = "产品支持该算子：{others}"

    def broken(self, call: Call) -> Words | None:
        if call.product.supports(self.family):
            return None
        return {"product": call.product, "others": self._others()}

    def _others(self) -> Choice:
        return Choice(tuple(p.name for p in PRODUCTS if p.supports(self.family)))

    def doc_words(self) -> Words:
        return {"others": self._others()}


@dataclass(frozen=True, kw_only=True)
class Length(Rule):
    """How many elements a list or an array has."""

    arg: str
    lengths: tuple[Expr, ...]
    stage: Stage = Stage.LIST
    en = "{arg} has {count} elements but must have {expected}{formula_if_any}"
    zh = "{arg}有{count}个元素，但应有{expected}个{formula_if_any}"
    doc_en = "{arg} has {formula} elements"
    doc_zh = "{arg}的长度为{formula}"

    def broken(self, call: Call) -> Words | None:
        expected = tuple(e.value(call) for e in self.lengths)
        count = len(call[self.arg])
        if count in expected:
            return None
        words = {"arg": self.arg, "count": count, "expected": Choice(expected)}
        return words | {"formula_if_any": self._formula_if_any()}

    def _formula_if_any(self) -> Bilingual:
        """Where the number comes from, unless it is a constant that has just been said."""
        if all(isinstance(e, Const) for e in self.lengths):
            return Bilingual("", "")
        formula = Choice(self.lengths)
        return Bilingual(f" ({formula.text('en')})", f"（{formula.text('zh')}）")

    def doc_words(self) -> Words:
        return {"arg": self.arg, "formula": Choice(self.lengths)}


# --- dtypes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DtypeIn(Rule):
    """The dtype is among these; no dtypes given: among those the product takes for the family."""

    arg: str
    family: str
    dtypes: tuple[DType, ...] = ()
    stage: Stage = Stage.DTYPE
    en = "{arg} has dtype {dtype}; on {product} it must be {expected}{hint}"
    zh = "{arg}的数据类型是{dtype}；在{product}上应为{expected}{hint}"
    doc_en = "{arg} has dtype {expected}"
    doc_zh = "{arg}的数据类型是{expected}"

    def broken(self, call: Call) -> Words | None:
        expected = self.dtypes or call.product.dtypes[self.family]
        for name, spec in call.named_specs(self.arg):
            if spec.dtype not in expected:
                words = {"arg": name, "dtype": spec.dtype, "product": call.product, "expected": Choice(expected)}
                return words | {"hint": self._hint(spec.dtype, call)}
        return None

    def _hint(self, dtype: DType, call: Call) -> Choice | str:
        if dtype is FLOAT64 and not self.dtypes and call.product is not CPU:
            return Bilingual(" (product cpu takes float64)", "（产品cpu支持float64）")
        return ""

    def doc_words(self) -> Words:
        if self.dtypes:
            return {"arg": self.arg, "expected": Choice(self.dtypes)}
        return {"arg": self.arg, "expected": Bilingual("one the product takes", "产品支持的类型")}


@dataclass(frozen=True, kw_only=True)
class Castable(Rule):
    """A scalar's dtype can be cast to float: integer, float and bool can, complex cannot."""

    arg: str
    stage: Stage = Stage.DTYPE
    en = "{arg} has dtype {dtype}; it must be one that can be cast to float (integer, float or bool)"
    zh = "{arg}的数据类型是{dtype}；必须可转换为浮点（整数、浮点或布尔）"
    doc_en = "{arg} has a dtype that can be cast to float"
    doc_zh = "{arg}的数据类型可转换为浮点"

    def broken(self, call: Call) -> Words | None:
        dtype = call[self.arg].dtype
        return {"arg": self.arg, "dtype": dtype} if dtype.is_complex or dtype.numpy is None else None


@dataclass(frozen=True, kw_only=True)
class _Pair(Rule):
    """Two arguments that agree in something. A list agrees if each of its elements does."""

    first: str
    second: str

    def _of(self, spec: TensorSpec) -> Any:
        raise NotImplementedError

    def broken(self, call: Call) -> Words | None:
        targets = call.specs(self.second)
        expected = self._of(targets[0]) if targets else None
        for name, spec in call.named_specs(self.first):
            if targets and self._of(spec) != expected:
                return {"a": self._of(spec), "b": expected, **self.doc_words(), "first": name}
        return None


@dataclass(frozen=True, kw_only=True)
class SameDtype(_Pair):
    stage: Stage = Stage.SAME_DTYPE
    en = "{first} has dtype {a} but {second} has dtype {b}; the two must be equal"
    zh = "{first}的数据类型是{a}，而{second}的数据类型是{b}；两者必须一致"
    doc_en = "{first} has the dtype of {second}"
    doc_zh = "{first}与{second}的数据类型一致"

    def _of(self, spec: TensorSpec) -> Any:
        return spec.dtype


# --- ranks and formats ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RankIn(Rule):
    arg: str
    ranks: tuple[int, ...]
    stage: Stage = Stage.RANK
    en = "{arg} has rank {rank} (shape {shape}); it must be {expected}"
    zh = "{arg}的维数是{rank}（shape为{shape}）；应为{expected}"
    doc_en = "{arg} has rank {expected}"
    doc_zh = "{arg}的维数是{expected}"

    def broken(self, call: Call) -> Words | None:
        for name, spec in call.named_specs(self.arg):
            if spec.rank not in self.ranks:
                return {"rank": spec.rank, "shape": spec.shape, **self.doc_words(), "arg": name}
        return None

    def doc_words(self) -> Words:
        low, high = min(self.ranks), max(self.ranks)
        is_run = len(self.ranks) > 3
        return {"arg": self.arg, "expected": f"{low}..{high}" if is_run else Choice(self.ranks)}


@dataclass(frozen=True, kw_only=True)
class SameRank(_Pair):
    stage: Stage = Stage.RANK
    en = "{first} has rank {a} but {second} has rank {b}; the two must be equal"
    zh = "{first}的维数是{a}，而{second}的维数是{b}；两者必须一致"
    doc_en = "{first} has the rank of {second}"
    doc_zh = "{first}与{second}的维数一致"

    def _of(self, spec: TensorSpec) -> Any:
        return spec.rank


@dataclass(frozen=True, kw_only=True)
class FormatIn(Rule):
    """The format is among those its rank may have."""

    arg: str
    by_rank: tuple[tuple[int, tuple[Format, ...]], ...]
    stage: Stage = Stage.FORMAT
    en = "{arg} has format {format}; with rank {rank} it must be {expected}"
    zh = "{arg}的数据格式是{format}；维数为{rank}时应为{expected}"
    doc_en = "{arg} has format {formats}"
    doc_zh = "{arg}的数据格式是{formats}"

    def broken(self, call: Call) -> Words | None:
        for name, spec in call.named_specs(self.arg):
            expected = dict(self.by_rank).get(spec.rank, ())
            if expected and spec.format not in expected:
                words = {"arg": name, "format": spec.format, "rank": spec.rank}
                return words | {"expected": Choice(expected)}
        return None

    def doc_words(self) -> Words:
        seen = dict.fromkeys(f for _, formats in self.by_rank for f in formats)
        return {"arg": self.arg, "formats": Choice(tuple(seen))}


@dataclass(frozen=True, kw_only=True)
class SameFormat(_Pair):
    stage: Stage = Stage.FORMAT
    en = "{first} has format {a} but {second} has format {b}; the two must be equal"
    zh = "{first}的数据格式是{a}，而{second}的数据格式是{b}；两者必须一致"
    doc_en = "{first} has the format of {second}"
    doc_zh = "{first}与{second}的数据格式一致"

    def _of(self, spec: TensorSpec) -> Any:
        return spec.format


# --- attribute values ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Between(Rule):
    """A number, or each number of an array, lies in a range."""

    what: Expr
    range: Range
    stage: Stage = Stage.ATTRIBUTE
    en = "{what} is {value}; {each} must be {range}"
    zh = "{what}是{value}；{each}应为{range}"
    doc_en = "{what} is {range}"
    doc_zh = "{what}取值为{range}"

    def broken(self, call: Call) -> Words | None:
        value = self.what.value(call)
        if isinstance(value, tuple):
            holds, each = all(map(self.range.holds, value)), _EACH_ELEMENT
        else:
            holds, each = self.range.holds(value), _IT
        return None if holds else {"value": value, "each": each, **self.doc_words()}


_IT = Bilingual("it", "")
_EACH_ELEMENT = Bilingual("each element", "每个元素")


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


# --- shapes --------------------------------------------------------------------------------------------------------


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
        return None if a == b else {"a": a, "b": b, **self.doc_words()}


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
class SameShape(_Pair):
    """Tensors of equal shape; two lists are compared element by element."""

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


# --- views ---------------------------------------------------------------------------------------------------------


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


_MEETS = Bilingual("so two indexes meet the same element", "两个下标会指向同一元素")
_TOO_MANY = Bilingual(
    f"too irregular to check (over {MOST_ELEMENTS_TO_MARK} elements)",
    f"过于不规则而无法检查（超过{MOST_ELEMENTS_TO_MARK}个元素）",
)


# --- values --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Descending(Rule):
    """The elements of a tensor do not increase and lie in 0..most. Only the data can say: asked when the work runs."""

    arg: str
    most: Expr
    stage: Stage = Stage.VALUE
    en = "{arg}[{index}] is {value}{before}; the elements must lie in 0..{limit} ({most}) and not increase"
    zh = "{arg}[{index}]是{value}{before}；各元素应在0..{limit}（{most}）内且不递增"
    doc_en = "the elements of {arg} lie in 0..{most} and do not increase (checked when the work runs)"
    doc_zh = "{arg}的元素在0..{most}内且不递增（执行时检查）"

    def broken_by(self, call: Call, values: Array) -> Words | None:
        limit = self.most.value(call)
        wrong = (values < 0) | (values > limit)
        wrong[1:] |= values[1:] > values[:-1]
        if not wrong.any():
            return None
        index = int(wrong.argmax())
        before = "" if index == 0 else Bilingual(f" after {values[index - 1]}", f"（前一个元素是{values[index - 1]}）")
        found = {"index": index, "value": int(values[index]), "before": before, "limit": limit}
        return found | self.doc_words()


# --- what no kind can say ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Predicate(Rule):
    """A named condition with its own sentences. `test` returns the words for a broken call, None for a good one."""

    name: str
    reads: tuple[str, ...]
    test: Callable[[Call], Words | None] = field(compare=False)
    says_en: str
    says_zh: str
    doc_says_en: str
    doc_says_zh: str

    def names(self) -> tuple[str, ...]:
        return self.reads

    def broken(self, call: Call) -> Words | None:
        return self.test(call)

    def sentence(self, words: Words, lang: str) -> str:
        return (self.says_en if lang == "en" else self.says_zh).format(**{k: say(v, lang) for k, v in words.items()})

    def statement(self, lang: str) -> str:
        return self.doc_says_en if lang == "en" else self.doc_says_zh

    @property
    def kind(self) -> str:
        return self.name
