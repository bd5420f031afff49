"""What a rule is: a condition on a call, with its stage, its code and its sentences in two languages.

A rule is data: what it relates, when it applies, the stage it is checked in, the code it answers with. Each kind has
one sentence per language for the moment it is broken (`en`, `zh`: both values, then what must be) and one for the
documentation (`doc_en`, `doc_zh`). `broken` returns the words for the sentence, or None while the rule holds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from aclnn.base.device import Device
from aclnn.base.language import Text
from aclnn.base.run_once import kept
from aclnn.base.status import Status
from aclnn.contract.call import Call
from aclnn.contract.expr import Expr
from aclnn.contract.stage import Stage

Words = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What all kinds share."""

    conditions: tuple[Expr, ...] = ()
    stage: Stage = Stage.SHAPE

    speaks_of_absence: ClassVar[bool] = False
    code: ClassVar[Status] = Status.ACLNN_ERR_PARAM_INVALID
    en: ClassVar[str]
    zh: ClassVar[str]
    doc_en: ClassVar[str]
    doc_zh: ClassVar[str]

    def names(self) -> tuple[str, ...]:
        """The arguments the rule speaks of, the one it is about first.

        Unless it speaks of absence it has nothing to say when one of them is absent or takes no part.
        """
        found: list[str] = []
        for field_name, value in self._own_fields():
            if field_name in ("arg", "first", "second", "other"):
                found.append(value)
            for part in value if isinstance(value, tuple) else (value,):
                found.extend(part.names() if isinstance(part, Expr) else ())
        return tuple(dict.fromkeys(found))

    @kept
    def subjects(self) -> tuple[str, ...]:
        """The same names, looked up once: every call is checked against every rule."""
        return self.names()

    def _own_fields(self) -> list[tuple[str, Any]]:
        shared = Rule.__dataclass_fields__
        return [(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in shared]

    def broken(self, call: Call) -> Words | None:
        raise NotImplementedError

    def doc_words(self) -> Words:
        """What the sentences may name, whatever the call: the rule's own fields."""
        return dict(self._own_fields())

    @property
    def kind(self) -> str:
        return type(self).__name__

    def applies(self, call: Call) -> bool:
        return all(condition.value(call) for condition in self.conditions)

    def sentence(self, words: Words, lang: str) -> str:
        """What is wrong, and under which conditions it is: "stride is 0; it must be ≥ 1 when transposed"."""
        text = (self.en if lang == "en" else self.zh).format(**{k: say(v, lang) for k, v in words.items()})
        return text + (f" {self._when(lang)}" if self.conditions and lang == "en" else self._when(lang))

    def statement(self, lang: str) -> str:
        """The rule as the documentation says it."""
        words = {k: say(v, lang) for k, v in self.doc_words().items()}
        text = (self.doc_en if lang == "en" else self.doc_zh).format(**words)
        return text + (f" ({self._when(lang)})" if self.conditions and lang == "en" else self._when(lang))

    def _when(self, lang: str) -> str:
        if not self.conditions:
            return ""
        joined = (" and " if lang == "en" else "且").join(c.holds(lang) for c in self.conditions)
        return f"when {joined}" if lang == "en" else f"（{joined}时）"


@dataclass(frozen=True, kw_only=True)
class Pair(Rule):
    """Two arguments that agree in something. A list agrees if each of its elements does."""

    first: str
    second: str
    aspect: ClassVar[str]  # what of a TensorSpec must be the same

    def broken(self, call: Call) -> Words | None:
        targets = call.specs(self.second)
        expected = getattr(targets[0], self.aspect) if targets else None
        for name, spec in call.named_specs(self.first):
            found = getattr(spec, self.aspect)
            if targets and found != expected:
                return {"a": found, "b": expected, **self.doc_words(), "first": name}
        return None


def say(value: Any, lang: str) -> str:
    """A value in the words of a message."""
    if isinstance(value, Text):
        return value.say(lang)
    if isinstance(value, (Expr, Choice, Range, Device)):
        return value.text(lang)
    if isinstance(value, tuple):
        return "[" + ", ".join(say(v, lang) for v in value) + "]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


@dataclass(frozen=True)
class Choice:
    """Alternatives, said with an "or"; or things that are all meant, said with an "and"."""

    items: tuple[Any, ...]
    together: bool = False

    def text(self, lang: str) -> str:
        *first, last = (say(i, lang) for i in self.items)
        if not first:
            return last
        if lang == "zh":
            return "、".join(first) + ("和" if self.together else "或") + last
        return ", ".join(first) + (" and " if self.together else " or ") + last


def span(low: int, high: int) -> Text:
    """From one number to another."""
    return Text(f"{low}..{high}", f"{low}-{high}" if low >= 0 else f"{low}到{high}")


@dataclass(frozen=True)
class Range:
    """The bounds of a number; None is no bound."""

    low: Any = None
    high: Any = None

    def holds(self, number: Any) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    def text(self, lang: str) -> str:
        """As sentences have it behind "must be" and 取值: "≥ 1" and "≥1", "0..8" and "为0-8"."""
        blank = " " if lang == "en" else ""
        if self.low is None:
            return f"≤{blank}{self.high}"
        if self.high is None:
            return f"≥{blank}{self.low}"
        both = f"{self.low}" if self.low == self.high else span(self.low, self.high).say(lang)
        return both if lang == "en" else f"为{both}"
