"""The convolution over time, backward, beside PyTorch and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, as_torch, compiled_by_jax, ours, theirs
from benchmarks.shapes import draw

DTYPES = ("float32", "float16", "bfloat16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    (time, batch, _), (taps, in_, out), pad = shape["x"], shape["w"], shape["padding"]
    return {"flops": 4.0 * (time + 2 * pad + 1 - taps) * batch * taps * in_ * out}


def makers(shape: dict[str, Any], dtype: DType, column: str) -> dict[str, Maker]:
    x, w, pad = draw(dtype, *shape["x"]), draw(dtype, *shape["w"]), shape["padding"]
    gradient = draw(dtype, x.shape[0] + 2 * pad + 1 - w.shape[0], x.shape[1], w.shape[2])
    forward = x, w, np.zeros(w.shape[2], w.dtype), pad
    if column == "step":
        return {"aclnn": lambda: _step(forward, True), "torch": lambda: _step(forward, False)}
    if column == "forward":
        return {"aclnn": ours(aclnn.conv_tbc, forward, column), "torch": theirs("conv_tbc", forward)}
    arguments = gradient, *forward
    return {
        "aclnn": ours(aclnn.conv_tbc_backward, arguments, column),
        "torch": theirs("conv_tbc_backward", arguments),
        "jax": lambda: _jax(arguments[:3], pad),
    }


def _step(given: tuple[Any, ...], is_ours: bool) -> Call:
    """PyTorch has no such module: its function takes the place."""
    import torch

    import aclnn.torch

    forward: Any = aclnn.torch.conv_tbc if is_ours else torch.conv_tbc
    *wanted, pad = *(t.requires_grad_() for t in as_torch(*given[:3])), given[3]
    gradient = torch.ones_like(forward(*wanted, pad))
    return lambda: torch.autograd.grad(forward(*wanted, pad), wanted, gradient)


def _jax(arguments: tuple[np.ndarray, ...], pad: int) -> Call:
    import jax

    def forward(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, [1], [(pad, pad)], dimension_numbers=("WNC", "WIO", "WNC"))

    return compiled_by_jax(lambda g, x, w: (*jax.vjp(forward, x, w)[1](g), g.sum((0, 1))), *arguments)
