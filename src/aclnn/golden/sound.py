"""Our own judgement of a result: is every element within what rounding can explain?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aclnn.base.dtype import FLOAT32, FLOAT64, INT64
from aclnn.base.geometry import Array
from aclnn.base.tolerance import Precision, Terms, error_ratio
from aclnn.contract.call import Call
from aclnn.contract.model import Arg, Op
from aclnn.runtime.reference import exact, sums


class Judged(NamedTuple):
    """One output: |result − exact| in units of the allowed error, element by element."""

    name: str
    ratio: Array

    @property
    def worst(self) -> float:
        return float(self.ratio.max()) if self.ratio.size else 0.0

    @property
    def sound(self) -> bool:
        return self.worst <= 1


class Truth(NamedTuple):
    """What one output must be: its exact values, the sums behind them, and what it is computed and rounded in."""

    name: str
    arg: Arg
    exact: Array
    terms: Terms
    precision: Precision


def judge(op: Op, call: Call, arrays: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> list[Judged]:
    """Judges the outputs among `arrays` (by vendor name) against the float64 reference of its inputs.

    Inputs must be as they were before the call: an in-place caller passes copies, as `given` if need be.
    """
    return [
        Judged(truth.name, error_ratio(result, truth.exact, truth.terms, truth.precision))
        for truth, result in truths(op, call, arrays, given)
        if result is not None
    ]


def truths(
    op: Op, call: Call, arrays: Mapping[str, Any], given: Mapping[str, Any] | None = None
) -> Iterator[tuple[Truth, Any]]:
    """What every output that takes part must be, with what it is (None where it is not there).

    `given` are the inputs, where they are no longer what they were in `arrays`.
    """
    inputs = arrays if given is None else given
    for arg, golden, terms in zip(op.outputs, exact(op, call, inputs), sums(op, call, inputs), strict=True):
        if golden is None or call[arg.name] is None or not arg.takes_part(call):
            continue
        precision, result = precision_of(op, arg, call), arrays[arg.name]
        if arg.kind == "tensor_list":
            for i, (g, t) in enumerate(zip(golden, terms, strict=True)):
                yield Truth(f"{arg.name}[{i}]", arg, g, t, precision), None if result is None else result[i]
        else:
            yield Truth(arg.name, arg, golden, terms, precision), result


def precision_of(op: Op, arg: Arg, call: Call) -> Precision:
    """What an output is computed in (float64 only if all tensors are) and rounded to."""
    floats = {s.dtype for a in op.inputs for s in call.specs(a.name)} - {INT64}
    compute = FLOAT64 if floats == {FLOAT64} else FLOAT32
    through = call.specs(arg.round_through)[0].dtype if arg.round_through else call.specs(arg.name)[0].dtype
    return Precision(compute, tuple(dict.fromkeys((through, call.specs(arg.name)[0].dtype))))
