"""Attributes taken for others: flags and scales of ELU, the padding of gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

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


def padding_times(factor: int) -> Callable[[LoadedCase], Iterator[Recomputed]]:
    """Another padding under the same sizes: output u meets input u·stride − padding + tap·dilation; a sign is easily
    wrong. A forward's size depends on its padding, so it has no such fault."""

    def recomputed(case: LoadedCase) -> Iterator[Recomputed]:
        name = "pad" if case.op.family == "ConvTbc" else "padding"
        asked = case.call[name]
        if np.any(asked) and case.op.name.endswith("Backward"):
            other = factor * asked if isinstance(asked, int) else tuple(factor * p for p in asked)
            yield Recomputed(setting(name, other), words={"name": name})

    return recomputed
