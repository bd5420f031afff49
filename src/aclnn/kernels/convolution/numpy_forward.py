"""Convolution kernels, forwards."""

from __future__ import annotations

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.rounding import cube_inputs
from aclnn.base.taps import every_tap, tap_ranges, taps_first
from aclnn.contract.call import Call
from aclnn.kernels.convolution.numpy import Axes, channels_first, flat, multiply
from aclnn.kernels.registry import Run, numpy_kernel


@numpy_kernel("aclnnConvolution")
def convolution_numpy(call: Call) -> Run:
    """Matrix products over the channels, one per tap, in float64 as in numpy.py and for the same reason."""
    groups, transposed, cube_math_type = call["groups"], call["transposed"], call["cubeMathType"]
    outputs, inputs, kernel = (call[name].shape[2:] for name in ("output", "input", "weight"))
    axes = tap_ranges(outputs, inputs, kernel, call["stride"], call["padding"], call["dilation"], transposed)

    def run(workspace: Array | None, input: Array, weight: Array, bias: Array | None, output: Array) -> None:
        input_seen, weight_seen = cube_inputs(cube_math_type, input, weight)
        x = channels_first(input_seen, groups)
        w = np.ascontiguousarray(taps_first(weight_seen, groups, transposed))
        y = np.zeros((groups, w.shape[-2], *outputs[:-1], len(input), outputs[-1]))
        _add_up(axes, x, w, y)
        by_channel = np.moveaxis(y, -2, 0).reshape(output.shape)
        if bias is not None:
            by_channel = by_channel + bias.astype(np.float64).reshape(-1, *(1,) * len(outputs))
        output[...] = by_channel

    return run


def _add_up(axes: Axes, x: Array, w: Array, y: Array) -> None:
    """Adds every tap's product to y. The last axis is the outer loop: its columns are cut out once for all rows."""
    *rows, columns = axes
    for last, (u, i) in enumerate(columns):
        x_columns, sums = np.ascontiguousarray(x[..., i]), np.zeros(y[..., u].shape)
        for q, y_rows, x_rows in every_tap(rows):
            product = multiply(w[q][last], flat(x_columns[x_rows]))
            sums[y_rows] += product.reshape(sums[y_rows].shape)
        y[..., u] += sums
