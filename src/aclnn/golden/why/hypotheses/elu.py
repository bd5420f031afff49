"""ELU: flags and scales taken for others."""

from __future__ import annotations

from collections.abc import Iterator

from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Recomputed, setting

_SCALES = (("alpha", "alpha"), ("scale", "scale"), ("inputScale", "input_scale"))


def the_other_flag(case: LoadedCase) -> Iterator[Recomputed]:
    if "isResult" in case.op.by_name:
        asked = case.call["isResult"]
        taken = Text("input", "输入") if asked else Text("output", "输出")
        words = {"taken": taken, "asked": asked, "other": not asked}
        yield Recomputed(setting("is_result", not asked), words=words)


def without_a_scale(case: LoadedCase) -> Iterator[Recomputed]:
    for name, snake in _SCALES:
        if case.call[name].value != 1:
            yield Recomputed(setting(snake, 1.0), words={"name": name})
