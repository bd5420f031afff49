"""Convolution backward beside PyTorch and JAX."""

from __future__ import annotations

import math
from typing import Any

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, as_torch, compiled_by_jax, ours
from benchmarks.shapes import convolution_arguments, convolution_sizes

DTYPES = ("float32", "bfloat16", "float16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    """Multiplications and additions of the two gradients."""
    (gradient, x, w), _ = convolution_sizes(shape)
    narrow = x if shape.get("transposed") else gradient
    return {"flops": 4.0 * math.prod(narrow) * math.prod(w[1:])}


def makers(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Maker]:
    arguments = convolution_arguments(shape, dtype)
    return {
        "aclnn": ours(aclnn.convolution_backward, arguments, fresh),
        "torch": lambda: _torch(arguments),
        "jax": lambda: _jax(arguments),
    }


def _torch(arguments: tuple[Any, ...]) -> Call:
    import torch

    tensors, backward = as_torch(*arguments[:3]), torch.ops.aten.convolution_backward.default
    return lambda: backward(*tensors, *arguments[3:])


def _jax(arguments: tuple[Any, ...]) -> Call:
    """The gradient of what torch computes forwards; a transposed one is a convolution of spread inputs."""
    import jax

    _, stride, padding, dilation, transposed, extra, groups, _ = arguments[3:]
    spatial = tuple(range(2, arguments[0].ndim))

    def forward(x: Any, w: Any) -> Any:
        if not transposed:
            ends, spread, step = [(p, p) for p in padding], [1] * len(padding), stride
        else:
            reach = [d * (k - 1) - p for d, k, p in zip(dilation, w.shape[2:], padding, strict=True)]
            ends, spread, step = [(r, r + e) for r, e in zip(reach, extra, strict=True)], stride, [1] * len(padding)
            w = jax.numpy.flip(w, spatial).swapaxes(0, 1)
        return jax.lax.conv_general_dilated(x, w, step, ends, spread, dilation, feature_group_count=groups)

    if transposed and groups > 1:
        raise NotImplementedError("transposed in groups")
    gradients = lambda g, x, w: (*jax.vjp(forward, x, w)[1](g), g.sum((0, *spatial)))  # noqa: E731
    return compiled_by_jax(gradients, *arguments[:3])
