"""Proving why a result is wrong: recompute under each hypothesis and see whether the misses vanish."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.tolerance import Terms
from aclnn.golden.judge.sound import Truth, assembled
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text, percent
from aclnn.golden.why import hypotheses
from aclnn.golden.why.hypotheses import Hypothesis
from aclnn.golden.why.hypotheses.model import Recomputed
from aclnn.runtime.reference import arguments, evaluate, evaluate_sums

_LEFT_OVER = 0.01  # of the misses may stay unexplained
_WIDESPREAD = 0.1  # of the elements must miss before coarser arithmetic is to blame …
_NOTICEABLE = 0.004  # … and the worst must be at least this part of what that arithmetic may do


class Hint(NamedTuple):
    """What went wrong, and what recomputing under that assumption showed."""

    key: str
    says: Text
    proof: Text


class Wrong(NamedTuple):
    """A wrong output: how many elements miss, and whether they have a place in common."""

    target: Array
    misses: int
    gathered: bool


BUDGET = 30.0  # seconds that looking for reasons may take for one call


def explain(case: LoadedCase, wrong: Mapping[str, Wrong]) -> dict[str, Hint]:
    """For each wrong output the first hypothesis that is proved, as far as the time for it goes."""
    hints: dict[str, Hint] = {}
    until = time.monotonic() + BUDGET
    given = arguments(case.op, case.call, case.given)
    for hypothesis in hypotheses.of(case):
        if len(hints) == len(wrong) or time.monotonic() > until:
            break
        for truth in _under(case, hypothesis.way, given):
            if truth.name in wrong.keys() - hints.keys() and hypothesis.way.explains(case, truth.name):
                hint = _proved(hypothesis, truth, wrong[truth.name])
                if hint is not None:
                    hints[truth.name] = hint
    return hints


def _under(case: LoadedCase, way: Recomputed, given: dict[str, Any]) -> Iterator[Truth]:
    """What the outputs would be."""
    changed = way.before(case, given)
    exact, sums = evaluate(case.op, changed), evaluate_sums(case.op, changed)
    for truth, _ in assembled(case.op, case.call, case.targets, exact, sums):
        total = np.broadcast_to(truth.terms.total, truth.exact.shape)
        if way.unit is not None:
            total = total * (way.unit / truth.precision.compute.unit)
        other = way.instead(case, truth.name) if way.instead is not None else None
        yield truth._replace(
            exact=way.after(case, truth.name, truth.exact) if other is None else other,
            terms=Terms(way.after(case, truth.name, total), truth.terms.lengths),
        )


def _proved(hypothesis: Hypothesis, truth: Truth, wrong: Wrong) -> Hint | None:
    ratio = truth.ratio(wrong.target)
    left, size = int(np.count_nonzero(ratio > 1)), wrong.target.size
    if left > _LEFT_OVER * wrong.misses:
        return None
    if hypothesis.way.unit is not None and not _looks_coarse(wrong, float(ratio.max())):
        return None
    share = percent(size - left, size)
    proof = Text(f"{hypothesis.proof.en} {share} is in tolerance", f"{hypothesis.proof.zh}，{share}在容差内")
    return Hint(hypothesis.key, hypothesis.says, proof)


def _looks_coarse(wrong: Wrong, worst: float) -> bool:
    """A wide bound excuses much: coarser arithmetic also has to show everywhere, and by its size."""
    return not wrong.gathered and wrong.misses >= max(3, _WIDESPREAD * wrong.target.size) and worst >= _NOTICEABLE
