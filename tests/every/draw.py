"""Valid calls of any operator, drawn from the signature of its case maker, so that a new family is drawn too.

Every parameter is drawn by its annotation; what the contract refuses, or is too large to be quick, is drawn again.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from random import Random
from typing import Any

from aclnn import ops
from aclnn.base.device import CPU, DEFAULT
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from aclnn.base.tensor import TensorSpec
from aclnn.contract.cases import Case
from aclnn.contract.check import check
from aclnn.contract.model import Op

MOST_ELEMENTS = 20_000  # of all tensors of a call: a hundred calls take a second
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 32, 33)
SMALL = (0, 1, 2, 3)  # of attributes: their default is 0 or 1, and most have to stay small
OF_KIND = {
    "bool": lambda rng, default: rng.random() < 0.5,
    "float": lambda rng, default: rng.choice((default, rng.uniform(-2, 2))),
    "int": lambda rng, default: rng.choice((default, default, *(SIZES if default > 1 else SMALL))),
    "tuple[int, ...]": lambda rng, default: tuple(rng.choice(SIZES) for _ in range(rng.randint(0, 4))),
    "tuple[bool, ...]": lambda rng, default: tuple(rng.random() < 0.7 for _ in default),
    "DType": lambda rng, default: rng.choice((FLOAT32, FLOAT32, FLOAT16, BFLOAT16, FLOAT64)),
    "Device": lambda rng, default: rng.choice((DEFAULT, CPU)),
}


def drawn(op: Op, seed: int, how_many: int, broadcast: bool = True) -> Iterator[Case]:
    """So many valid calls, the same ones for the same seed."""
    rng = Random(f"{op.name} {seed}")
    return (one(op, rng, broadcast) for _ in range(how_many))


def one(op: Op, rng: Random, broadcast: bool = True) -> Case:
    """A valid call, half of the time with tensors laid out otherwise, with `broadcast` also over themselves."""
    for _ in range(5000):
        case = _attempt(op, rng, broadcast)
        if case is not None:
            return case
    raise AssertionError(f"{op.name}: hardly a drawn call is valid")


def _attempt(op: Op, rng: Random, broadcast: bool) -> Case | None:
    maker = ops.case_maker(op)
    sizes: dict[str, Any] = {}
    for parameter in inspect.signature(maker).parameters.values():
        sizes[parameter.name] = _value(parameter, rng, sizes.get("nd", 0))
    if rng.random() < 0.3:
        sizes |= _belonging_together(sizes, rng)
    try:
        case = maker(**sizes)
    except (ValueError, IndexError, ZeroDivisionError):
        return None
    if _too_large(case) or check(op, case.call) is not None:
        return None
    if rng.random() < 0.5:
        case = strided(case, rng, broadcast)
    return case if check(op, case.call) is None else None


def _value(parameter: inspect.Parameter, rng: Random, axes: int) -> Any:
    """One value by its annotation; where each axis may have its own, sometimes so many of them."""
    kind = parameter.annotation.removesuffix(" | tuple[int, ...]")
    if kind not in OF_KIND:
        return parameter.default
    if kind != parameter.annotation and 0 < axes < 4 and rng.random() < 0.3:
        return tuple(OF_KIND[kind](rng, parameter.default) for _ in range(axes))
    return OF_KIND[kind](rng, parameter.default)


def _belonging_together(sizes: dict[str, Any], rng: Random) -> dict[str, Any]:
    """What independent draws would hardly ever meet: groups that divide the channels, lengths of the sequences."""
    if "groups" in sizes:
        return dict.fromkeys(("groups", "in_channels", "out_channels"), rng.choice((2, 8, 16)))
    if "lengths" in sizes:
        return {"lengths": tuple(sorted((rng.randint(0, sizes["steps"]) for _ in range(sizes["batch"])), reverse=True))}
    return {}


def _too_large(case: Case) -> bool:
    specs = (spec for arg in case.op.tensors for spec in case.call.specs(arg.name))
    return sum(math.prod(spec.shape) for spec in specs) > MOST_ELEMENTS


def strided(case: Case, rng: Random, broadcast: bool) -> Case:
    """The case with its tensors permuted, reversed, spread and offset; those that are only read may be broadcast."""
    changed: dict[str, Any] = {}
    for arg in case.op.tensors:
        value = None if arg.name in case.data else case.values[arg.name]  # broadcast, its values would be others
        signs = (1, 1, -1) if arg.out or not broadcast else (1, 1, -1, 0)
        if isinstance(value, TensorSpec):
            changed[arg.name] = _laid_out(value, signs, rng)
        elif value is not None:
            changed[arg.name] = tuple(_laid_out(spec, signs, rng) for spec in value)
    return case.but("strided", **changed)


def _laid_out(spec: TensorSpec, signs: tuple[int, ...], rng: Random) -> TensorSpec:
    strides, step = [0] * spec.rank, rng.randint(1, 2)
    for axis in rng.sample(range(spec.rank), spec.rank):
        strides[axis] = step
        step *= max(spec.shape[axis], 1) + rng.randint(0, 1)
    strides = [s * rng.choice(signs) for s in strides]
    low = -sum((n - 1) * s for n, s in zip(spec.shape, strides, strict=True) if s < 0 and n)
    return spec._replace(strides=tuple(strides), offset=low + rng.randint(0, 3), storage=None)
