"""WHAT the operators are: one file per family = contract + reference mathematics + interesting cases.

Every operator `aclnnXyz` of a family file has, by name: the contract `xyz`, its float64 reference
`xyz_reference(**arguments)`, the sums behind each output `xyz_terms(**arguments)` (what rounding may do to it), a
maker of valid cases `xyz_case(**sizes)`, and the interesting ones `xyz_cases()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any

from aclnn.base.once import once
from aclnn.base.status import invalid
from aclnn.contract.cases import Case
from aclnn.contract.model import Op

# The order of tables and documents. A family has a second file where its two directions would not fit into one.
FAMILIES = ("elu", "convolution", "convolution_forward", "conv_tbc", "lstm", "lstm_forward", "lstm_cell")


@once
def _homes() -> dict[str, tuple[Op, ModuleType]]:
    """Every operator by vendor name, with the module it lives in."""
    modules = [import_module(f"aclnn.ops.{family}") for family in FAMILIES]
    return {v.name: (v, m) for m in modules for v in vars(m).values() if isinstance(v, Op)}


def all_ops() -> tuple[Op, ...]:
    return tuple(op for op, _ in _homes().values())


def find(name: str) -> Op:
    """An operator by vendor name or Python name, in any case."""
    for op in all_ops():
        if name.lower() in (op.name.lower(), op.python):
            return op
    known = [n for op in all_ops() for n in (op.name, op.python)]
    meant = get_close_matches(name, known, n=1, cutoff=0.8)
    hint = f"did you mean {meant[0]}? There are" if meant else "choose one of"
    raise invalid(f"there is no operator {name!r}; {hint} {', '.join(o.name for o in all_ops())}.")


def family_of(op: Op) -> str:
    """The file name an operator has in ops/ and kernels/."""
    return _homes()[op.name][1].__name__.rpartition(".")[2]


def reference(op: Op) -> Callable[..., Any]:
    return _part(op, "reference")


def terms(op: Op) -> Callable[..., Any]:
    return _part(op, "terms")


def case_maker(op: Op) -> Callable[..., Case]:
    return _part(op, "case")


def cases(op: Op) -> Iterator[Case]:
    """Valid cases that together reach every attribute and every corner."""
    found: Iterator[Case] = _part(op, "cases")()
    return found


def _part(op: Op, what: str) -> Callable[..., Any]:
    part: Callable[..., Any] = getattr(_homes()[op.name][1], f"{op.python}_{what}")
    return part
