"""Two arguments that agree in something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.contract.rule import Rule, Words


@dataclass(frozen=True, kw_only=True)
class Pair(Rule):
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
