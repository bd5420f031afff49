"""Why a result may be wrong: known ways to get an operator wrong, each of which can be recomputed.

`table.py` lists them: the key, the sentence in two languages, what is recomputed. The other files hold the
recomputations. A hypothesis is proved when the target agrees with what it makes (explain.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.why.hypotheses.model import Hypothesis, computed_as
from aclnn.golden.why.hypotheses.table import TABLE

__all__ = ["TABLE", "Hypothesis", "computed_as", "of"]


def of(case: LoadedCase) -> Iterator[Hypothesis]:
    """The hypotheses that make sense for a case, the sharpest first."""
    for row in TABLE:
        yield from row.of(case)
