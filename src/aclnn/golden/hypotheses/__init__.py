"""Why a result may be wrong: known ways to get an operator wrong, each of which can be recomputed.

A hypothesis changes what goes into the reference, what comes out of it, or what it is computed in. It is proved when
the target agrees with the reference so changed (explain.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aclnn.golden.casefile import LoadedCase
from aclnn.golden.hypotheses import elu, gates, kernels, padding, parameters, roundings
from aclnn.golden.hypotheses.model import Hypothesis, computed_as
from aclnn.golden.texts import Text

__all__ = ["Hypothesis", "computed_as", "of"]

_NOT_WRITTEN = Hypothesis(
    "not-written",
    Text("the output is zero everywhere: it was never written, or its terms were left out", "输出全为0：未写出或漏算"),
    Text("with zeros", "以全0代替"),
    after=lambda case, output, values: np.zeros_like(values),
)


_BY_FAMILY = {
    "Elu": (roundings.of_inputs, elu.of),
    "Convolution": (roundings.of_cube, kernels.of, padding.of),
    "ConvTbc": (roundings.of_cube, kernels.of, padding.of),
    "Lstm": (roundings.of_inputs, gates.of, parameters.of),
    "ThnnFusedLstmCell": (roundings.of_inputs, gates.of),
}


def of(case: LoadedCase) -> Iterator[Hypothesis]:
    """The hypotheses that make sense for a case, the sharpest first."""
    for propose in _BY_FAMILY[case.op.family]:
        yield from propose(case)
    yield _NOT_WRITTEN
    yield from roundings.of_sums(case)
