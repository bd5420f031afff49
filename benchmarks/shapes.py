"""The named shapes, as arguments of the operators."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from aclnn.base.dtype import DType
from aclnn.base.taps import output_size

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
OPERATORS = ("elu", "convolution", "unseen", "conv_tbc", "lstm", "lstm_cell")
"""The families; `unseen`: convolutions that no tuning saw."""
COLUMNS = ("given", "fresh", "out", "torch", "c", "forward", "step", "growth", "memory")
FURTHER = {"unseen": ("given",), "calls": ("fresh",), "training": ("fresh",)} | dict.fromkeys(
    ("golden", "streams", "busy"), ("once",)
)
"""What is not measured in every column."""


def shapes_of(operator: str, growth: bool = False) -> dict[str, dict[str, Any]]:
    """Every named shape of an operator, or its sizes a decade apart."""
    table: dict[str, Any] = tomllib.loads((HERE / "shapes.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = table["growth"].get(operator, {}) if growth else table[operator]
    return found["convolution"] if operator == "unseen" and found else found


def draw(dtype: DType, *sizes: int, low: float | None = None, high: float = 1.0) -> np.ndarray:
    """Numbers of a normal distribution, or between low and high; the same every time, and again after 2**20."""
    return np.resize(_pool(dtype, low, high), sizes)


@cache
def _pool(dtype: DType, low: float | None, high: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(2**20, np.float32) if low is None else rng.uniform(low, high, 2**20)
    return numbers.astype(dtype.numpy)


def convolution_arguments(shape: dict[str, Any], dtype: DType) -> tuple[Any, ...]:
    """The arguments of convolution_backward: all three gradients."""
    sizes, attributes = convolution_sizes(shape)
    channels = sizes[0][1]
    return *(draw(dtype, *size) for size in sizes), [channels], *attributes, [True, True, True]


def convolution_sizes(shape: dict[str, Any]) -> tuple[tuple[list[int], ...], tuple[Any, ...]]:
    """The sizes of gradient, input and weight; stride, padding, dilation, transposed, output padding, groups."""
    axes = len(shape["x"]) - 2

    def per_axis(name: str, otherwise: int) -> list[int]:
        value = shape.get(name, otherwise)
        return [value] * axes if isinstance(value, int) else list(value)

    stride, padding, dilation = per_axis("stride", 1), per_axis("padding", 0), per_axis("dilation", 1)
    extra, transposed, groups = per_axis("output_padding", 0), shape.get("transposed", False), shape.get("groups", 1)
    x, w = shape["x"], shape["w"]
    positions = output_size(tuple(x[2:]), tuple(w[2:]), stride, padding, dilation, transposed, extra)
    channels = w[1] * groups if transposed else w[0]
    return ([x[0], channels, *positions], x, w), (stride, padding, dilation, transposed, extra, groups)
