"""ELU backward beside PyTorch and JAX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, compiled_by_jax, compiled_by_torch, ours, steps, theirs
from benchmarks.shapes import draw

DTYPES = ("float32", "float16", "bfloat16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    """Bytes that must move: two inputs, one output."""
    return {"bytes": 3.0 * math.prod(shape["size"]) * dtype.itemsize}


def makers(shape: dict[str, Any], dtype: DType, column: str) -> dict[str, Maker]:
    g, x = draw(dtype, *shape["size"]), draw(dtype, *shape["size"], low=-3.0, high=3.0)
    if column == "step":
        return steps("ELU", (), (x,))
    if column == "forward":
        return {"aclnn": ours(aclnn.elu, (x,), column), "torch": theirs("elu", (x,), "out")}
    arguments = g, 1.0, 1.0, 1.0, False, x
    return {
        "aclnn": ours(aclnn.elu_backward, arguments, column),
        "torch": theirs("elu_backward", arguments, "grad_input" if column in ("given", "growth", "out", "c") else ""),
        "torch.compile": lambda: compiled_by_torch(_formula, g, x),
        "jax": lambda: _jax(g, x),
    }


def _formula(g: Any, x: Any) -> Any:
    import torch

    return torch.ops.aten.elu_backward.default(g, 1.0, 1.0, 1.0, False, x)


def _jax(g: np.ndarray, x: np.ndarray) -> Call:
    import jax

    return compiled_by_jax(lambda g, x: jax.vjp(jax.nn.elu, x)[1](g)[0], g, x)
