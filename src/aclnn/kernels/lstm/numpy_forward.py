"""LSTM kernels, forwards. Sequences are packed, and matrix products add up in float64, as in numpy.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.contract.call import Call
from aclnn.kernels.lstm.numpy import SUMS, Packing
from aclnn.kernels.lstm_cell.numpy import step
from aclnn.kernels.registry import Run, numpy_kernel


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
