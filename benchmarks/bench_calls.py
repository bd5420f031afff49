"""What a call costs before any work: the smallest arguments, beside the same call of PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, as_torch, has
from benchmarks.shapes import draw

DTYPES = ("float32",)


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    return {}


def makers(shape: dict[str, Any], dtype: DType, column: str) -> dict[str, Maker]:
    """The benchmark of the operator on that shape, through that door; of ELU also through PyTorch's dispatcher."""
    operator: Any = importlib.import_module(f"benchmarks.bench_{shape['operator']}")
    door = shape.get("door", "fresh")
    found: dict[str, Maker] = operator.makers(shape, dtype, "torch" if door == "dispatcher" else door)
    if door == "dispatcher":
        g, x = draw(dtype, *shape["size"]), draw(dtype, *shape["size"])
        found["aclnn"] = lambda: _dispatched(g, x)
    return {name: found[name] for name in ("aclnn", "torch")}


def _dispatched(g: np.ndarray, x: np.ndarray) -> Call:
    if not has("torch"):
        return lambda: None
    import torch

    grad, input_ = as_torch(g, x)
    importlib.import_module("aclnn.torch")
    backward = torch.ops.aclnn.elu_backward.default
    return lambda: backward(grad, 1.0, 1.0, 1.0, False, input_)
