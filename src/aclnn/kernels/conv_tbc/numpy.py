"""Kernels of the convolution over time."""

from __future__ import annotations

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.rounding import cube_inputs
from aclnn.base.sums import sum_rows
from aclnn.base.taps import tap_ranges
from aclnn.contract.call import Call
from aclnn.kernels.registry import Run, numpy_kernel


@numpy_kernel("aclnnConvTbcBackward")
def conv_tbc_backward_numpy(call: Call) -> Run:
    """Two matmuls per tap, in float64 (see convolution/numpy.py): steps of all batches are one matrix."""
    steps, times, kernel = (call[name].shape[0] for name in ("self", "input", "weight"))
    (taps,) = tap_ranges((steps,), (times,), (kernel,), (1,), (call["pad"],), (1,))
    batch, cube_math_type = call["input"].shape[1], call["cubeMathType"]

    def run(
        workspace: Array | None,
        grad_output: Array,
        input: Array,
        weight: Array,
        bias: Array,
        grad_input: Array,
        grad_weight: Array,
        grad_bias: Array,
    ) -> None:
        g, x, w = (np.ascontiguousarray(a) for a in cube_inputs(cube_math_type, grad_output, input, weight))
        g, x = (a.reshape(len(a) * batch, a.shape[2]) for a in (g, x))
        grad_x, grad_w = np.zeros_like(x), np.zeros_like(w)
        for k, (u, i) in enumerate(taps):
            g_u, here = g[_slab(u, batch)], _slab(i, batch)
            grad_x[here] += g_u @ w[k].T
            grad_w[k] = x[here].T @ g_u
        unrounded = np.ascontiguousarray(grad_output, np.float64).reshape(g.shape)
        sums = sum_rows(unrounded)
        grad_input[...] = grad_x.reshape(grad_input.shape)
        grad_weight[...] = grad_w
        grad_bias[...] = sums

    return run


@numpy_kernel("aclnnConvTbc")
def conv_tbc_numpy(call: Call) -> Run:
    """One matmul per tap, in float64 (see convolution/numpy.py)."""
    steps, times, kernel = (call[name].shape[0] for name in ("output", "self", "weight"))
    (taps,) = tap_ranges((steps,), (times,), (kernel,), (1,), (call["pad"],), (1,))
    batch, cube_math_type = call["self"].shape[1], call["cubeMathType"]

    def run(workspace: Array | None, input: Array, weight: Array, bias: Array, output: Array) -> None:
        x, w = (np.ascontiguousarray(a) for a in cube_inputs(cube_math_type, input, weight))
        x = x.reshape(len(x) * batch, x.shape[2])
        y = np.zeros((steps * batch, w.shape[2]))
        for k, (u, i) in enumerate(taps):
            y[_slab(u, batch)] += x[_slab(i, batch)] @ w[k]
        output[...] = (y + bias.astype(np.float64)).reshape(output.shape)

    return run


def _slab(steps: slice, batch: int) -> slice:
    """The rows of some consecutive steps, batch by batch."""
    return slice(steps.start * batch, steps.stop * batch)
