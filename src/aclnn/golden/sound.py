"""Our own judgement of a result: is every element within what rounding can explain?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aclnn.base.dtype import FLOAT32, FLOAT64, INT64
from aclnn.base.geometry import Array
from aclnn.base.tolerance import Precision, error_ratio
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


def judge(op: Op, call: Call, arrays: Mapping[str, Any]) -> list[Judged]:
    """Judges the outputs among `arrays` (by vendor name) against the float64 reference of its inputs.

    Inputs must be as they were before the call: an in-place caller passes copies.
    """
    judged = []
    for arg, golden, terms in zip(op.outputs, exact(op, call, arrays), sums(op, call, arrays), strict=True):
        result = arrays[arg.name]
        if result is None or golden is None or not arg.takes_part(call):
            continue
        precision = precision_of(op, arg, call)
        if arg.kind == "tensor_list":
            each = zip(result, golden, terms, strict=True)
            judged += [Judged(f"{arg.name}[{i}]", error_ratio(r, g, t, precision)) for i, (r, g, t) in enumerate(each)]
        else:
            judged.append(Judged(arg.name, error_ratio(result, golden, terms, precision)))
    return judged


def precision_of(op: Op, arg: Arg, call: Call) -> Precision:
    """What an output is computed in (float64 only if all tensors are) and rounded to."""
    floats = {s.dtype for a in op.inputs for s in call.specs(a.name)} - {INT64}
    compute = FLOAT64 if floats == {FLOAT64} else FLOAT32
    through = call.specs(arg.round_through)[0].dtype if arg.round_through else call.specs(arg.name)[0].dtype
    return Precision(compute, tuple(dict.fromkeys((through, call.specs(arg.name)[0].dtype))))
