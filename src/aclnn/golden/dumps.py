"""A training step that was dumped: every call of ours in it judged from its own inputs, in order of execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from aclnn import ops
from aclnn.base.dtype import FLOAT32, DType
from aclnn.base.rounding import USE_HF32
from aclnn.base.status import AclnnError, ours, reason
from aclnn.golden.judge.blocks import TargetPair
from aclnn.golden.judge.expected import bound_case, expected, stored_as
from aclnn.golden.judge.sound import Truth
from aclnn.golden.outputs import NO, YES, Asked, explain_outputs, judge_output
from aclnn.golden.read import containers
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.read.msprobe import convolution, elu, lstm, shared
from aclnn.golden.read.msprobe.arguments import NARROW, PreparedCall, Recurrence
from aclnn.golden.read.msprobe.attributes import attributes_beside
from aclnn.golden.read.msprobe.calls import FORWARD, PARAMETERS, RecordedCall, Unit, Unjudged, units
from aclnn.golden.read.msprobe.dump import Dump, Recorded
from aclnn.golden.result import ERROR, SKIPPED, OutputReport
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses import stored


@dataclass
class Judgement:
    """What was found about one unit, and the tensors by which it hangs together with others."""

    unit: str
    reports: list[OutputReport]
    inputs: tuple[Recorded, ...] = ()
    outputs: Mapping[str, Recorded] = field(default_factory=dict)


class Judge:
    """Judges the units of one dump; what it learns of a call once it keeps."""

    def __init__(self, dump: Dump, asked: Asked):
        self.dump, self.asked = dump, asked
        self.units = units(dump)
        self.narrow = _autocast(self.units)
        self.attributes = {**attributes_beside(dump.folder), **asked.attributes}
        self._readings: dict[str, tuple[lstm.Reading, bool]] = {}

    def judge(self, unit: Unit) -> Judgement:
        try:
            with np.errstate(all="ignore"):
                found = self._judged(unit)
        except Unjudged as answer:
            found = Judgement(unit.name, [OutputReport(unit.name, "", SKIPPED, answer.why)])
        except Exception as error:  # one call that breaks must not take the others with it
            found = Judgement(unit.name, [_broken(unit.name, ours(error))])
        place = unit.place
        for report in found.reports:
            report.order, report.kind = unit.order, f"{unit.call.kind} {unit.direction}"
            report.line, report.code_line = (str(place), place.code) if place else ("", "")
        return found

    def _judged(self, unit: Unit) -> Judgement:
        prepared = self._understood(unit)
        found = self.measured(unit.name, prepared)
        if self.asked.hints:
            found.explain()
        return Judgement(unit.name, found.reports, prepared.inputs, prepared.outputs)

    def _understood(self, unit: Unit) -> PreparedCall:
        """An entry that others wrote may hold anything; what makes no sense is a reason, no failure of ours."""
        try:
            return self._prepared(unit)
        except (Unjudged, AclnnError, MemoryError):
            raise
        except Exception as error:
            said = reason(error)
            raise Unjudged(f"its entry cannot be understood: {said}", f"无法理解该条目：{said}") from None

    def _prepared(self, unit: Unit) -> PreparedCall:
        attributes = dict(self.said_of(unit.call))
        if unit.call.kind.lower().endswith("elu"):
            return elu.prepared(unit, attributes)
        if not unit.call.kind.startswith("LSTM"):
            make = shared.parameters_of_convolution if unit.direction == PARAMETERS else convolution.prepared
            return make(unit, attributes)
        if unit.direction == FORWARD:
            reading, right = self.reading(unit.call)
            prepared = lstm.forward(reading)
            if not right and prepared.doubt is not None and "dropout" not in attributes:
                self._refuse_doubt(prepared)
            return prepared
        if unit.direction == PARAMETERS:
            return shared.parameters_of_lstm(unit, [self._right_reading(call) for call in unit.siblings])
        return lstm.backward(self._right_reading(unit.call))

    def said_of(self, call: RecordedCall) -> Mapping[str, Any]:
        """What the attributes file says of a module: by its name, with or without what wrappers put before it."""
        if not call.is_module:
            return {}
        path = call.module.removeprefix("Module.").rpartition(".")[0]
        names = path.split(".")
        found = (self.attributes.get(".".join(names[i:])) for i in range(len(names)))
        return next((said for said in found if said is not None), {})

    def reading(self, call: RecordedCall) -> tuple[lstm.Reading, bool]:
        """How a call of an LSTM is to be read, and whether its forward is right so."""
        if call.name not in self._readings:
            self._readings[call.name] = self._read(lstm.readings(call, self.said_of(call), self.narrow))
        return self._readings[call.name]

    def _read(self, candidates: list[lstm.Reading]) -> tuple[lstm.Reading, bool]:
        for reading in candidates:
            if _all_sound(self.measured(reading.call.name, lstm.forward(reading)).reports):
                return reading, True
        if len({reading.batch_first for reading in candidates}) > 1:
            raise Unjudged(
                "whether its batch is the first axis is not in the dump, and neither way reproduces its forward",
                "dump没有说明batch是否为第一维，且两种方式都不能重现其正向",
            )
        return candidates[0], False

    def _right_reading(self, call: RecordedCall) -> lstm.Reading:
        reading, right = self.reading(call)
        if not right:
            raise Unjudged(
                "its gradients were made from states that are not in the dump, and its forward is not reproduced",
                "其梯度由dump中没有的中间状态算出，而其正向无法重现",
            )
        return reading

    def _refuse_doubt(self, prepared: PreparedCall) -> None:
        """The first layer is before any dropout: if that is right, dropout explains the rest."""
        behind = prepared.behind
        assert isinstance(behind, Recurrence)
        op = ops.find(prepared.op)
        truth = expected(bound_case(op, prepared), prepared)["hy"]
        target = prepared.targets.get("hy")
        if prepared.doubt is None or target is None or target.shape != truth.exact.shape:
            return
        first = stored_as(truth, containers.known_dtype(target, "hy")).ratio(target)[: behind.directions]
        if bool((first <= 1).all()):
            raise Unjudged(prepared.doubt.en, prepared.doubt.zh)

    def measured(self, name: str, prepared: PreparedCall) -> _Measured:
        """The outputs, read the other way if there is one and it explains them alone."""
        found = self._in_either_precision(name, prepared)
        if self.asked.narrow_sums:
            self._allow_narrow_sums(found)
        if prepared.other is None or _all_sound(found.reports):
            return found
        other = self._in_either_precision(name, prepared.other)
        return other if _all_sound(other.reports) else found

    def _in_either_precision(self, name: str, prepared: PreparedCall) -> _Measured:
        """The outputs judged as float32, or where that does not explain them as HF32."""
        op = ops.find(prepared.op)
        may = "cubeMathType" in op.by_name and self.asked.hf32 != NO and _is_float32(prepared)
        if may and self.asked.hf32 == YES:
            return self._measured(name, prepared, {"cubeMathType": USE_HF32})
        found = self._measured(name, prepared, {})
        if not may or _all_sound(found.reports):
            return found
        other = self._measured(name, prepared, {"cubeMathType": USE_HF32})
        if not _all_sound(other.reports):
            return found
        said = Text("right as HF32, not as float32", "按HF32正确，按float32不正确")
        for report in other.reports:
            report.notes += (said,)
        return other

    def _allow_narrow_sums(self, found: _Measured) -> None:
        """Judges wrong outputs of 16 bits again, beside what partial sums of 16 bits make: to the same bound."""
        for n, report in enumerate(found.reports):
            pair = found.pairs.get(report.output)
            made = stored.made(found.case, report.output) if report.sound is False else None
            if made is None or pair is None or pair.truth is None:
                continue
            other = replace(report, notes=found.prepared.notes, places=(), slice=None)
            beside = replace(pair, truth=pair.truth._replace(exact=made.values))
            judge_output(other, beside, self.asked, found.case, _narrow_row(beside))
            if other.sound:
                en = f"right as sums of {made.dtype}, added up {made.between.en}, not as sums of float32"
                zh = f"按{made.dtype}{made.between.zh}累加正确，按float32累加不正确"
                other.notes += (Text(en, zh),)
                found.reports[n] = other

    def _measured(self, name: str, prepared: PreparedCall, changed: Mapping[str, Any]) -> _Measured:
        case = bound_case(ops.find(prepared.op), prepared, changed)
        truths = expected(case, prepared)
        found = _Measured(case, prepared)
        for output, target in prepared.targets.items():
            report = OutputReport(name, output, SKIPPED, operator=prepared.op)
            if output in prepared.absent or target is None:
                report.why = prepared.absent.get(output)
            else:
                pair = _pair(output, target, truths)
                found.pairs[output] = pair
                judge_output(report, pair, self.asked, case, _narrow_row(pair))
                report.notes += prepared.notes
            if report.why is not None or report.measured is not None:
                found.reports.append(report)
        return found


@dataclass
class _Measured:
    case: LoadedCase
    prepared: PreparedCall
    reports: list[OutputReport] = field(default_factory=list)
    pairs: dict[str, TargetPair] = field(default_factory=dict)

    def explain(self) -> None:
        """Why what is wrong is wrong; a sum of several calls has no cause of its own."""
        behind = self.prepared.behind
        if not isinstance(behind, tuple) or len(behind) == 1:
            explain_outputs(self.case, self.reports, self.pairs)


def _pair(output: str, target: Any, truths: Mapping[str, Truth]) -> TargetPair:
    truth = truths[output]
    dtype = containers.known_dtype(target, output)
    if target.shape != truth.exact.shape:
        shapes = f"{list(target.shape)} but must have {list(truth.exact.shape)}"
        raise Unjudged(
            f"{output} has shape {shapes}", f"{output}的形状为{list(target.shape)}，应为{list(truth.exact.shape)}"
        )
    return TargetPair(target, dtype, None, stored_as(truth, dtype))


def _narrow_row(pair: TargetPair) -> str | None:
    """The row of what a result was computed in, where autocast widened it again."""
    roundings = pair.truth.precision.roundings if pair.truth is not None else ()
    narrow = [d.name for d in roundings if d in NARROW and d is not pair.dtype]
    return narrow[0] if narrow else None


def _broken(name: str, error: AclnnError) -> OutputReport:
    """What our contract refuses is not judged; what is our own failure is an error."""
    status = SKIPPED if 161000 <= error.code < 162000 else ERROR
    return OutputReport(
        name, "", status, Text(error.message, error.message_zh), code=0 if status == SKIPPED else error.code
    )


def _all_sound(reports: list[OutputReport]) -> bool:
    judged = [r for r in reports if r.measured is not None]
    return bool(judged) and all(r.sound is not False for r in judged)


def _is_float32(prepared: PreparedCall) -> bool:
    arrays = [v for v in prepared.given.values() if isinstance(v, np.ndarray)]
    return all(a.dtype == FLOAT32.numpy for a in arrays)


def _autocast(found: list[Unit]) -> DType | None:
    """What autocast computes in, if any call shows that it was on: narrow results of float32 parameters."""
    for unit in found:
        call = unit.call
        if call.forward is None:
            continue
        outputs = {r.dtype for r in call.results() if isinstance(r, Recorded)} & set(NARROW)
        listed = [*call.arguments()[0], *call.parameters().values()]
        if outputs and any(isinstance(r, Recorded) and r.dtype is FLOAT32 for r in listed):
            return outputs.pop()
    return None
