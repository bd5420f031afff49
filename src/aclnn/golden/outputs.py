"""One output: measured, judged by a standard and by our own bound, remarked on, and explained where it is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aclnn.base.dtype import FLOAT32, FLOAT64
from aclnn.base.rounding import ALLOW_DOWN_PRECISION, USE_HF32
from aclnn.base.status import invalid
from aclnn.contract.rule import say
from aclnn.golden.judge.blocks import TargetPair
from aclnn.golden.judge.metrics import Measured, measure
from aclnn.golden.judge.slices import worst_slice
from aclnn.golden.judge.standards import Standard, Tolerances
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.result import ERROR, FAIL, PASS, OutputReport, disagreement
from aclnn.golden.texts import Text, many
from aclnn.golden.why.explain import Wrong, explain
from aclnn.golden.why.hypotheses import computed_as
from aclnn.golden.why.places import map_of, where

AUTO, YES, NO = "auto", "yes", "no"


@dataclass(frozen=True)
class Asked:
    """How outputs are judged."""

    standard: Standard
    row: str | None = None
    hints: bool = True
    tolerances: Tolerances = field(default_factory=Tolerances)
    check_golden: bool = False
    # Of dumps alone:
    hf32: str = AUTO  # whether float32 may be computed in HF32: only if float32 does not explain it, always, never
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of modules, by name
    narrow_sums: bool = False  # whether convolutions of 16 bits may store partial sums in 16 bits


def judge_output(
    report: OutputReport, pair: TargetPair, asked: Asked, case: LoadedCase | None, computed_in: str | None = None
) -> None:
    """Fills a report; `computed_in` is the row of the type that a result had before it was widened."""
    standard = asked.tolerances.applied(asked.standard, report.output)
    if case is not None:
        report.product, report.attributes = case.call.device.name, _attributes(case)
    places = map_of(case, report.output, pair.target.shape)
    report.dtype, report.shape, report.axes = pair.dtype.name, pair.target.shape, places.axes
    if "float" not in pair.dtype.name:
        raise invalid(f"{report.label} has dtype {pair.dtype}; only floating-point results are compared.")
    report.rule = standard.rule(asked.row or computed_in or _natural_row(report, pair, case, standard))
    found = measure(pair, report.rule, [places.inner] if places.inner else [])
    report.measured = found
    report.criteria = report.rule.criteria(found)
    report.status = PASS if all(c.holds for c in report.criteria) else FAIL
    report.sound = _is_sound(found, pair)
    if found.misses:
        report.places = where(found, places)
        report.slice = worst_slice(pair, found.worst)
    _refuse_a_golden_of_nan(report, found, pair)
    report.notes += tuple(_notes(report, pair))


def _attributes(case: LoadedCase) -> str:
    values = {arg.name: case.call[arg.name] for arg in case.op.inputs if not arg.is_tensor}
    return " ".join(f"{name}={say(getattr(value, 'value', value), 'en')}" for name, value in values.items())


def _natural_row(report: OutputReport, pair: TargetPair, case: LoadedCase | None, standard: Standard) -> str:
    """The element type, or HF32 where the operator is asked to round its inputs so; float32 serves float64 too."""
    if case is not None and "cubeMathType" in case.op.by_name and report.output != "gradBias":
        rounds = case.call["cubeMathType"] in (ALLOW_DOWN_PRECISION, USE_HF32)
        if rounds and computed_as(case) is FLOAT32 and pair.dtype is FLOAT32:
            return "hf32"
    has_row = pair.dtype.name in standard.rows or "any" in standard.rows
    return "float32" if pair.dtype is FLOAT64 and not has_row else pair.dtype.name


def _is_sound(found: Measured, pair: TargetPair) -> bool | None:
    """Against a golden from a file, misses may still be rounding: only NaN and Inf are certain there."""
    if not found.misses:
        return True
    return None if pair.truth is None and not found.special_misses else False


def _refuse_a_golden_of_nan(report: OutputReport, found: Measured, pair: TargetPair) -> None:
    """A golden of NaN alone was never written; unless the inputs ask for it, nothing can be told by it."""
    if pair.golden is None or found.count < 2 or found.nan_golden < found.count:
        return
    if pair.truth is None or not np.isnan(pair.truth.exact).all():
        report.status = ERROR
        report.why = Text("every element of the golden is NaN", "标杆数据全为NaN")


def _notes(report: OutputReport, pair: TargetPair) -> Iterator[Text]:
    found = report.measured
    assert found is not None
    if found.special_misses and found.nan_target == found.count:
        yield Text("every element of the target is NaN", "待测数据全为NaN")
    if report.rule is not None and pair.dtype is FLOAT64 and report.rule.row == "float32":
        name = report.rule.standard
        yield Text(f"{name} has no row for float64: that of float32 is used", f"{name}没有float64一行，使用float32的")
    apart = disagreement(report)
    if apart is not None:
        yield apart
    if report.sound is None:
        yield Text(
            f"{many(found.misses, 'element')} may be rounding or not: that takes the operator and its inputs to tell",
            f"{found.misses:,}个元素是否属于舍入误差无法判断：需要算子及其输入",
        )
    if found.documented:
        yield Text(
            f"{many(found.documented, 'element')} NaN where the golden is Inf: a documented boundary, not a fault",
            f"{found.documented:,}个元素为NaN而标杆为Inf：文档说明的边界行为，不算错误",
        )
    if pair.golden is not None and pair.truth is not None:
        wrong = int(np.count_nonzero(pair.truth.ratio(pair.golden) > 1))
        if wrong:
            yield Text(
                f"the golden that was given is itself beyond rounding in {many(wrong, 'element')}",
                f"给定的标杆自身有{wrong:,}个元素超出舍入误差",
            )


def explain_outputs(case: LoadedCase, reports: list[OutputReport], pairs: Mapping[str, TargetPair]) -> None:
    wrong = {
        r.output: Wrong(pairs[r.output].target, r.measured.misses, bool(r.places))
        for r in reports
        if r.sound is False and r.measured is not None and r.measured.misses
    }
    if not wrong:
        return
    proved = explain(case, wrong)
    for report in reports:
        if report.output in proved:
            report.hints = (proved[report.output],)
