"""The convolution over time, backward, beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import DType
from benchmarks.providers import as_torch, ours
from benchmarks.shapes import draw

DTYPES = ("float32",)


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    (time, batch, _), (taps, in_, out), pad = shape["x"], shape["w"], shape["padding"]
    return {"flops": 4.0 * (time + 2 * pad + 1 - taps) * batch * taps * in_ * out}


def candidates(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Callable[[], object]]:
    x, w, pad = draw(dtype, *shape["x"]), draw(dtype, *shape["w"]), shape["padding"]
    gradient = draw(dtype, x.shape[0] + 2 * pad + 1 - w.shape[0], x.shape[1], w.shape[2])
    bias = np.zeros(w.shape[2], w.dtype)
    found = {"aclnn": ours(aclnn.conv_tbc_backward, (gradient, x, w, bias, pad), fresh)}
    tensors = as_torch(gradient, x, w, bias)
    if tensors[0] is not None:
        import torch

        found["torch"] = lambda: torch.ops.aten.conv_tbc_backward(*tensors, pad)
    return found
