"""LSTM backward beside PyTorch (autograd of torch.nn.LSTM on a graph that is kept) and JAX (the same of a scan)."""

from __future__ import annotations

from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker, as_torch, ours, steps
from benchmarks.shapes import draw

DTYPES = ("float32", "float16")


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    steps, batch, features, hidden = shape["size"]
    layers, directions = shape.get("layers", 1), 2 if shape.get("bidirectional") else 1
    widths = [features] + [directions * hidden] * (layers - 1)
    return {"flops": sum(2.0 * steps * batch * directions * 4 * hidden * 2 * (w + hidden) for w in widths)}


def makers(shape: dict[str, Any], dtype: DType, column: str) -> dict[str, Maker]:
    layers, both = shape.get("layers", 1), shape.get("bidirectional", False)
    arguments = _arguments(shape, dtype, layers, 2 if both else 1)
    how = {"has_bias": True, "num_layers": layers, "bidirectional": both, "batch_first": False}
    x, first, params, *_ = arguments
    if column == "step":
        return steps("LSTM", tuple(shape["size"][2:]), (x, *first), num_layers=layers, bidirectional=both)
    if column == "forward":
        return {
            "aclnn": ours(aclnn.lstm, (x, params, first), column, **how),
            "torch": lambda: _forward(arguments, layers, both),
        }
    return {
        "aclnn": ours(aclnn.lstm_backward, arguments, column, **how),
        "torch": lambda: _torch(arguments, layers, both),
        "jax": lambda: _jax(arguments, layers, both),
    }


def _arguments(shape: dict[str, Any], dtype: DType, layers: int, directions: int) -> tuple[Any, ...]:
    """Sequences as a forward would have saved them; what the numbers are does not change the time."""
    steps, batch, features, hidden = shape["size"]
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


def _torch(arguments: tuple[Any, ...], layers: int, both: bool) -> Call:
    import torch

    x, first, params, *gradients = arguments[:6]
    wanted = [t.requires_grad_() for t in as_torch(x, *first, *params)]
    given, outputs = as_torch(*gradients), _forward(arguments, layers, both, wanted)()
    return lambda: torch.autograd.grad(outputs, wanted, given, retain_graph=True)


def _forward(arguments: tuple[Any, ...], layers: int, both: bool, given: list[Any] | None = None) -> Any:
    """As in training: both keep what the backward needs."""
    import torch

    x, first, params, *_ = arguments
    x, h, c, *weights = given or [t.requires_grad_() for t in as_torch(x, *first, *params)]
    return lambda: torch.lstm(x, (h, c), weights, True, layers, 0.0, True, both, False)


def _jax(arguments: tuple[Any, ...], layers: int, both: bool) -> Call:
    """Only the gradient is timed: what the forward leaves for it is made before."""
    import jax

    x, first, params, *gradients = arguments[:6]
    if layers > 1 or both:
        raise NotImplementedError("one layer, one direction")

    def forward(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any, d: Any) -> tuple[Any, Any, Any]:
        (h, c), y = jax.lax.scan(lambda state, z: _step(state, z, u), (h[0], c[0]), x @ w.T + (b + d))
        return y, h[None], c[None]

    given = [jax.numpy.asarray(a) for a in (x, *first, *params)]
    gradient = tuple(jax.numpy.asarray(a) for a in gradients)
    pull = jax.jit(lambda *a: jax.vjp(forward, *a)[1])(*given)
    backward = jax.jit(lambda pull, g: pull(g))
    jax.block_until_ready(backward(pull, gradient))
    return lambda: jax.block_until_ready(backward(pull, gradient))


def _step(state: tuple[Any, Any], z: Any, u: Any) -> tuple[tuple[Any, Any], Any]:
    from jax import nn, numpy

    h, c = state
    i, f, g, o = numpy.split(z + h @ u.T, 4, -1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * numpy.tanh(g)
    h = nn.sigmoid(o) * numpy.tanh(c)
    return (h, c), h
