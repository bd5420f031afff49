"""What PyTorch must know of an operator without running it, read off its contract: schema and result shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import DType
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.contract.model import HIDDEN, Arg, Op
from aclnn.runtime import settings

_TYPES = {
    "tensor": "Tensor",
    "tensor_list": "Tensor[]",
    "scalar": "Scalar",
    "bool": "bool",
    "double": "float",
    "int_array": "int[]",
    "bool_array": "bool[]",
}


def schema(op: Op) -> str:
    """The operator as `torch.library` declares it.

    >>> from aclnn import ops
    >>> schema(ops.find("elu"))
    'elu(Tensor input, Scalar alpha=1.0, Scalar scale=1.0, Scalar input_scale=1.0) -> Tensor'
    """
    parameters = []
    for arg in parameters_of(op):
        if arg.keyword_only and "*" not in parameters:
            parameters.append("*")
        parameters.append(_parameter(arg))
    results = [_TYPES[a.kind] + ("?" if _may_be_none(a) else "") for a in op.fresh]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{op.python}({', '.join(parameters)}) -> {returned}"


def parameters_of(op: Op) -> list[Arg]:
    """The arguments Python shows, in their order."""
    return [a for a in op.inputs if a.python != HIDDEN]


def _parameter(arg: Arg) -> str:
    """The dispatcher drops arguments that equal their default; autograd must count every tensor, so those have none."""
    kind = "Tensor(a!)" if arg.updated else _TYPES.get(arg.kind, "int")
    default = "" if arg.default is ... or arg.is_tensor else f"={arg.default}"
    return f"{kind}{'?' if _may_be_none(arg) else ''} {arg.snake}{default}"


def _may_be_none(arg: Arg) -> bool:
    """A list that is absent is returned as an empty one: PyTorch has no optional lists of results."""
    absent = arg.when is not None or (arg.optional and not arg.out) or arg.default is None
    return absent and not (arg.out and arg.kind == "tensor_list")


def fake_results(op: Op, given: Mapping[str, Any]) -> Any:
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
