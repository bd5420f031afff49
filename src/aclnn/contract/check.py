"""Finding the first broken rule of a call."""

from __future__ import annotations

from typing import NamedTuple

from aclnn.base.status import AclnnError
from aclnn.contract.call import Call
from aclnn.contract.model import Op
from aclnn.contract.rule import Rule, Words
from aclnn.contract.stage import Stage


class Violation(NamedTuple):
    """A broken rule, with the words for its sentence."""

    op: Op
    rule: Rule
    words: Words

    def sentence(self, lang: str = "en") -> str:
        text = self.rule.sentence(self.words, lang)
        return f"{self.op.name}: {text}." if lang == "en" else f"{self.op.name}：{text}。"

    def error(self) -> AclnnError:
        return AclnnError(
            self.rule.code,
            self.sentence("en"),
            argument=next(iter(self.rule.subjects), None),
            rule=self.rule.kind,
            message_zh=self.sentence("zh"),
        )


def check(op: Op, call: Call, *, outputs: bool = True) -> Violation | None:
    """The first broken rule, in the order of the stages, then as written; None if the call is valid.

    With `outputs` false the outputs are not there yet, and what concerns them is passed over.
    """
    for rule in op.all_rules:
        if rule.stage is Stage.VALUE or not _concerns(rule, op, call, outputs):
            continue
        words = rule.broken(call)
        if words is not None:
            return Violation(op, rule, words)
    return None


def _concerns(rule: Rule, op: Op, call: Call, outputs: bool) -> bool:
    """Whether a rule has something to say: what it speaks of is there and takes part, its conditions hold."""
    for name in rule.subjects:
        arg = op.by_name[name]
        if not outputs and not arg.given:
            return False
        if not rule.speaks_of_absence and (call[name] is None or not arg.takes_part(call)):
            return False
    return rule.applies(call)
