"""Expressions: values that depend on a call. Each is frozen data that knows its value, its text and what it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from aclnn.base.dtype import promote
from aclnn.base.language import Text
from aclnn.base.scalar import Scalar
from aclnn.contract.call import Call


def _in_both(words: str) -> Text:
    return Text(words, words)


@dataclass(frozen=True)
class Expr:
    """The common face: value in a call, text for people, names of the arguments it reads."""

    words: ClassVar[Text]  # the text, with holes for the fields

    def value(self, call: Call) -> Any:
        raise NotImplementedError

    def text(self, lang: str) -> str:
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        said = {name: part.text(lang) if isinstance(part, Expr) else part for name, part in parts.items()}
        return self.words.say(lang).format(**said)

    def names(self) -> tuple[str, ...]:
        parts = (getattr(self, f.name) for f in fields(self))
        return tuple(name for part in parts if isinstance(part, Expr) for name in part.names())

    def holds(self, lang: str) -> str:
        """The text as a condition."""
        return self.text(lang)

    def here(self, call: Call) -> Expr:
        """The expression as a message about this call should name it."""
        return self

    def __add__(self, other: Expr | int) -> Expr:
        return Arithmetic("+", self, lift(other))

    def __sub__(self, other: Expr | int) -> Expr:
        return Arithmetic("−", self, lift(other))

    def __mul__(self, other: Expr | int) -> Expr:
        return Arithmetic("×", self, lift(other))


@dataclass(frozen=True)
class Const(Expr):
    constant: Any

    def value(self, call: Call) -> Any:
        return self.constant

    def text(self, lang: str) -> str:
        return str(list(self.constant) if isinstance(self.constant, tuple) else self.constant)


@dataclass(frozen=True)
class OfArgument(Expr):
    """Whatever is read off one argument."""

    name: str

    def names(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True)
class Attr(OfArgument):
    """The value of an attribute, or the elements of an array attribute."""

    words = _in_both("{name}")

    def value(self, call: Call) -> Any:
        found = call[self.name]
        return found.value if isinstance(found, Scalar) else found  # a Scalar stands for its number

    def holds(self, lang: str) -> str:
        return _flag(self.name, lang)


@dataclass(frozen=True)
class Dim(OfArgument):
    """One dimension of a tensor."""

    axis: int
    words = _in_both("{name}.shape[{axis}]")

    def value(self, call: Call) -> int:
        return int(call[self.name].shape[self.axis])


@dataclass(frozen=True)
class ElementDim(OfArgument):
    """One dimension of one tensor of a list."""

    index: int
    axis: int
    words = _in_both("{name}[{index}].shape[{axis}]")

    def value(self, call: Call) -> int:
        return int(call[self.name][self.index].shape[self.axis])


@dataclass(frozen=True)
class Dims(OfArgument):
    """The dimensions of a tensor, all of them or those from one axis on."""

    start: int = 0

    def value(self, call: Call) -> tuple[int, ...]:
        shape: tuple[int, ...] = call[self.name].shape
        return shape[self.start :]

    def text(self, lang: str) -> str:
        return f"{self.name}.shape[{self.start}:]" if self.start else f"{self.name}.shape"


@dataclass(frozen=True)
class PlaneOf(Expr):
    """What a per-axis array says of H and W: all of it but the first of three entries, which is D (L counts as W)."""

    entries: Expr
    words = Text("{entries} (H, W)", "{entries}（H、W方向）")

    def value(self, call: Call) -> tuple[int, ...]:
        entries: tuple[int, ...] = self.entries.value(call)
        return entries[1:] if len(entries) == 3 else entries

    def here(self, call: Call) -> Expr:
        return self if len(self.entries.value(call)) == 3 else self.entries  # nothing was left out


@dataclass(frozen=True)
class At(OfArgument):
    """One element of an array attribute; None, which is false, where the array is too short."""

    index: int
    words = _in_both("{name}[{index}]")

    def value(self, call: Call) -> Any:
        elements = call[self.name]
        return elements[self.index] if elements is not None and self.index < len(elements) else None

    def holds(self, lang: str) -> str:
        return _flag(self.text(lang), lang)


@dataclass(frozen=True)
class Rank(OfArgument):
    words = Text("the rank of {name}", "{name}的维度")

    def value(self, call: Call) -> int:
        return len(call[self.name].shape)


@dataclass(frozen=True)
class Arithmetic(Expr):
    sign: str
    left: Expr
    right: Expr
    words = _in_both("{left} {sign} {right}")

    def value(self, call: Call) -> Any:
        a, b = self.left.value(call), self.right.value(call)
        return a + b if self.sign == "+" else a - b if self.sign == "−" else a * b


@dataclass(frozen=True)
class Either(Expr):
    """One value where a condition holds, another where it does not."""

    condition: Expr
    then: Expr
    otherwise: Expr

    def value(self, call: Call) -> Any:
        return (self.then if self.condition.value(call) else self.otherwise).value(call)

    def text(self, lang: str) -> str:
        condition, then, otherwise = self.condition.holds(lang), self.then.text(lang), self.otherwise.text(lang)
        return (
            f"({then} if {condition} else {otherwise})" if lang == "en" else f"（{condition}时{then}，否则{otherwise}）"
        )


@dataclass(frozen=True)
class Promoted(Expr):
    """The name of the dtype that several tensors are computed as."""

    tensors: tuple[str, ...]

    def value(self, call: Call) -> str:
        return promote(call[n].dtype for n in self.tensors).name

    def text(self, lang: str) -> str:
        *first, last = self.tensors
        if not first:
            return f"the dtype of {last}" if lang == "en" else f"{last}的数据类型"
        if lang == "en":
            return f"the promoted dtype of {', '.join(first)} and {last}"
        return f"{'、'.join(self.tensors)}互推导后的数据类型"

    def names(self) -> tuple[str, ...]:
        return self.tensors


@dataclass(frozen=True)
class Formula(Expr):
    """A named formula: more than arithmetic on dimensions can say, with its text in both languages."""

    compute: Callable[[Call], Any]
    reads: tuple[str, ...]
    en: str
    zh: str

    def value(self, call: Call) -> Any:
        return self.compute(call)

    def text(self, lang: str) -> str:
        return self.en if lang == "en" else self.zh

    def names(self) -> tuple[str, ...]:
        return self.reads


# Conditions: expressions whose value is a truth value.


@dataclass(frozen=True)
class Not(Expr):
    inner: Expr
    words = Text("not {inner}", "{inner}为false")

    def value(self, call: Call) -> bool:
        return not self.inner.value(call)


@dataclass(frozen=True)
class Is(Expr):
    """Whether an expression has one of these values."""

    inner: Expr
    among: tuple[Any, ...]

    def value(self, call: Call) -> bool:
        return self.inner.value(call) in self.among

    def text(self, lang: str) -> str:
        equals, alternative = (" is ", " or ") if lang == "en" else ("为", "或")
        return f"{self.inner.text(lang)}{equals}{alternative.join(map(str, self.among))}"


@dataclass(frozen=True)
class Above(Expr):
    """Whether a number is larger than a bound."""

    inner: Expr
    bound: float
    words = _in_both("{inner} > {bound}")

    def value(self, call: Call) -> bool:
        return bool(self.inner.value(call) > self.bound)


@dataclass(frozen=True)
class Given(OfArgument):
    """Whether an argument that may be null is there."""

    words = Text("{name} is given", "传入了{name}")

    def value(self, call: Call) -> bool:
        return call[self.name] is not None


@dataclass(frozen=True)
class Limited(Expr):
    """Whether the product has the hardware's limits (all but `cpu`)."""

    words = Text("the product is an NPU", "产品为NPU")

    def value(self, call: Call) -> bool:
        return call.device.limited


def _flag(name: str, lang: str) -> str:
    """A flag as a condition: in Chinese its bare name would be no clause."""
    return name if lang == "en" else f"{name}为true"


def lift(value: Expr | Any) -> Expr:
    return value if isinstance(value, Expr) else Const(value)
