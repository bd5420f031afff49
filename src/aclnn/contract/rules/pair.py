"""Two arguments that agree in something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aclnn.contract.call import Call
from aclnn.contract.rule import Rule, Words


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
