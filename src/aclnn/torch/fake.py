"""What a compiler or a tracer asks an operator: which shapes and dtypes its results have, read off its contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import DType
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.contract.model import Arg, Op
from aclnn.runtime import settings
from aclnn.torch.schema import parameters_of


def shapes_of(op: Op) -> Callable[..., Any]:
    """The operator for a compiler: tensors in, tensors of the right shapes out, nothing computed."""
    names = [a.snake for a in parameters_of(op)]
    defaults = {a.snake: a.default for a in parameters_of(op) if a.default is not ...}

    def fake(*args: Any, **kwargs: Any) -> Any:
        return _results(op, {**defaults, **dict(zip(names, args, strict=False)), **kwargs})

    return fake


def _results(op: Op, given: Mapping[str, Any]) -> Any:
    """Results of the right shapes and dtypes, and nothing in them; the sizes may be symbols."""
    values = {arg.name: _described(arg, given.get(arg.snake)) for arg in op.inputs}
    rows = op.rows.in_steps(values) if op.rows else {}
    call = Call({**values, **rows, **dict.fromkeys(a.name for a in op.fresh)}, settings.current_product())
    device = next(t.device for t in torch.utils._pytree.tree_leaves(given) if isinstance(t, torch.Tensor))
    results = [_empty(op, arg, call, device) for arg in op.fresh]
    if rows and op.rows:  # whoever gives rows gets rows
        flat = [arg.name in op.rows.args for arg in op.fresh]
        results = [r.flatten(0, 1) if is_flat else r for r, is_flat in zip(results, flat, strict=True)]
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _described(arg: Arg, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _spec(arg, value)
    if arg.kind == "tensor_list" and value is not None:
        return tuple(_spec(arg, v) for v in value)
    return tuple(value) if isinstance(value, list) else value


def _spec(arg: Arg, tensor: torch.Tensor) -> TensorSpec:
    form = arg.default_format(tensor.dim())
    return TensorSpec(dtype_of(tensor), tuple(tensor.shape), tuple(tensor.stride()), 0, form)


def _empty(op: Op, arg: Arg, call: Call, device: torch.device) -> Any:
    if not arg.takes_part(call):
        return [] if arg.kind == "tensor_list" else None
    made = op.fresh_output(arg, call)
    specs = [made] if isinstance(made, TensorSpec) else made
    tensors = [torch.empty(s.shape, dtype=getattr(torch, s.dtype.name), device=device) for s in specs]
    return tensors if arg.kind == "tensor_list" else tensors[0]


def dtype_of(tensor: torch.Tensor) -> DType:
    found = dtypes.by_name(str(tensor.dtype).removeprefix("torch."))
    assert found is not None, f"a tensor of dtype {tensor.dtype} was let through"
    return found
