"""Expressions: values that depend on a call. Each is frozen data that knows its value, its text and what it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aclnn.base.dtype import promote
from aclnn.base.scalar import Scalar
from aclnn.contract.call import Call


@dataclass(frozen=True)
class Expr:
    """The common face: value in a call, text for people, names of the arguments it reads."""

    def value(self, call: Call) -> Any:
        raise NotImplementedError

    def text(self, lang: str) -> str:
        raise NotImplementedError

    def names(self) -> tuple[str, ...]:
        return ()

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

    def value(self, call: Call) -> Any:
        found = call[self.name]
        return found.value if isinstance(found, Scalar) else found  # a Scalar stands for its number

    def text(self, lang: str) -> str:
        return self.name

    def holds(self, lang: str) -> str:
        return _flag(self.name, lang)


@dataclass(frozen=True)
class Dim(OfArgument):
    """One dimension of a tensor."""

    axis: int

    def value(self, call: Call) -> int:
        return int(call[self.name].shape[self.axis])

    def text(self, lang: str) -> str:
        return f"{self.name}.shape[{self.axis}]"


@dataclass(frozen=True)
class ElementDim(OfArgument):
    """One dimension of one tensor of a list."""

    index: int
    axis: int

    def value(self, call: Call) -> int:
        return int(call[self.name][self.index].shape[self.axis])

    def text(self, lang: str) -> str:
        return f"{self.name}[{self.index}].shape[{self.axis}]"


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

    def value(self, call: Call) -> tuple[int, ...]:
        entries: tuple[int, ...] = self.entries.value(call)
        return entries[1:] if len(entries) == 3 else entries

    def text(self, lang: str) -> str:
        return f"{self.entries.text(lang)} (H, W)" if lang == "en" else f"{self.entries.text(lang)}（H、W方向）"

    def names(self) -> tuple[str, ...]:
        return self.entries.names()

    def here(self, call: Call) -> Expr:
        return self if len(self.entries.value(call)) == 3 else self.entries  # nothing was left out


@dataclass(frozen=True)
class At(OfArgument):
    """One element of an array attribute; None, which is false, where the array is too short."""

    index: int

    def value(self, call: Call) -> Any:
        elements = call[self.name]
        return elements[self.index] if elements is not None and self.index < len(elements) else None

    def text(self, lang: str) -> str:
        return f"{self.name}[{self.index}]"

    def holds(self, lang: str) -> str:
        return _flag(self.text(lang), lang)


@dataclass(frozen=True)
class Rank(OfArgument):
    def value(self, call: Call) -> int:
        return len(call[self.name].shape)

    def text(self, lang: str) -> str:
        return f"the rank of {self.name}" if lang == "en" else f"{self.name}的维度"


@dataclass(frozen=True)
class Arithmetic(Expr):
    sign: str
    left: Expr
    right: Expr

    def value(self, call: Call) -> Any:
        a, b = self.left.value(call), self.right.value(call)
        return a + b if self.sign == "+" else a - b if self.sign == "−" else a * b

    def text(self, lang: str) -> str:
        return f"{self.left.text(lang)} {self.sign} {self.right.text(lang)}"

    def names(self) -> tuple[str, ...]:
        return self.left.names() + self.right.names()


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

    def names(self) -> tuple[str, ...]:
        return self.condition.names() + self.then.names() + self.otherwise.names()


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

    def value(self, call: Call) -> bool:
        return not self.inner.value(call)

    def text(self, lang: str) -> str:
        return f"not {self.inner.text(lang)}" if lang == "en" else f"{self.inner.text(lang)}为false"

    def names(self) -> tuple[str, ...]:
        return self.inner.names()


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

    def names(self) -> tuple[str, ...]:
        return self.inner.names()


@dataclass(frozen=True)
class Above(Expr):
    """Whether a number is larger than a bound."""

    inner: Expr
    bound: float

    def value(self, call: Call) -> bool:
        return bool(self.inner.value(call) > self.bound)

    def text(self, lang: str) -> str:
        return f"{self.inner.text(lang)} > {self.bound}"

    def names(self) -> tuple[str, ...]:
        return self.inner.names()


@dataclass(frozen=True)
class Given(OfArgument):
    """Whether an argument that may be null is there."""

    def value(self, call: Call) -> bool:
        return call[self.name] is not None

    def text(self, lang: str) -> str:
        return f"{self.name} is given" if lang == "en" else f"传入了{self.name}"


@dataclass(frozen=True)
class Limited(Expr):
    """Whether the product has the hardware's limits (all but `cpu`)."""

    def value(self, call: Call) -> bool:
        return call.device.limited

    def text(self, lang: str) -> str:
        return "the product is an NPU" if lang == "en" else "产品为NPU"


def _flag(name: str, lang: str) -> str:
    """A flag as a condition: in Chinese its bare name would be no clause."""
    return name if lang == "en" else f"{name}为true"


def lift(value: Expr | Any) -> Expr:
    return value if isinstance(value, Expr) else Const(value)
