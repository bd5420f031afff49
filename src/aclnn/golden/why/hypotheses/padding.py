"""Padding in gradients: output u meets input u·stride − padding + tap·dilation; a sign is easily wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.why.hypotheses.model import Recomputed, setting


def times(factor: int) -> Callable[[LoadedCase], Iterator[Recomputed]]:
    """Another padding under the same sizes. A forward's size depends on its padding, so it has no such fault."""

    def recomputed(case: LoadedCase) -> Iterator[Recomputed]:
        name = "pad" if case.op.family == "ConvTbc" else "padding"
        asked = case.call[name]
        if np.any(asked) and case.op.name.endswith("Backward"):
            other = factor * asked if isinstance(asked, int) else tuple(factor * p for p in asked)
            yield Recomputed(setting(name, other), words={"name": name})

    return recomputed
