"""LSTM cell kernels, and the slopes of its gates, which the whole LSTM shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.sums import sum_rows
from aclnn.contract.call import Call
from aclnn.kernels.registry import Run, numpy_kernel


class Slopes(NamedTuple):
    """What a cell multiplies the gradients of its states by: all that does not depend on them."""

    cell: Array  # hidden state → cell state
    i: Array  # cell state → the gates i, f, g before activation
    f: Array
    g: Array
    o: Array  # hidden state → the gate o before activation
    forget: Array  # cell state → cell state of the step before


def slopes(gates: Sequence[Array], c_prev: Array, tanh_c: Array) -> Slopes:
    """1 − x² is computed as (1 − x)·(1 + x), which does not cancel."""
    i, f, g, o = gates
    return Slopes(
        cell=o * ((1 - tanh_c) * (1 + tanh_c)),
        i=g * i * (1 - i),
        f=c_prev * f * (1 - f),
        g=i * ((1 - g) * (1 + g)),
        o=tanh_c * o * (1 - o),
        forget=f,
    )


def product_and_sum(a: Array, b: Array, c: Array) -> Array:
    """a·b + c by way of float64: a float32 product could overflow and then meet the opposite infinity."""
    return np.asarray((np.multiply(a, b, dtype=np.float64) + c).astype(a.dtype))


@numpy_kernel("aclnnThnnFusedLstmCellBackward")
def thnn_fused_lstm_cell_backward_numpy(call: Call) -> Run:
    """Whole-array arithmetic in float32 (float64 for float64 tensors); the bias is a pairwise sum."""
    wide = call["cx"].dtype.compute.numpy

    def run(
        workspace: Array | None,
        grad_hy: Array | None,
        grad_cy: Array | None,
        cx: Array,
        cy: Array,
        storage: Array,
        out_gates: Array,
        out_cx: Array,
        out_bias: Array | None,
    ) -> None:
        def read(array: Array | None) -> Array:
            return np.zeros((), wide) if array is None else array.astype(wide, copy=False)

        slope = slopes(np.split(read(storage), 4, axis=1), read(cx), np.tanh(read(cy)))
        dh = read(grad_hy)
        dc = product_and_sum(dh, slope.cell, read(grad_cy))
        grad_gates = np.concatenate([dc * slope.i, dc * slope.f, dc * slope.g, dh * slope.o], axis=1)
        grad_cx, grad_bias = dc * slope.forget, sum_rows(grad_gates)
        out_gates[...] = grad_gates
        out_cx[...] = grad_cx
        if out_bias is not None:
            out_bias[...] = grad_bias

    return run


def step(a: Array, c_prev: Array) -> tuple[list[Array], Array, Array]:
    """One step forwards from the gates before activation: the gates i, f, g, o, the cell state and its tanh."""
    a_i, a_f, a_g, a_o = np.split(a, 4, axis=1)
    i, f, g, o = _sigmoid(a_i), _sigmoid(a_f), np.tanh(a_g), _sigmoid(a_o)
    c = f * c_prev + i * g
    return [i, f, g, o], c, np.tanh(c)


def _sigmoid(a: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-a)))


@numpy_kernel("aclnnThnnFusedLstmCell")
def thnn_fused_lstm_cell_numpy(call: Call) -> Run:
    """Whole-array arithmetic in float32 (float64 for float64 tensors)."""
    wide = call["cx"].dtype.compute.numpy

    def run(
        workspace: Array | None,
        input_gates: Array,
        hidden_gates: Array,
        cx: Array,
        input_bias: Array | None,
        hidden_bias: Array | None,
        out_hy: Array,
        out_cy: Array,
        out_storage: Array,
    ) -> None:
        a = input_gates.astype(wide) + hidden_gates.astype(wide, copy=False)
        if input_bias is not None and hidden_bias is not None:
            a += input_bias.astype(wide, copy=False) + hidden_bias.astype(wide, copy=False)
        gates, cy, tanh_c = step(a, cx.astype(wide, copy=False))
        out_hy[...], out_cy[...], out_storage[...] = gates[3] * tanh_c, cy, np.concatenate(gates, axis=1)

    return run
