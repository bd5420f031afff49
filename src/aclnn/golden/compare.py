"""Is a target right, and if not, where and why? `aclnn.compare` and `aclnn compare` are this function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import FLOAT32, DType
from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError, invalid, ours
from aclnn.golden.judge import standards
from aclnn.golden.judge.blocks import TargetPair
from aclnn.golden.judge.sound import Truth, truths
from aclnn.golden.judge.standards import TWO_BASELINES, Limit, Standard, Tolerances
from aclnn.golden.outputs import AUTO, NO, YES, Asked, explain_outputs, judge_output
from aclnn.golden.read import containers
from aclnn.golden.read.kernel_dumps import maps_from
from aclnn.golden.read.load import Hand, Subject, subjects
from aclnn.golden.read.msprobe.attributes import attributes_from
from aclnn.golden.read.msprobe.dump import find
from aclnn.golden.result import ERROR, FAIL, PASS, SKIPPED, Comparison, OutputReport
from aclnn.golden.steps import SharedWork, compare_dumps
from aclnn.golden.texts import Text

ONE_AFTER_ANOTHER = SharedWork()
_NAN_FOR_INF = ("Lstm", "ThnnFusedLstmCell")  # whose documents say that Inf in gives NaN out


def compare(
    target: Any,
    golden: Any = None,
    dtype: Any = None,
    standard: str | None = None,
    *,
    op: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    product: str | None = None,
    shape: Sequence[int] | None = None,
    hints: bool = True,
    only: Sequence[str] | None = None,
    rtol: Limit = None,
    atol: Limit = None,
    cap: Limit = None,
    check_golden: bool = False,
    files: Any = None,
    hf32: str = AUTO,
    narrow_sums: bool = False,
    attributes: Any = None,
    also: str | Path | None = None,
    work: SharedWork = ONE_AFTER_ANOTHER,
) -> Comparison:
    """Compares a target with a golden, or with the float64 reference of its own inputs.

    target: a case file, a folder of case files, a dump of msprobe (paths), an array, or arrays by name. Of a dump every
    call of ours is judged, in order of execution.
    golden: the same kinds; without it the golden is computed, which needs a case or `op` and `arguments`.
    dtype: the row of the standard (float16, bfloat16, float32, hf32); also what bare bytes are.
    standard: mixed (the default), mere-mare, thousandth, close, cosine, binary, sound (that of dumps), two-baselines.
    shape: of bare bytes. hints: whether to find out why a wrong result is wrong.
    only: the outputs to compare. Without it all are that the call asks for, and one that is missing fails.
    check_golden: whether a golden that the target agrees with is itself held against the reference, which costs time.
    files: of a dump of kernels, which file is which argument ({"input.0": "gradOutput"}), or a JSON file of it.
    rtol, atol, cap: in place of those of mixed, one number or numbers by the names of outputs.
    Of dumps alone: hf32 ("auto": where float32 does not explain a convolution, "yes", "no"), narrow_sums (whether
    convolutions of 16 bits may store partial sums in 16 bits), attributes (what a dump does not say of modules, by
    name, or a file of it), also (a third party's dump), work (processes, shards, progress).
    """
    row, element = _row(dtype)
    own, folders = Tolerances(rtol, atol, cap), _dumps(target, golden, op)
    chosen = _standard(standard, own, also, bool(folders))
    asked = Asked(chosen, row, hints, own, check_golden)
    if folders:
        said = attributes_from(attributes)
        asked = replace(asked, hf32=_one_of(hf32), attributes=said, narrow_sums=narrow_sums)
        return compare_dumps(Path(target), folders, asked, work, None if also is None else Path(also))
    maps = maps_from(files, op, arguments or {})
    hand = Hand(op, arguments or {}, product, element, None if shape is None else tuple(shape), maps)
    return Comparison(chosen, _compared(subjects(target, golden, hand), only, asked))


def _standard(name: str | None, own: Tolerances, also: Any, is_dump: bool) -> Standard:
    """The standard that was named, or the one that goes with what there is to judge."""
    chosen = standards.find(name or ("sound" if is_dump and not own.any_given else "mixed"))
    own.refuse_others(chosen)
    if also is not None and not is_dump:
        raise invalid(f"also is {also}; a third party's result stands beside a dump alone.", "also")
    if chosen.name == TWO_BASELINES and also is None:
        raise invalid(f"{TWO_BASELINES} needs a third party's dump beside the target's: name it with also.", "also")
    return chosen


def _compared(found: Iterator[Subject], only: Sequence[str] | None, asked: Asked) -> list[OutputReport]:
    reports: list[OutputReport] = []
    for subject in found:
        try:
            with np.errstate(all="ignore"):  # a file may hold anything; a signalling NaN is a result, no warning
                reports += _compare_subject(_narrowed(subject, only), asked)
        except Exception as error:  # one case that breaks must not take the others with it
            if not subject.of_many:
                raise
            reports.append(_refused(subject, ours(error)))
    return reports


def _dumps(target: Any, golden: Any, op: str | None) -> list[Path]:
    """The dumps that a target stands for."""
    if not isinstance(target, (str, Path)) or op is not None:
        return []
    found = find(Path(target))
    if found and golden is not None:
        raise invalid(
            f"{target} is a dump and judged from its own inputs; another dump goes beside it as also.", "golden"
        )
    return found


def _one_of(hf32: str) -> str:
    if hf32 not in (AUTO, YES, NO):
        raise invalid(f"hf32 is {hf32!r}; it must be {AUTO}, {YES} or {NO}.", "hf32")
    return hf32


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


def _compare_subject(subject: Subject, asked: Asked) -> list[OutputReport]:
    """The outputs of a subject. What agrees with the golden that was given needs no reference: that costs more."""
    if subject.error is not None:
        return [_refused(subject, subject.error)]
    if subject.goldens is not None and subject.case is not None and not asked.check_golden:
        reports = _judged(subject, asked, {})
        if all(r.measured is not None and r.status == PASS and r.sound for r in reports):
            return [*reports, *(_unasked(subject, name) for name in subject.unasked)]
    reports = _judged(subject, asked, _expected(subject))
    reports += [_unasked(subject, name) for name in subject.unasked]
    return [r for r in reports if r.why is not None or r.measured is not None]


def _judged(subject: Subject, asked: Asked, expected: Mapping[str, Truth]) -> list[OutputReport]:
    reports, pairs = [], {}
    for name, target in subject.targets.items():
        report = OutputReport(subject.name, name, SKIPPED, operator=subject.case.op.name if subject.case else None)
        reports.append(report)
        pair = _pair(subject, name, target, expected, report)
        if pair is not None:
            pairs[name] = pair
            judge_output(report, pair, asked, subject.case)
    if asked.hints and subject.case is not None and expected:
        explain_outputs(subject.case, reports, pairs)
    return reports


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
) -> TargetPair | None:
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
    return TargetPair(target, containers.known_dtype(target, name), golden, expected.get(name), boundary)


def _unasked(subject: Subject, name: str) -> OutputReport:
    why = Text("the call does not ask for it", "调用未要求计算该输出")
    return OutputReport(subject.name, name, SKIPPED, why, subject.case.op.name if subject.case else None)
