"""Is a target right, and if not, where and why? `aclnn.compare` and `aclnn compare` are this function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import FLOAT32, FLOAT64, DType
from aclnn.base.geometry import Array
from aclnn.base.rounding import ALLOW_DOWN_PRECISION, USE_HF32
from aclnn.base.status import AclnnError, invalid, ours
from aclnn.golden.judge import standards
from aclnn.golden.judge.blocks import Pair
from aclnn.golden.judge.metrics import Measured, measure
from aclnn.golden.judge.slices import worst_slice
from aclnn.golden.judge.sound import Truth, truths
from aclnn.golden.judge.standards import Standard
from aclnn.golden.read import containers
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.read.load import Hand, Subject, subjects
from aclnn.golden.result import ERROR, FAIL, PASS, SKIPPED, Comparison, OutputReport, disagreement
from aclnn.golden.texts import Text, many
from aclnn.golden.why.explain import Wrong, explain
from aclnn.golden.why.hypotheses import computed_as
from aclnn.golden.why.places import map_of, where

_NAN_FOR_INF = ("Lstm", "ThnnFusedLstmCell")  # whose documents say that Inf in gives NaN out


def compare(
    target: Any,
    golden: Any = None,
    dtype: Any = None,
    standard: str = "mixed",
    *,
    op: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    product: str | None = None,
    shape: Sequence[int] | None = None,
    hints: bool = True,
    only: Sequence[str] | None = None,
) -> Comparison:
    """Compares a target with a golden, or with the float64 reference of its own inputs.

    target: a case file, a folder of dumps, a table of cases (paths), an array, or arrays by name.
    golden: the same kinds; without it the golden is computed, which needs a case or `op` and `arguments`.
    dtype: the row of the standard (float16, bfloat16, float32, hf32); also what bare bytes are.
    standard: mixed, mere-mare, thousandth, close, cosine or binary.
    shape: of bare bytes. hints: whether to find out why a wrong result is wrong.
    only: the outputs to compare. Without it all are that the call asks for, and one that is missing fails.
    """
    chosen = standards.find(standard)
    row, element = _row(dtype)
    hand = Hand(op, arguments or {}, product, element, None if shape is None else tuple(shape))
    reports: list[OutputReport] = []
    for subject in subjects(target, golden, hand):
        try:
            with np.errstate(all="ignore"):  # a file may hold anything; a signalling NaN is a result, no warning
                reports += _compare_subject(_narrowed(subject, only), chosen, row, hints)
        except Exception as error:  # one case that breaks must not take the others with it
            if not subject.of_many:
                raise
            reports.append(_refused(subject, ours(error)))
    return Comparison(chosen, reports)


def _refused(subject: Subject, error: AclnnError) -> OutputReport:
    return OutputReport(subject.name, "", ERROR, Text(error.message, error.message_zh), code=error.code)


def _row(dtype: Any) -> tuple[str | None, DType | None]:
    """The row that a dtype means, and the element type."""
    if dtype is None:
        return None, None
    if str(dtype).lower() == "hf32":
        return "hf32", FLOAT32
    named = str(dtype).removeprefix("torch.") if not isinstance(dtype, type) else np.dtype(dtype).name
    found = dtype if isinstance(dtype, DType) else dtypes.by_name(named)
    if found is None or found.numpy is None:
        raise invalid(f"there is no dtype {dtype!r}; choose one of float32, hf32, float16, bfloat16 …", "dtype")
    return found.name, found


def _narrowed(subject: Subject, only: Sequence[str] | None) -> Subject:
    """The subject with only the outputs that were named; the name of a list stands for all its elements."""
    if only is None or subject.error is not None:
        return subject
    wanted = {only} if isinstance(only, str) else set(only)
    whole = {name: name.partition("[")[0] for name in subject.targets}
    unknown = wanted - whole.keys() - set(whole.values())
    if unknown or not wanted:
        have = ", ".join(subject.targets)
        what = f"there is no output {min(unknown)!r}" if unknown else "no output is named"
        raise invalid(f"{subject.name}: {what}; its outputs are {have}.", "only")
    return replace(subject, targets={n: t for n, t in subject.targets.items() if {n, whole[n]} & wanted})


def _compare_subject(subject: Subject, standard: Standard, row: str | None, hints: bool) -> list[OutputReport]:
    if subject.error is not None:
        return [_refused(subject, subject.error)]
    expected = _expected(subject)
    reports, pairs = [], {}
    for name, target in subject.targets.items():
        report = OutputReport(subject.name, name, SKIPPED, operator=subject.case.op.name if subject.case else None)
        reports.append(report)
        pair = _pair(subject, name, target, expected, report)
        if pair is not None:
            pairs[name] = pair
            _judge(report, pair, standard, row, subject.case)
    if hints and subject.case is not None:
        _explain(subject.case, reports, pairs)
    reports += [_unasked(subject, name) for name in subject.unasked]
    return [r for r in reports if r.why is not None or r.measured is not None]


def _expected(subject: Subject) -> dict[str, Truth]:
    if subject.case is None:
        return {}
    case = subject.case
    try:
        return {truth.name: truth for truth, _ in truths(case.op, case.call, case.targets, case.given)}
    except MemoryError:
        raise invalid(f"{subject.name}: the reference of {case.op.name} needs more memory than there is.") from None


def _pair(
    subject: Subject, name: str, target: Array | None, expected: Mapping[str, Truth], report: OutputReport
) -> Pair | None:
    """What an output is compared with; None, with the reason in its report, where there is nothing to compare."""
    if target is None:
        if subject.case is None or name in expected:
            report.status, report.sound = FAIL, False
            report.why = Text("it is not in the target", "待测数据中没有该输出")
        return None
    golden = None if subject.goldens is None else subject.goldens.get(name)
    if golden is None and subject.goldens is not None:
        missing = Text("it is not in the golden", "标杆数据中没有该输出")
        if name not in expected:
            report.why = missing
            return None
        report.notes = (Text(f"{missing.en}: it was computed", f"{missing.zh}，由本工具计算"),)
    report.golden = "computed" if golden is None else "given"
    boundary = subject.case is not None and subject.case.op.family in _NAN_FOR_INF
    return Pair(target, containers.known_dtype(target, name), golden, expected.get(name), boundary)


def _unasked(subject: Subject, name: str) -> OutputReport:
    why = Text("the call does not ask for it", "调用未要求计算该输出")
    return OutputReport(subject.name, name, SKIPPED, why, subject.case.op.name if subject.case else None)


def _judge(report: OutputReport, pair: Pair, standard: Standard, row: str | None, case: LoadedCase | None) -> None:
    places = map_of(case, report.output, pair.target.shape)
    report.dtype, report.shape, report.axes = pair.dtype.name, pair.target.shape, places.axes
    if "float" not in pair.dtype.name:
        raise invalid(f"{report.label} has dtype {pair.dtype}; only floating-point results are compared.")
    report.rule = standard.rule(row or _natural_row(report, pair, case, standard))
    found = measure(pair, report.rule, [places.inner] if places.inner else [])
    report.measured = found
    report.criteria = report.rule.criteria(found.summary())
    report.status = PASS if all(c.holds for c in report.criteria) else FAIL
    report.sound = _is_sound(found, pair)
    if found.misses:
        report.places = where(found, places)
        report.slice = worst_slice(pair, found.worst)
    _refuse_a_golden_of_nan(report, found, pair)
    report.notes += tuple(_notes(report, pair))


def _natural_row(report: OutputReport, pair: Pair, case: LoadedCase | None, standard: Standard) -> str:
    """The element type, or HF32 where the operator is asked to round its inputs so; float32 serves float64 too."""
    if case is not None and "cubeMathType" in case.op.by_name and report.output != "gradBias":
        rounds = case.call["cubeMathType"] in (ALLOW_DOWN_PRECISION, USE_HF32)
        if rounds and computed_as(case) is FLOAT32 and pair.dtype is FLOAT32:
            return "hf32"
    has_row = pair.dtype.name in standard.rows or "any" in standard.rows
    return "float32" if pair.dtype is FLOAT64 and not has_row else pair.dtype.name


def _is_sound(found: Measured, pair: Pair) -> bool | None:
    """Against a golden from a file, misses may still be rounding: only NaN and Inf are certain there."""
    if not found.misses:
        return True
    return None if pair.truth is None and not found.special_misses else False


def _refuse_a_golden_of_nan(report: OutputReport, found: Measured, pair: Pair) -> None:
    """A golden of NaN alone was never written; unless the inputs ask for it, nothing can be told by it."""
    if pair.golden is None or found.count < 2 or found.nan_golden < found.count:
        return
    if pair.truth is None or not np.isnan(pair.truth.exact).all():
        report.status = ERROR
        report.why = Text("every element of the golden is NaN", "标杆数据全为NaN")


def _notes(report: OutputReport, pair: Pair) -> Iterator[Text]:
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


def _explain(case: LoadedCase, reports: list[OutputReport], pairs: Mapping[str, Pair]) -> None:
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
