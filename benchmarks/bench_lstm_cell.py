"""The fused LSTM cell, backward, beside PyTorch (eager and compiled) and JAX."""

from __future__ import annotations

import math
from typing import Any

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, as_torch, compiled_by_jax, compiled_by_torch, ours, steps
from benchmarks.shapes import draw

DTYPES = ("float32", "float16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    """Bytes that must move: four states and four gates in, four gates and a state out."""
    return {"bytes": 13.0 * math.prod(shape["size"]) * dtype.itemsize}


def makers(shape: dict[str, Any], dtype: DType, column: str) -> dict[str, Maker]:
    batch, hidden = shape["size"]
    states = [draw(dtype, batch, hidden) for _ in range(4)]
    given = *states, draw(dtype, batch, 4 * hidden, low=0.1, high=0.9)
    if column == "step":
        return steps("LSTMCell", (hidden, hidden), (*states[:3],))
    if column == "forward":
        gates, bias = draw(dtype, batch, 4 * hidden), draw(dtype, 4 * hidden)
        forward = gates, gates.copy(), states[0], bias, bias.copy()
        return {"aclnn": ours(aclnn.thnn_fused_lstm_cell, forward, column), "torch": lambda: _forward(forward)}
    return {
        "aclnn": ours(aclnn.thnn_fused_lstm_cell_backward, (*given, True), column),
        "torch": lambda: _torch(given),
        "torch.compile": lambda: compiled_by_torch(_with_torch, *given),
        "jax": lambda: compiled_by_jax(_with_jax, *given),
    }


def _torch(given: tuple[Any, ...]) -> Call:
    """PyTorch's own kernel of this name is for GPUs; on a CPU it is these formulas."""
    tensors = as_torch(*given)
    return lambda: _with_torch(*tensors)


def _forward(given: tuple[Any, ...]) -> Call:
    x, h, cx, b, d = as_torch(*given)

    def forward() -> tuple[Any, ...]:
        i, f, g, o = (x + h + b + d).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        cy = f * cx + i * g
        return o * cy.tanh(), cy, i, f, g, o

    return forward


def _with_torch(*tensors: Any) -> tuple[Any, ...]:
    import torch

    gates, grad_cx = _formulas(tensors[:4], tensors[4].chunk(4, 1), torch.tanh, torch.cat)
    return gates, grad_cx, gates.sum(0)


def _with_jax(*arrays: Any) -> tuple[Any, ...]:
    from jax import numpy

    gates, grad_cx = _formulas(arrays[:4], numpy.split(arrays[4], 4, 1), numpy.tanh, numpy.concatenate)
    return gates, grad_cx, gates.sum(0)


def _formulas(states: tuple[Any, ...], gates: Any, tanh: Any, join: Any) -> tuple[Any, Any]:
    (grad_h, grad_c, cx, cy), (i, f, g, o) = states, gates
    t = tanh(cy)
    dc = grad_h * o * (1 - t * t) + grad_c
    parts = dc * g * i * (1 - i), dc * cx * f * (1 - f), dc * i * (1 - g * g), grad_h * t * o * (1 - o)
    return join(parts, 1), dc * f
