"""Every operator as `torch.ops.aclnn.<name>`: computed by the Python door, with shapes for tracing.

Operators are declared with `torch.library`'s define and impl: a call costs 8 µs on top of the Python door's; the
custom_op decorator would cost 31. Gradients are in gradients.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import aclnn
from aclnn import ops
from aclnn.contract.model import Op
from aclnn.runtime import settings
from aclnn.torch.fake import dtype_of, shapes_of
from aclnn.torch.schema import schema

NAMESPACE = "aclnn"
library = torch.library.Library(NAMESPACE, "DEF")


def overload(op: Op) -> Any:
    """The operator as the dispatcher knows it."""
    return getattr(getattr(torch.ops, NAMESPACE), op.python).default


def declare_all() -> None:
    for op in ops.all_ops():
        library.define(schema(op))
        library.impl(op.python, computation(op), "CPU")
        torch.library.register_fake(f"{NAMESPACE}::{op.python}", shapes_of(op), lib=library)
        if not op.fresh:
            library.impl(op.python, _noted_change(op), "ADInplaceOrView", with_keyset=True)
        elif op.name in _CAST_BY_AUTOCAST:
            library.impl(op.python, _under_autocast(op), "AutocastCPU")


def computation(op: Op) -> Callable[..., Any]:
    """The operator with results as the dispatcher takes them."""
    operator = getattr(aclnn, op.python)
    if len(op.outputs) == 1 and op.fresh:
        return operator  # type: ignore[no-any-return]
    lists = [a.kind == "tensor_list" for a in op.outputs]

    def compute(*args: Any, **kwargs: Any) -> Any:
        result = operator(*args, **kwargs)
        if not op.fresh:
            return None
        return tuple([] if r is None and is_list else r for r, is_list in zip(result, lists, strict=True))

    return compute


def _noted_change(op: Op) -> Callable[..., Any]:
    """Tells autograd that the first argument changes: what saved its old value must not use the new one."""

    def change(keyset: Any, tensor: torch.Tensor, *args: Any) -> None:
        torch.autograd.graph.increment_version(tensor)
        overload(op).redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, tensor, *args)

    return change


_CAST_BY_AUTOCAST = ("aclnnConvolution", "aclnnConvTbc", "aclnnLSTM", "aclnnThnnFusedLstmCell")
"""PyTorch's own autocast lists the same: matrix products and what is built on them; ELU computes in what it gets."""


def _under_autocast(op: Op) -> Callable[..., Any]:
    """All floating tensors in autocast's dtype; in float32 where the product does not take that one."""

    def cast_then_compute(*args: Any, **kwargs: Any) -> Any:
        dtype = torch.get_autocast_dtype("cpu")
        taken = settings.current_product().dtypes.get(op.family, ())
        if dtype_of(torch.empty(0, dtype=dtype)) not in taken:
            dtype = torch.float32
        with torch.amp.autocast("cpu", enabled=False):
            return overload(op)(*(_cast(a, dtype) for a in args), **kwargs)

    return cast_then_compute


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype != torch.float64 else value
    return [_cast(v, dtype) for v in value] if isinstance(value, (list, tuple)) else value
