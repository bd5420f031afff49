"""Convolution backward beside PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import aclnn
from aclnn.base.dtype import DType
from benchmarks.providers import as_jax, as_torch, ours
from benchmarks.shapes import convolution_arguments

DTYPES = ("float32", "bfloat16", "float16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    """Multiplications and additions of the two gradients."""
    gradient, x, w, *_ = convolution_arguments(shape, dtype)
    narrow = x if shape.get("transposed") else gradient
    return {"flops": 4.0 * narrow.size * math.prod(w.shape[1:])}


def candidates(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Callable[[], object]]:
    arguments = convolution_arguments(shape, dtype)
    found = {"aclnn": ours(aclnn.convolution_backward, arguments, fresh)}
    tensors = as_torch(*arguments[:3])
    if tensors[0] is not None:
        import torch

        found["torch"] = lambda: torch.ops.aten.convolution_backward(*tensors, *arguments[3:])
    arrays = as_jax(*arguments[:3])
    if arrays[0] is not None and not shape.get("transposed") and len(shape["x"]) == 4:
        found["jax"] = _jax(arrays, arguments)
    return found


def _jax(arrays: list[Any], arguments: tuple[Any, ...]) -> Callable[[], object]:
    import jax

    _, stride, padding, dilation, _, _, groups, _ = arguments[3:]

    def forward(x: Any, w: Any) -> Any:
        ends = [(p, p) for p in padding]
        return jax.lax.conv_general_dilated(x, w, stride, ends, rhs_dilation=dilation, feature_group_count=groups)

    compiled = jax.jit(lambda g, x, w: (*jax.vjp(forward, x, w)[1](g), g.sum((0, 2, 3))))
    return lambda: jax.block_until_ready(compiled(*arrays))
