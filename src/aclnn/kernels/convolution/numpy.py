"""Convolution kernels, backwards and forwards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.rounding import cube_inputs
from aclnn.base.taps import Pair, every_tap, tap_ranges, taps_first, taps_last
from aclnn.contract.call import Call
from aclnn.kernels.registry import Run, numpy_kernel

Axes = tuple[tuple[Pair, ...], ...]


@numpy_kernel("aclnnConvolutionBackward")
def convolution_backward_numpy(call: Call) -> Run:
    """Matmuls over the channels, one per tap and gradient, on the positions that meet something there.

    They are matmuls of float64: a float32 BLAS adds hundreds of terms one by one, and equal terms (an all-0.7 input)
    then err by 3.4 times what (8 + √K)·u allows. Measured on ten layers, float64 takes 1.3 to 1.9 times as long.
    """
    groups, transposed, cube_math_type = call["groups"], call["transposed"], call["cubeMathType"]
    outputs, inputs, kernel = (call[name].shape[2:] for name in ("gradOutput", "input", "weight"))
    axes = tap_ranges(outputs, inputs, kernel, call["stride"], call["padding"], call["dilation"], transposed)

    def run(
        workspace: Array | None,
        grad_output: Array,
        input: Array,
        weight: Array,
        grad_input: Any,
        grad_weight: Any,
        grad_bias: Any,
    ) -> None:
        seen = cube_inputs(cube_math_type, grad_output, input, weight)
        g, x = (channels_first(a, groups) for a in seen[:2])
        w = np.ascontiguousarray(taps_first(seen[2], groups, transposed))
        grad_x = None if grad_input is None else np.zeros_like(x)
        grad_w = None if grad_weight is None else np.zeros_like(w)
        _add_gradients(axes, g, x, w, grad_x, grad_w)
        sums = None if grad_bias is None else _channel_sums(grad_output)
        if grad_x is not None:
            grad_input[...] = np.moveaxis(grad_x, -2, 0).reshape(input.shape)
        if grad_w is not None:
            grad_weight[...] = taps_last(grad_w, transposed)
        if sums is not None:
            grad_bias[...] = sums

    return run


def _add_gradients(axes: Axes, g: Array, x: Array, w: Array, grad_x: Array | None, grad_w: Array | None) -> None:
    """Adds every tap's matmul to the gradients that are wanted.

    The last axis is the outer loop: its columns are cut out once for all the other taps, whose rows then lie together
    in memory and are handed to the matmul as they are.
    """
    *rows, columns = axes
    for last, (u, i) in enumerate(columns):
        g_columns, x_columns = np.ascontiguousarray(g[..., u]), x[..., i]
        sums = None if grad_x is None else np.zeros(x_columns.shape)
        if grad_w is not None:
            x_columns = np.ascontiguousarray(x_columns)
        for q, g_rows, x_rows in every_tap(rows):
            met = flat(g_columns[g_rows])
            if grad_w is not None:
                grad_w[q][last] = met @ flat(x_columns[x_rows]).swapaxes(1, 2)
            if sums is not None:
                made = multiply(w[q][last].swapaxes(1, 2), met)
                sums[x_rows] += made.reshape(sums[x_rows].shape)
        if grad_x is not None:
            grad_x[..., i] += sums


def multiply(matrix: Array, columns: Array) -> Array:
    """The matmul; of one column by one row (depthwise) as the multiplication that it is."""
    made: Array = matrix * columns if matrix.shape[-1] == 1 else matrix @ columns
    return made


def flat(tensor: Array) -> Array:
    return tensor.reshape(*tensor.shape[:2], math.prod(tensor.shape[2:]))


def channels_first(tensor: Array, groups: int) -> Array:
    """(batch, channels, *rows, column) as (groups, channels of a group, *rows, batch, column), contiguous."""
    batch, channels, *sizes = tensor.shape
    return np.ascontiguousarray(np.moveaxis(tensor.reshape(batch, groups, channels // groups, *sizes), 0, -2))


def _channel_sums(tensor: Array) -> Array:
    """The sum over all but the channels. numpy adds pairwise along a contiguous axis."""
    channels_first = np.moveaxis(tensor, 1, 0)
    rows = channels_first.reshape(len(channels_first), math.prod(channels_first.shape[1:]))
    sums: Array = np.ascontiguousarray(rows, np.float64).sum(axis=1)
    return sums


@numpy_kernel("aclnnConvolution")
def convolution_numpy(call: Call) -> Run:
    """Matmuls over the channels, one per tap, in float64 as backwards and for the same reason."""
    groups, transposed, cube_math_type = call["groups"], call["transposed"], call["cubeMathType"]
    outputs, inputs, kernel = (call[name].shape[2:] for name in ("output", "input", "weight"))
    axes = tap_ranges(outputs, inputs, kernel, call["stride"], call["padding"], call["dilation"], transposed)

    def run(workspace: Array | None, input: Array, weight: Array, bias: Array | None, output: Array) -> None:
        input_seen, weight_seen = cube_inputs(cube_math_type, input, weight)
        x = channels_first(input_seen, groups)
        w = np.ascontiguousarray(taps_first(weight_seen, groups, transposed))
        y = np.zeros((groups, w.shape[-2], *outputs[:-1], len(input), outputs[-1]))
        _add_taps(axes, x, w, y)
        by_channel = np.moveaxis(y, -2, 0).reshape(output.shape)
        if bias is not None:
            by_channel = by_channel + bias.astype(np.float64).reshape(-1, *(1,) * len(outputs))
        output[...] = by_channel

    return run


def _add_taps(axes: Axes, x: Array, w: Array, y: Array) -> None:
    """Adds every tap's matmul to y. The last axis is the outer loop: its columns are cut out once for all rows."""
    *rows, columns = axes
    for last, (u, i) in enumerate(columns):
        x_columns, sums = np.ascontiguousarray(x[..., i]), np.zeros(y[..., u].shape)
        for q, y_rows, x_rows in every_tap(rows):
            made = multiply(w[q][last], flat(x_columns[x_rows]))
            sums[y_rows] += made.reshape(sums[y_rows].shape)
        y[..., u] += sums
