"""What a call costs before any work: the smallest arguments, beside the same call of PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, as_torch, has
from benchmarks.shapes import draw

DTYPES = ("float32",)


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    return {}


def makers(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Maker]:
    """The benchmark of the operator on that shape; of ELU also with tensors, and through PyTorch's dispatcher."""
    operator: Any = importlib.import_module(f"benchmarks.bench_{shape['operator']}")
    found: dict[str, Maker] = operator.makers(shape, dtype, not shape.get("planned", False))
    if "tensors" in shape:
        g, x = draw(dtype, *shape["size"]), draw(dtype, *shape["size"])
        found["aclnn"] = lambda: _with_tensors(g, x, shape["tensors"])
    return {name: found[name] for name in ("aclnn", "torch")}


def _with_tensors(g: np.ndarray, x: np.ndarray, door: str) -> Call:
    if not has("torch"):
        return lambda: None
    grad, input_ = as_torch(g, x)
    if door == "functional":
        return lambda: aclnn.elu_backward(grad, 1.0, 1.0, 1.0, False, input_)
    import torch

    importlib.import_module("aclnn.torch")
    backward = torch.ops.aclnn.elu_backward.default
    return lambda: backward(grad, 1.0, 1.0, 1.0, False, input_)
