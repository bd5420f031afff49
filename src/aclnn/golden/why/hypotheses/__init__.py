"""Why a result may be wrong: known ways to get an operator wrong, each of which can be recomputed.

A hypothesis changes what goes into the reference, what comes out of it, or what it is computed in. It is proved when
the target agrees with the reference so changed (explain.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses import elu, gates, kernels, padding, parameters, roundings
from aclnn.golden.why.hypotheses.model import Hypothesis, computed_as

__all__ = ["Hypothesis", "computed_as", "of"]

_NOT_WRITTEN = Hypothesis(
    "not-written",
    Text("the output is zero everywhere: it was never written, or its terms were left out", "输出全为0：未写出或漏算"),
    Text("with zeros", "以全0代替"),
    after=lambda case, output, values: np.zeros_like(values),
)


ANY: set[str] = set()
_PROPOSED: tuple[tuple[set[str], Callable[[LoadedCase], Iterator[Hypothesis]]], ...] = (
    # any of these arguments an operator must have, or what is proposed makes no sense
    ({"cubeMathType"}, roundings.of_cube),
    ({"alpha", "params", "storage", "inputGates"}, roundings.of_inputs),
    ({"alpha"}, elu.of),
    ({"weight"}, kernels.of),
    ({"padding", "pad"}, padding.of),
    ({"params", "storage", "inputGates"}, gates.of),
    ({"params"}, parameters.of),
    (ANY, lambda case: iter([_NOT_WRITTEN])),
    ({"params"}, roundings.of_products),
    (ANY, roundings.of_arithmetic),
)


def of(case: LoadedCase) -> Iterator[Hypothesis]:
    """The hypotheses that make sense for a case, the sharpest first."""
    for needs, propose in _PROPOSED:
        if needs is ANY or needs & case.op.by_name.keys():
            yield from propose(case)
