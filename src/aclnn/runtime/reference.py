"""The reference engine: an operator's float64 formula, served as a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from aclnn import ops
from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.scalar import Scalar
from aclnn.base.tolerance import Terms
from aclnn.contract.call import Call
from aclnn.contract.model import HIDDEN, Op
from aclnn.kernels.native import floating
from aclnn.kernels.registry import Kernel, Prepared


def reference_kernel(op: Op) -> Kernel:
    def plan(call: Call, threads: int) -> Prepared:
        def run(workspace: Array | None, *tensors: Any) -> None:
            arrays = dict(zip((a.name for a in op.tensors), tensors, strict=True))
            write_outputs(op, arrays, exact(op, call, arrays))

        return Prepared(lambda: run)

    return Kernel("reference", "reference", plan)


def exact(op: Op, call: Call, arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """The float64 results of the given (already rounded) inputs, one entry per output; None where one is masked."""
    return evaluate(op, arguments(op, call, arrays))


def sums(op: Op, call: Call, arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """The Terms behind each output, in the same shape as `exact`."""
    return evaluate_sums(op, arguments(op, call, arrays))


def evaluate(op: Op, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """The reference of an operator on keyword arguments of its own."""
    with np.errstate(all="ignore"), floating.default():
        return _as_tuple(op, ops.reference(op)(**given))


def evaluate_sums(op: Op, given: Mapping[str, Any]) -> tuple[Any, ...]:
    with np.errstate(all="ignore"), floating.default():
        found = ops.terms(op)(**given)
    return (found,) if isinstance(found, Terms) else tuple(found)


def arguments(op: Op, call: Call, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a reference: arrays as given, scalars as the arithmetic sees them."""
    compute = next((s.dtype.compute for a in op.tensors for s in call.specs(a.name)), FLOAT32)
    given: dict[str, Any] = {}
    for arg in op.inputs:
        if arg.python == HIDDEN:
            continue
        value = arrays[arg.name] if arg.is_tensor else call[arg.name]
        given[arg.snake] = value.rounded_to(compute) if isinstance(value, Scalar) else value
    return given


def write_outputs(op: Op, arrays: Mapping[str, Any], results: tuple[Any, ...]) -> None:
    """Rounds float64 results into the outputs, through whatever strides they have."""
    with np.errstate(all="ignore"):
        for arg, result in zip(op.outputs, results, strict=True):
            target = arrays[arg.name]
            if target is None:
                continue
            pairs = zip(target, result, strict=True) if arg.kind == "tensor_list" else ((target, result),)
            for view, values in pairs:
                through = arrays[arg.round_through].dtype if arg.round_through else view.dtype
                view[...] = values.astype(through).astype(view.dtype)


def _as_tuple(op: Op, found: Any) -> tuple[Any, ...]:
    return (found,) if len(op.outputs) == 1 else tuple(found)
