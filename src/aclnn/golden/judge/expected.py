"""What the results of a recorded call must be, whatever is behind them: an operator, a recurrence, a sum of calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from aclnn.base.device import CPU
from aclnn.base.dtype import FLOAT32, FLOAT64, DType
from aclnn.base.tolerance import Precision, Terms, allowed_error
from aclnn.contract.model import Op
from aclnn.golden.judge.recurrent import Inexact, Lstm
from aclnn.golden.judge.sound import Truth, truths
from aclnn.golden.read.casefile import LoadedCase, bind
from aclnn.golden.read.msprobe.arguments import PreparedCall, Recurrence


def bound_case(op: Op, prepared: PreparedCall, changed: Mapping[str, Any] | None = None) -> LoadedCase:
    """The call of our operator; the product is cpu, so that no limit of hardware refuses it."""
    return bind(op, {**prepared.given, **(changed or {})}, {}, CPU)


def expected(case: LoadedCase, prepared: PreparedCall) -> dict[str, Truth]:
    behind = prepared.behind
    if isinstance(behind, Recurrence):
        return _of_recurrence(case.op, behind)
    if isinstance(behind, tuple) and (len(behind) > 1 or isinstance(behind[0].behind, Recurrence)):
        return _added([_of_part(case.op, part) for part in behind])
    return {truth.name: truth for truth, _ in truths(case.op, case.call, case.targets, case.given)}


def _of_part(op: Op, part: PreparedCall) -> dict[str, Truth]:
    if isinstance(part.behind, Recurrence):
        return _of_recurrence(op, part.behind)
    return expected(bound_case(op, part), part)


def _of_recurrence(op: Op, behind: Recurrence) -> dict[str, Truth]:
    lstm = Lstm(behind)
    if behind.dy is None or behind.dh is None or behind.dc is None:
        found = lstm.results()
    else:
        dx, dh, dc, dparams = lstm.gradients(behind.dy, behind.dh, behind.dc)
        found = {"dxOut": dx, "dhPrevOut": dh, "dcPrevOut": dc}
        found |= {f"dparamsOut[{i}]": one for i, one in enumerate(dparams)}
    return {name: _truth(op, name, value, behind.dtype) for name, value in found.items()}


def _truth(op: Op, name: str, found: Inexact, dtype: DType) -> Truth:
    compute = FLOAT64 if dtype is FLOAT64 else FLOAT32
    terms = Terms.measured(found.error / compute.unit)
    return Truth(name, op.by_name[name.partition("[")[0]], found.value, terms, Precision(compute, (dtype,)))


def _added(parts: list[dict[str, Truth]]) -> dict[str, Truth]:
    """Gradients of several calls, each rounded on its own and then added up, one after the other."""
    found: dict[str, Truth] = {}
    for name, first in parts[0].items():
        every = [part[name] for part in parts if name in part]
        last = first.precision.roundings[-1]
        value, error = np.zeros(first.exact.shape), np.zeros(first.exact.shape)
        for truth in every:
            value = value + truth.exact
            error = error + allowed_error(truth.exact, truth.terms, truth.precision) + 2 * last.unit * np.abs(value)
        compute = first.precision.compute
        found[name] = first._replace(exact=value, terms=Terms.measured(error / compute.unit))
    return found


def stored_as(truth: Truth, dtype: DType) -> Truth:
    """A result that was stored in another type than it was computed for."""
    precision = truth.precision
    return truth._replace(precision=Precision(precision.compute, tuple(dict.fromkeys((*precision.roundings, dtype)))))
