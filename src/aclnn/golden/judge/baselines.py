"""The standard with two baselines: how far a target is from float64, beside how far a third party is from it.

Three errors of the target, each at most so many times that of the third party. A third party that rounds by luck better
than its type can promise must not make right results wrong: its error counts as at least u, half a unit in the last
place. So a result that is off by no more than one unit in the last place always meets it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from aclnn.base.dtype import FLOAT32
from aclnn.base.dtype import by_name as dtype_by_name
from aclnn.golden.judge.metrics import Measured
from aclnn.golden.judge.standards import STANDARDS, TWO_BASELINES, Criterion
from aclnn.golden.texts import Text, number

_NAMES = (
    Text("maximum of relative errors", "最大相对误差"),
    Text("mean of relative errors", "平均相对误差"),
    Text("root mean square error", "均方根误差"),
)


class Errors(NamedTuple):
    """The errors that are put beside each other."""

    max_rel: float
    mean_rel: float
    rmse: float

    @classmethod
    def of(cls, found: Measured) -> Errors:
        return cls(found.max_rel, found.mean_rel, found.rmse)


class Beside(NamedTuple):
    """A third party's result beside the target's: its errors, how many times larger those of the target are."""

    third: Errors
    ratios: Errors

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        limits = STANDARDS[TWO_BASELINES].rows["any"]
        return tuple(_at_most(*each) for each in zip(_NAMES, self.ratios, limits, strict=True))

    @property
    def holds(self) -> bool:
        return all(c.holds for c in self.criteria)


def beside(target: Measured, third: Measured, row: str) -> Beside:
    """The two, measured each from what its own inputs make; `row` is the type that both are rounded to."""
    found = dtype_by_name(row) or FLOAT32  # hf32 has the units of float32
    size = math.sqrt(float(target.dots[2]) / target.count) if target.count else 0.0
    least = (found.unit, found.unit, found.unit * size)
    errors, others = Errors.of(target), Errors.of(third)
    return Beside(others, Errors(*map(_ratio, errors, others, least)))


def _ratio(target: float, third: float, least: float) -> float:
    """An error in units of the third party's; one that is infinite is never excused."""
    if not math.isfinite(target):
        return math.inf
    return target / max(third, least) if target else 0.0


def _at_most(name: Text, ratio: float, limit: float) -> Criterion:
    have, need = number(ratio), number(limit)
    return Criterion(
        ratio <= limit,
        Text(
            f"{name.en} {have} times the third party's, must be ≤ {need}",
            f"{name.zh}为第三方的{have}倍，要求≤{need}",
        ),
    )


def in_force() -> tuple[str, str]:
    """The standard's name and its numbers, as reports print them."""
    return TWO_BASELINES, STANDARDS[TWO_BASELINES].rule("any").said
