"""Advice: what the maker of a valid call should know. It never fails the call."""

from __future__ import annotations

from dataclasses import dataclass

from aclnn.contract.call import Call
from aclnn.contract.expr import Expr
from aclnn.contract.rule import say


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A sentence for the calls in which all conditions hold; `{name}` stands for the value of an attribute."""

    conditions: tuple[Expr, ...]
    en: str
    zh: str

    def applies(self, call: Call) -> bool:
        return all(condition.value(call) for condition in self.conditions)

    def sentence(self, call: Call, lang: str = "en") -> str:
        names = {name for condition in self.conditions for name in condition.names()}
        return (self.en if lang == "en" else self.zh).format(**{name: say(call[name], lang) for name in names})
