"""Dtypes, ranks and formats."""

from __future__ import annotations

from dataclasses import dataclass

from aclnn.base.device import CPU
from aclnn.base.dtype import FLOAT64, DType
from aclnn.base.format import Format
from aclnn.base.language import Text
from aclnn.contract.call import Call
from aclnn.contract.rule import Choice, Pair, Rule, Words, span
from aclnn.contract.stage import Stage


@dataclass(frozen=True, kw_only=True)
class DtypeIn(Rule):
    """The dtype is among these; no dtypes given: among those the product takes for the family."""

    arg: str
    family: str
    dtypes: tuple[DType, ...] = ()
    stage: Stage = Stage.DTYPE
    en = "{arg} has dtype {dtype}; on {product} it must be {expected}{hint}"
    zh = "{arg}的数据类型是{dtype}；在{product}上应为{expected}{hint}"
    doc_en = "the dtype of {arg} is {expected}"
    doc_zh = "{arg}的数据类型是{expected}"

    def broken(self, call: Call) -> Words | None:
        expected = self.dtypes or call.device.dtypes[self.family]
        for name, spec in call.named_specs(self.arg):
            if spec.dtype not in expected:
                words = {"arg": name, "dtype": spec.dtype, "product": call.device, "expected": Choice(expected)}
                return words | {"hint": self._hint(spec.dtype, call)}
        return None

    def _hint(self, dtype: DType, call: Call) -> Text | str:
        if dtype is FLOAT64 and not self.dtypes and call.device is not CPU:
            return Text(" (product cpu takes float64)", "（产品cpu支持float64）")
        return ""

    def doc_words(self) -> Words:
        if self.dtypes:
            return {"arg": self.arg, "expected": Choice(self.dtypes)}
        return {"arg": self.arg, "expected": Text("one that the product takes", "产品支持的类型")}


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
class SameDtype(Pair):
    aspect = "dtype"
    stage: Stage = Stage.SAME_DTYPE
    en = "{first} has dtype {a} but {second} has dtype {b}; the two must be equal"
    zh = "{first}的数据类型是{a}，而{second}的数据类型是{b}；两者必须一致"
    doc_en = "{first} has the dtype of {second}"
    doc_zh = "{first}与{second}的数据类型一致"


@dataclass(frozen=True, kw_only=True)
class RankIn(Rule):
    arg: str
    ranks: tuple[int, ...]
    also: Text | None = None
    stage: Stage = Stage.RANK
    en = "{arg} has rank {rank} (shape {shape}); it must be {expected}"
    zh = "{arg}的维度是{rank}（shape为{shape}）；应为{expected}"
    doc_en = "{arg} has rank {expected}"
    doc_zh = "{arg}的维度为{expected}"

    def broken(self, call: Call) -> Words | None:
        for name, spec in call.named_specs(self.arg):
            if spec.rank not in self.ranks:
                return {"rank": spec.rank, "shape": spec.shape, **self.doc_words(), "arg": name}
        return None

    def doc_words(self) -> Words:
        low, high = min(self.ranks), max(self.ranks)
        if len(self.ranks) > 3:
            return {"arg": self.arg, "expected": span(low, high)}
        return {"arg": self.arg, "expected": Choice((*self.ranks, *((self.also,) if self.also else ())))}


@dataclass(frozen=True, kw_only=True)
class SameRank(Pair):
    aspect = "rank"
    stage: Stage = Stage.RANK
    en = "{first} has rank {a} but {second} has rank {b}; the two must be equal"
    zh = "{first}的维度是{a}，而{second}的维度是{b}；两者必须一致"
    doc_en = "{first} has the rank of {second}"
    doc_zh = "{first}与{second}的维度一致"


@dataclass(frozen=True, kw_only=True)
class FormatIn(Rule):
    """The format is among those its rank may have."""

    arg: str
    by_rank: tuple[tuple[int, tuple[Format, ...]], ...]
    stage: Stage = Stage.FORMAT
    en = "{arg} has format {format}; with rank {rank} it must be {expected}"
    zh = "{arg}的数据格式是{format}；维度为{rank}时应为{expected}"
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
class SameFormat(Pair):
    aspect = "format"
    stage: Stage = Stage.FORMAT
    en = "{first} has format {a} but {second} has format {b}; the two must be equal"
    zh = "{first}的数据格式是{a}，而{second}的数据格式是{b}；两者必须一致"
    doc_en = "{first} has the format of {second}"
    doc_zh = "{first}与{second}的数据格式一致"
