"""LSTM kernels, backwards and forwards.

Sequences are packed: the positions where a sequence takes part, step after step, are the rows of one matrix. Other
positions are never read, and the products over a whole sequence are one matrix product each. Gates and states are
float32 (float64 for float64 tensors), but matrix products add up in float64: a float32 BLAS adds term after term, and
20,000 equal terms came out 21 times further off than (8 + √K)·u allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.sums import sum_rows
from aclnn.contract.call import Call
from aclnn.kernels.lstm_cell.numpy import Slopes, product_and_sum, slopes, step
from aclnn.kernels.registry import Run, numpy_kernel

SUMS = np.dtype(np.float64)


@numpy_kernel("aclnnLstmBackward")
def lstm_backward_numpy(call: Call) -> Run:
    """Matrix products over the whole sequence for dx and dparams; a loop over time for what depends on it."""

    def run(workspace: Array | None, *tensors: Any) -> None:
        *inputs, out_dx, out_dh_prev, out_dc_prev, out_dparams = tensors
        dx, dh_prev, dc_prev, dparams = _Backward(call, *inputs).gradients()
        out_dx[...], out_dh_prev[...], out_dc_prev[...] = dx, dh_prev, dc_prev
        for out, values in zip(out_dparams, dparams, strict=True):
            out[...] = values

    return run


class Packing:
    """Which positions take part. batchSizes does not increase, so at every step it is the first so many sequences."""

    def __init__(self, batch_sizes: Array | None, steps: int, batch: int):
        self.counts = [batch] * steps if batch_sizes is None else batch_sizes.tolist()
        ends = np.cumsum([0, *self.counts]).tolist()
        self.rows = [slice(start, end) for start, end in pairwise(ends)]
        self.positions = ends[-1]
        self.active = np.arange(batch) < np.reshape(self.counts, (steps, 1))

    def pack(self, padded: Array, dtype: Any) -> Array:
        """[T, B, features] → [positions, features]"""
        all_take_part = self.positions == self.active.size
        rows = padded.reshape(self.positions, padded.shape[2]) if all_take_part else padded[self.active]
        return rows.astype(dtype, copy=False)

    def unpack(self, rows: Array) -> Array:
        """[positions, features] → [T, B, features], 0 where no sequence takes part."""
        padded = np.zeros((*self.active.shape, rows.shape[1]), rows.dtype)
        padded[self.active] = rows
        return padded

    def before(self, states: Array, initial: Array, reverse: bool) -> Array:
        """The packed state each position started from: that of the step before in its direction, else the initial."""
        found = np.empty_like(states)
        for t, (rows, count) in enumerate(zip(self.rows, self.counts, strict=True)):
            start = t + 1 if reverse else t - 1
            known = min(count, self.counts[start]) if 0 <= start < len(self.counts) else 0
            if known:
                found[rows][:known] = states[self.rows[start]][:known]
            found[rows][known:] = initial[known:count]
        return found


class _Backward:
    """One call: from the top layer down, against each direction. Index k is layer·directions + direction."""

    def __init__(
        self,
        call: Call,
        input: Array,
        hx: list[Array],
        params: list[Array],
        dy: Array,
        dh: Array,
        dc: Array,
        *saved: Any,
    ):
        self.i, self.g, self.f, self.o, self.h, self.c, self.tanhc, batch_sizes = saved
        self.wide = call["input"].dtype.compute.numpy
        self.layers, self.directions = call["numLayers"], 2 if call["bidirectional"] else 1
        self.batch_first = call["batchFirst"]
        self.input, self.hx, self.params, self.dy = input, hx, params, dy
        self.dh, self.dc = dh.astype(self.wide), dc.astype(self.wide)
        self.packing = Packing(batch_sizes, *self.i[0].shape[:2])

    def gradients(self) -> tuple[Array, Array, Array, list[Array]]:
        grad, dparams = self._pack(self._time_major(self.dy)), list[Array]()
        for layer in reversed(range(self.layers)):
            first = layer * self.directions
            below = self.h[first - self.directions : first] if layer else [self._time_major(self.input)]
            x = np.concatenate([self._pack(part, SUMS) for part in below], axis=1)
            halves = np.split(grad, self.directions, axis=1)
            found = [self._one_direction(k, x, dy) for k, dy in enumerate(halves, first)]
            grad = np.add.reduce([dx for dx, _ in found]).astype(self.wide, copy=False)
            dparams = [d for _, of_direction in found for d in of_direction] + dparams
        return self._time_major(self.packing.unpack(grad)), self.dh, self.dc, dparams

    def _one_direction(self, k: int, x: Array, dy: Array) -> tuple[Array, list[Array]]:
        """dx, and the gradients of the parameters; dh[k] and dc[k] become those of the initial state."""
        each = len(self.params) // (self.layers * self.directions)
        w_ih, w_hh = (w.astype(SUMS) for w in self.params[k * each : k * each + 2])
        reverse = k % self.directions == 1
        gates = [self._pack(part[k]) for part in (self.i, self.f, self.g, self.o)]
        c_prev = self.packing.before(self._pack(self.c[k]), self.hx[1][k], reverse)
        slope = slopes(gates, c_prev, self._pack(self.tanhc[k]))
        steps = self.packing.rows if reverse else reversed(self.packing.rows)
        grad_gates = _against_time(steps, slope, dy, self.dh[k], self.dc[k], w_hh)
        h_prev = self.packing.before(self._pack(self.h[k], SUMS), self.hx[0][k], reverse)
        db = sum_rows(grad_gates)
        return grad_gates @ w_ih, [grad_gates.T @ x, grad_gates.T @ h_prev, db, db][:each]

    def _pack(self, padded: Array, dtype: Any = None) -> Array:
        return self.packing.pack(padded, dtype or self.wide)

    def _time_major(self, array: Array) -> Array:
        return array.swapaxes(0, 1) if self.batch_first else array


def _against_time(steps: Iterable[slice], slope: Slopes, dy: Array, dh: Array, dc: Array, w_hh: Array) -> Array:
    """The gradients of the gates at every position; dh and dc end as the gradients of the initial states."""
    positions, hidden = dy.shape
    grad_gates = np.empty((positions, 4 * hidden), SUMS)
    di, df, dg, do = np.split(grad_gates, 4, axis=1)
    for rows in steps:
        count = rows.stop - rows.start
        grad_h = dy[rows] + dh[:count]
        grad_c = product_and_sum(grad_h, slope.cell[rows], dc[:count])
        di[rows], df[rows], dg[rows] = grad_c * slope.i[rows], grad_c * slope.f[rows], grad_c * slope.g[rows]
        do[rows] = grad_h * slope.o[rows]
        dh[:count] = grad_gates[rows] @ w_hh
        dc[:count] = grad_c * slope.forget[rows]
    return grad_gates


@numpy_kernel("aclnnLSTM")
def lstm_numpy(call: Call) -> Run:
    """One matrix product over the whole sequence for x·w_ih; a loop over time for what depends on it."""

    def run(
        workspace: Array | None,
        input: Array,
        params: list[Array],
        hx: list[Array] | None,
        batch_sizes: Array | None,
        output: Array,
        hy: Array,
        cy: Array,
        *lists: list[Array] | None,
    ) -> None:
        time_major = input.swapaxes(0, 1) if call["batchFirst"] else input
        forward = _Forward(call, time_major, params, hx, batch_sizes)
        top = forward.run(lists)
        output[...] = top.swapaxes(0, 1) if call["batchFirst"] else top
        hy[...], cy[...] = forward.h, forward.c

    return run


class _Forward:
    """One call: from the bottom layer up, along each direction. Index k is layer·directions + direction."""

    def __init__(self, call: Call, input: Array, params: list[Array], hx: list[Array] | None, batch_sizes: Any):
        self.wide = call["input"].dtype.compute.numpy
        self.directions = 2 if call["bidirectional"] else 1
        self.input, layers = input, call["numLayers"] * self.directions
        each = len(params) // layers
        self.params = [params[k * each : (k + 1) * each] for k in range(layers)]
        shape = (layers, input.shape[1], params[1].shape[1])
        self.h, self.c = (
            np.zeros(shape, self.wide) if hx is None else hx[which].astype(self.wide) for which in range(2)
        )
        self.packing = Packing(batch_sizes, *input.shape[:2])

    def run(self, lists: tuple[list[Array] | None, ...]) -> Array:
        """Writes the lists i, g, f, o, h, c, tanhc that are there; returns the states of the top layer."""
        x = self.packing.pack(self.input, SUMS)
        for first in range(0, len(self.params), self.directions):
            states = [self._one_direction(k, x, lists) for k in range(first, first + self.directions)]
            x = np.concatenate(states, axis=1)
        return self.packing.unpack(x)

    def _one_direction(self, k: int, x: Array, lists: tuple[list[Array] | None, ...]) -> Array:
        w_ih, w_hh, *biases = (p.astype(SUMS) for p in self.params[k])
        a = x @ w_ih.T + sum(biases)
        kept = [np.empty((len(x), w_hh.shape[1]), self.wide) for _ in range(7)]
        h, c = self.h[k], self.c[k]
        rows_of_steps = self.packing.rows
        for rows in reversed(rows_of_steps) if k % self.directions else rows_of_steps:
            n = rows.stop - rows.start
            (i, f, g, o), c[:n], tanhc = step((a[rows] + h[:n] @ w_hh.T).astype(self.wide, copy=False), c[:n])
            h[:n] = o * tanhc
            for states, now in zip(kept, (i, g, f, o, h[:n], c[:n], tanhc), strict=True):
                states[rows] = now
        for out, states in zip(lists, kept, strict=True):
            if out is not None:
                out[k][...] = self.packing.unpack(states)
        return kept[4]
