"""LSTM backward beside PyTorch: autograd of torch.nn.LSTM on a graph that is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import DType
from benchmarks.providers import has, ours
from benchmarks.shapes import draw

DTYPES = ("float32", "float16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    steps, batch, features, hidden = shape["size"]
    layers, directions = shape.get("layers", 1), 2 if shape.get("bidirectional") else 1
    widths = [features] + [directions * hidden] * (layers - 1)
    return {"flops": sum(2.0 * steps * batch * directions * 4 * hidden * 2 * (w + hidden) for w in widths)}


def candidates(shape: dict[str, Any], dtype: DType, fresh: bool) -> dict[str, Callable[[], object]]:
    layers, both = shape.get("layers", 1), shape.get("bidirectional", False)
    arguments = _arguments(shape, dtype, layers, both)
    how = {"has_bias": True, "num_layers": layers, "bidirectional": both, "batch_first": False}
    found = {"aclnn": ours(aclnn.lstm_backward, arguments, fresh, **how)}
    if has("torch"):
        found["torch"] = _torch(shape, dtype, layers, both)
    return found


def _arguments(shape: dict[str, Any], dtype: DType, layers: int, both: bool) -> tuple[Any, ...]:
    """Sequences as a forward would have saved them; what the numbers are does not change the time."""
    steps, batch, features, hidden = shape["size"]
    directions = 2 if both else 1
    count = layers * directions
    params = []
    for layer in range(layers):
        width = directions * hidden if layer else features
        for _ in range(directions):
            weights = draw(dtype, 4 * hidden, width), draw(dtype, 4 * hidden, hidden)
            params += [(w / np.sqrt(hidden)).astype(dtype.numpy) for w in weights]
            params += [draw(dtype, 4 * hidden) for _ in range(2)]
    state = [draw(dtype, count, batch, hidden) for _ in range(4)]
    lists = [[draw(dtype, steps, batch, hidden, low=0.1, high=0.9) for _ in range(count)] for _ in range(7)]
    dy = draw(dtype, steps, batch, directions * hidden)
    return draw(dtype, steps, batch, features), state[:2], params, dy, *state[2:], *lists


def _torch(shape: dict[str, Any], dtype: DType, layers: int, both: bool) -> Callable[[], object]:
    import torch

    steps, batch, features, hidden = shape["size"]
    kind = {"float32": torch.float32, "float16": torch.float16}[dtype.name]
    lstm = torch.nn.LSTM(features, hidden, layers, bidirectional=both).to(kind)
    directions = 2 if both else 1
    x = torch.randn(steps, batch, features).to(kind).requires_grad_()
    first = [torch.randn(layers * directions, batch, hidden).to(kind).requires_grad_() for _ in range(2)]
    y, last = lstm(x, tuple(first))
    wanted = [x, *first, *lstm.parameters()]
    gradients = [torch.randn_like(t) for t in (y, *last)]
    return lambda: torch.autograd.grad([y, *last], wanted, gradients, retain_graph=True)
