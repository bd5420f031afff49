"""Convolution by its definition, one multiplication at a time: slow, plain, and independent of the package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from aclnn.contract.cases import Case

Array = np.ndarray[Any, Any]
Index = tuple[int, ...]


def meeting_points(case: Case) -> Iterator[tuple[Index, Index, Index]]:
    """Every (output index, input index, weight index) of a convolution that are multiplied, without the padding."""
    v = case.values
    outputs, inputs, weights = (v[name].shape for name in ("gradOutput", "input", "weight"))
    padding = v["padding"][::2] if len(v["padding"]) == 4 else v["padding"]
    narrow, wide = (inputs, outputs) if v["transposed"] else (outputs, inputs)
    per_group = weights[0] // v["groups"]
    for n, first, second in product(range(outputs[0]), range(weights[0]), range(weights[1])):
        other = first // per_group * weights[1] + second
        for u, q in product(np.ndindex(narrow[2:]), np.ndindex(weights[2:])):
            axes = zip(u, q, v["stride"], padding, v["dilation"], strict=True)
            i = tuple(a * s - p + b * d for a, b, s, p, d in axes)
            if all(0 <= a < size for a, size in zip(i, wide[2:], strict=True)):
                here, there = (n, first, *u), (n, other, *i)
                yield (there, here, (first, second, *q)) if v["transposed"] else (here, there, (first, second, *q))


def forward(case: Case, x: Array, w: Array, bias: Array) -> Array:
    shape = case.values["gradOutput"].shape
    y = np.zeros(shape) + bias.reshape(1, -1, *(1,) * (len(shape) - 2))
    for out, in_, tap in meeting_points(case):
        y[out] += x[in_] * w[tap]
    return y


def backward(case: Case, g: Array, x: Array, w: Array) -> tuple[Array, Array, Array]:
    """The gradients by definition: every multiplication of the forward gives one term to each of two gradients."""
    grad_x, grad_w = np.zeros(x.shape), np.zeros(w.shape)
    for out, in_, tap in meeting_points(case):
        grad_x[in_] += g[out] * w[tap]
        grad_w[tap] += g[out] * x[in_]
    return grad_x, grad_w, g.sum(axis=(0, *range(2, g.ndim)))
