"""The gradients of a module's parameters: the sum over all its calls in a step."""

from __future__ import annotations

from typing import Any

from aclnn.golden.read.msprobe import convolution, lstm
from aclnn.golden.read.msprobe.arguments import PreparedCall, Recurrence, result
from aclnn.golden.read.msprobe.calls import Unit, Unjudged
from aclnn.golden.read.msprobe.dump import Recorded


def refuse_accumulation(unit: Unit) -> None:
    """Gradients that were collected over several passes belong to no call alone."""
    stem = unit.name.rpartition(".")[0]
    count = sum(name.startswith(f"{stem}.") for name in unit.call.dump.entries)
    if count > 1:
        raise Unjudged(
            f"gradients are accumulated: the dump has {count} of them for the calls of this module",
            f"梯度累积：dump中该模块的各次调用共有{count}份参数梯度",
        )
    if not unit.siblings:
        raise Unjudged("no backward of its module is in the dump", "dump中没有该模块的反向")


def gradient(unit: Unit, name: str) -> Any:
    """The one tensor that stands for a parameter."""
    entry = unit.call.dump.entries[unit.name]
    found = entry.get(name) if isinstance(entry, dict) else None
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def parameters_of_convolution(unit: Unit, attributes: dict[str, Any]) -> PreparedCall:
    refuse_accumulation(unit)
    parts = tuple(_part(convolution.of(call, attributes)) for call in unit.siblings)
    first = parts[0]
    made = PreparedCall(first.op, first.given, {}, tuple(t for p in parts for t in p.inputs), notes=first.notes)
    made.behind = parts
    parameters = unit.siblings[0].parameters()
    for name, parameter in (("gradWeight", "weight"), ("gradBias", "bias")):
        said = gradient(unit, parameter)
        if parameter in parameters and (said is not None or parameters[parameter].requires_grad):
            made.targets[name] = result(unit.call, said, name, made)
    return made


def _part(found: convolution.Geometry) -> PreparedCall:
    """What one call adds to the gradients of the parameters."""
    given = found.of_backward(mask=(False, True, found.bias is not None))
    return PreparedCall("aclnnConvolutionBackward", given, {}, (found.gradient(), found.x))


def parameters_of_lstm(unit: Unit, readings: list[lstm.Reading]) -> PreparedCall:
    refuse_accumulation(unit)
    parts = []
    for reading in readings:
        behind = lstm.recurrence(reading, lstm.SequenceLayout(reading), True)
        inputs = tuple(g for g in reading.call.grad_results() if isinstance(g, Recorded))
        parts.append(PreparedCall("aclnnLstmBackward", {}, {}, inputs, behind=behind))
    first = parts[0].behind
    assert isinstance(first, Recurrence)
    made = PreparedCall("aclnnLstmBackward", lstm.with_states(first), {}, tuple(t for p in parts for t in p.inputs))
    made.behind = tuple(parts)
    names = [n for one in lstm.parameters(readings[0].call) for n in one]
    stored = readings[0].call.parameters()
    for i, name in enumerate(names):
        said = gradient(unit, name)
        if said is not None or stored[name].requires_grad:
            made.targets[f"dparamsOut[{i}]"] = result(unit.call, said, f"dparamsOut[{i}]", made)
    return made
