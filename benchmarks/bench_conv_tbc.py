"""The convolution over time, backward, beside PyTorch and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, as_torch, compiled_by_jax, ours
from benchmarks.shapes import draw

DTYPES = ("float32",)


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    (time, batch, _), (taps, in_, out), pad = shape["x"], shape["w"], shape["padding"]
    return {"flops": 4.0 * (time + 2 * pad + 1 - taps) * batch * taps * in_ * out}


def makers(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Maker]:
    x, w, pad = draw(dtype, *shape["x"]), draw(dtype, *shape["w"]), shape["padding"]
    gradient = draw(dtype, x.shape[0] + 2 * pad + 1 - w.shape[0], x.shape[1], w.shape[2])
    arguments = gradient, x, w, np.zeros(w.shape[2], w.dtype)
    return {
        "aclnn": ours(aclnn.conv_tbc_backward, (*arguments, pad), fresh),
        "torch": lambda: _torch(arguments, pad),
        "jax": lambda: _jax(arguments, pad),
    }


def _torch(arguments: tuple[np.ndarray, ...], pad: int) -> Call:
    import torch

    tensors, backward = as_torch(*arguments), torch.ops.aten.conv_tbc_backward.default
    return lambda: backward(*tensors, pad)


def _jax(arguments: tuple[np.ndarray, ...], pad: int) -> Call:
    import jax

    def forward(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, [1], [(pad, pad)], dimension_numbers=("WNC", "WIO", "WNC"))

    return compiled_by_jax(lambda g, x, w: (*jax.vjp(forward, x, w)[1](g), g.sum((0, 1))), *arguments[:3])
