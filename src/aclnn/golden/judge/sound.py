"""Our own judgement of a result: is every element within what rounding can explain?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32, FLOAT64, INT64
from aclnn.base.geometry import Array
from aclnn.base.tolerance import Precision, Terms, error_ratio
from aclnn.contract.call import Call
from aclnn.contract.model import Arg, Op
from aclnn.runtime.reference import exact, sums

Box = tuple[slice, ...]


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

    def rounded(self, where: Box = ()) -> Array:
        """The exact values (of a block) as a right result has them."""
        values = np.asarray(self.exact[where])
        with np.errstate(all="ignore"):
            for dtype in self.precision.roundings:
                values = values.astype(dtype.numpy)
        return values

    def ratio(self, result: Array, where: Box = ()) -> Array:
        """The error of a result (of a block of it) in units of the allowed one."""
        terms = self.terms._replace(total=np.broadcast_to(self.terms.total, self.exact.shape)[where])
        return error_ratio(result, self.exact[where], terms, self.precision)


def judge(op: Op, call: Call, arrays: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> list[Judged]:
    """Judges the outputs among `arrays` (by vendor name) against the float64 reference of its inputs.

    Inputs must be as they were before the call: an in-place caller passes copies, as `given` if need be.
    """
    return [
        Judged(truth.name, truth.ratio(result))
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
    return assembled(op, call, arrays, exact(op, call, inputs), sums(op, call, inputs))


def assembled(
    op: Op, call: Call, arrays: Mapping[str, Any], exact: tuple[Any, ...], sums: tuple[Any, ...]
) -> Iterator[tuple[Truth, Any]]:
    """The results of a reference, and the sums behind them, output by output."""
    for arg, golden, terms in zip(op.outputs, exact, sums, strict=True):
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
