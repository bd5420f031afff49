"""What a hypothesis is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aclnn.base.dtype import INT64, DType, promote
from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text

Arguments = dict[str, Any]
Before = Callable[[LoadedCase, Arguments], Arguments]
After = Callable[[LoadedCase, str, Array], Array]


def as_given(case: LoadedCase, arguments: Arguments) -> Arguments:
    return arguments


def as_computed(case: LoadedCase, output: str, values: Array) -> Array:
    return values


def any_output(case: LoadedCase, output: str) -> bool:
    return True


@dataclass(frozen=True)
class Hypothesis:
    """One way to be wrong. `before` changes the arguments of the reference, `after` an output, by its report name.

    `unit` is that of coarser arithmetic. The order of its roundings is not known, so the target need only be within
    what they can do.
    """

    key: str
    says: Text
    proof: Text  # what comes before "… % is in tolerance"
    before: Before = as_given
    after: After = as_computed
    unit: float | None = None
    explains: Callable[[LoadedCase, str], bool] = any_output  # whether an output has what this speaks of


def computed_as(case: LoadedCase) -> DType:
    """The type that the tensors of a case are promoted to."""
    return promote({s.dtype for a in case.op.inputs for s in case.call.specs(a.name)} - {INT64})


def setting(name: str, value: Any) -> Before:
    """One argument replaced."""
    return lambda case, arguments: {**arguments, name: value}
