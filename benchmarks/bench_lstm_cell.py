"""The fused LSTM cell, backward, beside PyTorch: eager, and through torch.compile."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import aclnn
from aclnn.base.dtype import DType
from benchmarks.providers import as_jax, as_torch, compiled_by_torch, ours
from benchmarks.shapes import draw

DTYPES = ("float32", "float16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    """Bytes that must move: four states and four gates in, four gates and a state out."""
    return {"bytes": 13.0 * math.prod(shape["size"]) * dtype.itemsize}


def candidates(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Callable[[], object]]:
    batch, hidden = shape["size"]
    states = [draw(dtype, batch, hidden) for _ in range(4)]
    storage = draw(dtype, batch, 4 * hidden, low=0.1, high=0.9)
    found = {"aclnn": ours(aclnn.thnn_fused_lstm_cell_backward, (*states, storage, True), fresh)}
    tensors = as_torch(*states, storage)
    if tensors[0] is not None:
        found["torch"] = lambda: _formulas(*tensors, tanh="torch")
        compiled = compiled_by_torch(_with_torch, *tensors)
        if compiled is not None:
            found["torch.compile"] = compiled
    arrays = as_jax(*states, storage)
    if arrays[0] is not None:
        import jax

        fused = jax.jit(_with_jax)
        found["jax"] = lambda: jax.block_until_ready(fused(*arrays))
    return found


def _with_torch(*tensors: Any) -> tuple[Any, ...]:
    return _formulas(*tensors, tanh="torch")


def _with_jax(*arrays: Any) -> tuple[Any, ...]:
    return _formulas(*arrays, tanh="jax")


def _formulas(grad_h: Any, grad_c: Any, cx: Any, cy: Any, storage: Any, tanh: str) -> tuple[Any, ...]:
    if tanh == "torch":
        import torch as library

        i, f, g, o = storage.chunk(4, 1)
    else:
        import jax.numpy as library

        i, f, g, o = library.split(storage, 4, 1)
    t = library.tanh(cy)
    dc = grad_h * o * (1 - t * t) + grad_c
    parts = dc * g * i * (1 - i), dc * cx * f * (1 - f), dc * i * (1 - g * g), grad_h * t * o * (1 - o)
    gates = library.cat(parts, 1) if tanh == "torch" else library.concatenate(parts, 1)
    return gates, dc * f, gates.sum(0)
