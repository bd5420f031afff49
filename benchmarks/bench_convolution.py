"""Convolution backward beside PyTorch and JAX."""

from __future__ import annotations

import math
from typing import Any

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, compiled_by_jax, ours, steps, theirs
from benchmarks.shapes import convolution_arguments, convolution_sizes, draw

DTYPES = ("float32", "bfloat16", "float16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    """Multiplications and additions of the two gradients."""
    (gradient, x, w), _ = convolution_sizes(shape)
    narrow = x if shape.get("transposed") else gradient
    return {"flops": 4.0 * math.prod(narrow) * math.prod(w[1:])}


def makers(shape: dict[str, Any], dtype: DType, column: str) -> dict[str, Maker]:
    arguments = convolution_arguments(shape, dtype)
    if column == "step":
        return _steps(arguments)
    if column == "forward":
        forward = *arguments[1:3], draw(dtype, *arguments[3]), *arguments[4:10]
        return {"aclnn": ours(aclnn.convolution, forward, column), "torch": theirs("convolution", forward)}
    return {
        "aclnn": ours(aclnn.convolution_backward, arguments, column),
        "torch": theirs("convolution_backward", arguments),
        "jax": lambda: _jax(arguments),
    }


def _steps(arguments: tuple[Any, ...]) -> dict[str, Maker]:
    _, x, w, channels, stride, padding, dilation, transposed, extra, groups, _ = arguments
    name = f"Conv{'Transpose' if transposed else ''}{x.ndim - 2}d"
    how = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation), "groups": groups}
    more = {"output_padding": tuple(extra)} if transposed else {}
    return steps(name, (x.shape[1], *channels, w.shape[2:]), (x,), **how, **more)


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
