"""ELU backward beside PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import aclnn
from aclnn.base.dtype import DType
from benchmarks.providers import as_jax, as_torch, ours
from benchmarks.shapes import draw

DTYPES = ("float32", "float16", "bfloat16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    """Bytes that must move: two inputs, one output."""
    return {"bytes": 3.0 * math.prod(shape["size"]) * dtype.itemsize}


def candidates(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Callable[[], object]]:
    g, x = draw(dtype, *shape["size"]), draw(dtype, *shape["size"], low=-3.0, high=3.0)
    found = {"aclnn": ours(aclnn.elu_backward, (g, 1.0, 1.0, 1.0, False, x), fresh)}
    torch_g, torch_x = as_torch(g, x)
    if torch_g is not None:
        import torch

        out = torch.empty_like(torch_x)
        backward = torch.ops.aten.elu_backward
        if fresh:
            found["torch"] = lambda: backward(torch_g, 1.0, 1.0, 1.0, False, torch_x)
        else:
            found["torch"] = lambda: backward.grad_input(torch_g, 1.0, 1.0, 1.0, False, torch_x, grad_input=out)
    jax_g, jax_x = as_jax(g, x)
    if jax_g is not None:
        import jax

        compiled = jax.jit(lambda g, x: jax.vjp(jax.nn.elu, x)[1](g)[0])
        found["jax"] = lambda: compiled(jax_g, jax_x).block_until_ready()
    return found
