"""WHAT the operators are: one file per family = contract + reference mathematics + interesting cases.

`OPERATORS`, at the end of a family file, names the parts of each of its operators (definition.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from aclnn.base.run_once import once
from aclnn.base.status import invalid
from aclnn.contract.cases import Case
from aclnn.contract.model import Op
from aclnn.ops.definition import Definition

# Every family with its files, in the order of tables and documents. A second file where two directions would not fit.
FAMILIES = {
    "elu": ("elu",),
    "convolution": ("convolution", "convolution_forward"),
    "conv_tbc": ("conv_tbc",),
    "lstm": ("lstm", "lstm_forward"),
    "lstm_cell": ("lstm_cell",),
}


@once
def _definitions() -> dict[str, tuple[Definition, str]]:
    """The parts of every operator by vendor name, with its family."""
    homes = ((family, file) for family, files in FAMILIES.items() for file in files)
    return {
        definition.op.name: (definition, family)
        for family, file in homes
        for definition in import_module(f"aclnn.ops.{file}").OPERATORS
    }


def all_ops() -> tuple[Op, ...]:
    return tuple(definition.op for definition, _ in _definitions().values())


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
    return _definitions()[op.name][1]


def reference(op: Op) -> Callable[..., Any]:
    return _definitions()[op.name][0].reference


def terms(op: Op) -> Callable[..., Any]:
    return _definitions()[op.name][0].terms


def case_maker(op: Op) -> Callable[..., Case]:
    return _definitions()[op.name][0].case


def cases(op: Op) -> Iterator[Case]:
    """Valid cases that together reach every attribute and every corner."""
    return _definitions()[op.name][0].cases()
