"""ELU backward beside PyTorch and JAX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, as_torch, compiled_by_jax, compiled_by_torch, ours
from benchmarks.shapes import draw

DTYPES = ("float32", "float16", "bfloat16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    """Bytes that must move: two inputs, one output."""
    return {"bytes": 3.0 * math.prod(shape["size"]) * dtype.itemsize}


def makers(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Maker]:
    g, x = draw(dtype, *shape["size"]), draw(dtype, *shape["size"], low=-3.0, high=3.0)
    return {
        "aclnn": ours(aclnn.elu_backward, (g, 1.0, 1.0, 1.0, False, x), fresh),
        "torch": lambda: _torch(g, x, fresh),
        "torch.compile": lambda: compiled_by_torch(_formula, g, x),
        "jax": lambda: _jax(g, x),
    }


def _torch(g: np.ndarray, x: np.ndarray, fresh: bool) -> Call:
    import torch

    backward, (grad, input_) = torch.ops.aten.elu_backward, as_torch(g, x)
    if fresh:
        return lambda: backward.default(grad, 1.0, 1.0, 1.0, False, input_)
    out = torch.empty_like(input_)
    return lambda: backward.grad_input(grad, 1.0, 1.0, 1.0, False, input_, grad_input=out)


def _formula(g: Any, x: Any) -> Any:
    import torch

    return torch.ops.aten.elu_backward.default(g, 1.0, 1.0, 1.0, False, x)


def _jax(g: np.ndarray, x: np.ndarray) -> Call:
    import jax

    return compiled_by_jax(lambda g, x: jax.vjp(jax.nn.elu, x)[1](g)[0], g, x)
