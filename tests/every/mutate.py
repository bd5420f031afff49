"""Calls that break one rule each, found by mutating valid ones.

A mutated case is kept for a rule only if that rule is the first one it breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from aclnn.base.device import DEVICES
from aclnn.base.dtype import (
    BFLOAT16,
    FLOAT8_E4M3FN,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    HIFLOAT8,
    INT32,
    INT64,
)
from aclnn.base.format import Format
from aclnn.base.scalar import Scalar, scalar
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.cases import Case
from aclnn.contract.check import check
from aclnn.contract.model import BY_VALUE, Arg
from aclnn.contract.rule import Rule
from aclnn.contract.stage import Stage

_DTYPES = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT32, INT64, FLOAT8_E4M3FN, HIFLOAT8)


def failing_cases(bases: Iterable[Case]) -> dict[Rule, Case]:
    """For each rule of the operator a case whose first broken rule it is; a rule that is missing was not reached."""
    bases = list(bases)
    wanted = {rule for rule in bases[0].op.all_rules if rule.stage is not Stage.VALUE}
    found: dict[Rule, Case] = {}
    for mutant in chain(_mutants(bases), _double_mutants(bases)):
        violation = check(mutant.op, mutant.call)
        if violation is not None:
            found.setdefault(violation.rule, mutant)
        if len(found) == len(wanted):
            break
    return found


def _mutants(bases: Iterable[Case]) -> Iterator[Case]:
    for base in bases:
        yield from (base.but(note, **{name: value}) for name, note, value in _changes(base))
        yield from (replace(base, device=p, note=f"product {p}") for p in DEVICES)


def _double_mutants(bases: Iterable[Case]) -> Iterator[Case]:
    """A change of dtype, rank, format or length often needs a second one to get past an earlier rule."""
    for base in bases:
        first = [
            c for c in _changes(base) if any(word in c[1] for word in ("dtype", "rank", "format", "size", "attribute"))
        ]
        for name, note, value in first:
            once = base.but(note, **{name: value})
            if check(once.op, once.call) is None:
                yield from _mutants([once])


def _changes(case: Case) -> Iterator[tuple[str, str, Any]]:
    """(argument, what was done, new value) for every small change to one argument."""
    for arg in case.op.args:
        value = case.values[arg.name]
        if value is None:
            continue
        if arg.kind not in BY_VALUE:
            yield arg.name, f"{arg.name} null", None
        for note, changed in _changes_of(arg, value):
            yield arg.name, f"{arg.name} {note}", changed


def _changes_of(arg: Arg, value: Any) -> Iterator[tuple[str, Any]]:
    if arg.kind == "tensor":
        yield from _changed_tensor(value)
    elif arg.kind == "tensor_list":
        yield from _changed_list(value)
    elif arg.kind == "scalar":
        yield from _changed_scalar(value)
    elif arg.kind == "bool":
        yield "attribute flipped", not value
    elif arg.kind in ("int_array", "bool_array"):
        yield from _changed_array(value)
    else:
        yield from ((f"attribute {v}", v) for v in (-1, 0, 1, 2, 3, 4, 7, 256, 65536) if v != value)


def _changed_tensor(spec: TensorSpec) -> Iterator[tuple[str, TensorSpec]]:
    for dtype in _DTYPES:
        yield f"dtype {dtype}", spec._replace(dtype=dtype)
    for tag in (Format.ND, Format.NCHW, Format.NHWC, Format.NCL, Format.NCDHW, Format.NC):
        yield f"format {tag}", spec._replace(format=tag)
    yield "rank + 1", dense(spec.dtype, (*spec.shape, 1), spec.format)
    yield "rank 9", dense(spec.dtype, (*spec.shape, *[1] * 9)[:9], spec.format)
    if spec.rank:
        yield "rank - 1", dense(spec.dtype, spec.shape[:-1], spec.format)
    for axis, size in enumerate(spec.shape):
        for other in (size + 1, size - 1, 0):
            if other >= 0:
                shape = (*spec.shape[:axis], other, *spec.shape[axis + 1 :])
                yield f"size {other} on axis {axis}", dense(spec.dtype, shape, spec.format)
    if spec.size > 1:
        yield "view outside the storage", spec._replace(offset=spec.offset + spec.size, storage=spec.size)
        yield "view with stride 0", spec._replace(strides=(0,) * spec.rank)


def _changed_list(specs: tuple[TensorSpec, ...]) -> Iterator[tuple[str, Any]]:
    yield "length - 1", specs[:-1]
    yield "length + 1", (*specs, *specs[:1])
    for i, spec in enumerate(specs):
        yield f"[{i}] null", (*specs[:i], None, *specs[i + 1 :])
        for note, changed in _changed_tensor(spec):
            yield f"[{i}] {note}", (*specs[:i], changed, *specs[i + 1 :])


def _changed_scalar(value: Scalar) -> Iterator[tuple[str, Scalar]]:
    yield "dtype complex", scalar(1j)
    yield from ((f"attribute {v}", scalar(v)) for v in (-1.0, 0.0, 2.0))


def _changed_array(values: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield "length - 1", values[:-1]
    yield "length + 1", (*values, *values[:1])
    for i, value in enumerate(values):
        others = (not value,) if isinstance(value, bool) else (-1, 0, value + 1, 64, 256, 1_000_001)
        for other in others:
            yield f"attribute [{i}] = {other}", (*values[:i], other, *values[i + 1 :])
