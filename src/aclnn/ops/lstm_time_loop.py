"""The loop of an LSTM backwards through layers, directions and time; and the same loop for its rounding errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.sums import sum_rows
from aclnn.ops.lstm_cell import cell_gradient_totals, cell_gradients


class Trace(NamedTuple):
    """What one layer and direction went through, step by step."""

    grad_h: Array
    grad_c: Array
    grad_gates: Array


class Backward:
    """The arguments of a call, time-major and in float64, and the loop through them.

    Where a sequence takes no part, 0 stands for whatever was given. Index k is layer·directions + direction.
    """

    def __init__(self, **given: Any):
        steps, batch, _ = given["i"][0].shape
        counts = np.full(steps, batch) if given["batch_sizes"] is None else given["batch_sizes"]
        self.active = np.arange(batch)[:, None] < counts[:, None, None]
        self.batch_first = given["batch_first"]
        self.layers, self.directions = given["num_layers"], 1 + given["bidirectional"]
        self.x, self.dy = (self.read(self.time_major(given[name])) for name in ("input", "dy"))
        self.h, self.c, self.tanhc, *gates = (
            [self.read(array) for array in given[n]] for n in ("h", "c", "tanhc", *"ifgo")
        )
        self.gates = list(zip(*gates, strict=True))
        self.h0, self.c0, self.dh, self.dc, *self.params = (
            array.astype(np.float64) for array in (*given["hx"], given["dh"], given["dc"], *given["params"])
        )
        self.traces: dict[int, Trace] = {}

    def read(self, padded: Array) -> Array:
        return np.where(self.active, padded.astype(np.float64), 0)

    def time_major(self, array: Array) -> Array:
        return array.swapaxes(0, 1) if self.batch_first else array

    def gradients(self) -> tuple[Array, Array, Array, list[Array]]:
        """dx, dhPrev, dcPrev, dparams: from the top layer down, the directions of a layer added up."""
        grad, dparams = self.dy, list[Array]()
        for layer in reversed(range(self.layers)):
            first = layer * self.directions
            x = np.concatenate(self.h[first - self.directions : first], axis=-1) if layer else self.x
            halves = np.split(grad, self.directions, axis=-1)
            found = [self.one_direction(k, x, dy) for k, dy in enumerate(halves, first)]
            grad = np.sum([dx for dx, _ in found], axis=0)
            dparams = [d for _, of_direction in found for d in of_direction] + dparams
        return self.time_major(grad), self.dh, self.dc, dparams

    def one_direction(self, k: int, x: Array, dy: Array) -> tuple[Array, list[Array]]:
        """dx, and the gradients of the parameters; dh[k] and dc[k] become those of the initial state."""
        w_ih, w_hh, *biases = self.parameters(k)
        grad_gates = self.against_time(k, dy, w_hh)
        factors = (x, self.before(k, self.h[k], self.h0[k]))
        dw_ih, dw_hh = (np.tensordot(grad_gates, a, axes=((0, 1), (0, 1))) for a in factors)
        db = sum_rows(sum_rows(grad_gates))
        return np.where(self.active, grad_gates @ w_ih, 0), [dw_ih, dw_hh, *(db for _ in biases)]

    def parameters(self, k: int) -> list[Array]:
        each = len(self.params) // (self.layers * self.directions)
        return self.params[k * each : (k + 1) * each]

    def against_time(self, k: int, dy: Array, w_hh: Array) -> Array:
        """The gradients of the gates at every step, G."""
        c_prev = self.before(k, self.c[k], self.c0[k])
        trace = Trace(np.zeros(dy.shape), np.zeros(dy.shape), np.zeros((*dy.shape[:2], len(w_hh))))
        for t in self.steps(k):
            trace.grad_h[t], trace.grad_c[t] = dy[t] + self.dh[k], self.dc[k]
            gates = [gate[t] for gate in self.gates[k]]
            g, dc = cell_gradients(trace.grad_h[t], trace.grad_c[t], c_prev[t], gates, self.tanhc[k][t])
            trace.grad_gates[t] = np.where(self.active[t], g, 0)
            self.pass_on(k, t, g @ w_hh, dc)
        self.traces[k] = trace
        return trace.grad_gates

    def steps(self, k: int) -> range:
        """Against the direction."""
        forwards = range(len(self.active))
        return forwards if self.is_reverse(k) else forwards[::-1]

    def pass_on(self, k: int, t: int, dh: Array, dc: Array) -> None:
        """To the step before; what takes no part passes unchanged."""
        self.dh[k] = np.where(self.active[t], dh, self.dh[k])
        self.dc[k] = np.where(self.active[t], dc, self.dc[k])

    def before(self, k: int, states: Array, initial: Array) -> Array:
        """The state each step started from: that of the step before in its direction, else the initial one."""
        step, start = (-1, slice(-1, None)) if self.is_reverse(k) else (1, slice(1))
        came, state = np.roll(self.active, step, axis=0), np.roll(states, step, axis=0)
        came[start] = False
        return self.read(np.where(came, state, initial))

    def is_reverse(self, k: int) -> bool:
        return bool(k % self.directions)


class BackwardErrors(Backward):
    """The same loop with errors in place of gradients, in units of the compute dtype's u.

    Every sum of K terms adds (8 + √K)·Σ|terms|, of the true terms. What was inexact before goes on as independent
    errors do, by the root of the sum of squares: absolute values would grow by Σ|w| at every step, and after twenty
    of them any result would do.
    """

    def __init__(self, **given: Any):
        super().__init__(**given)
        self.true = Backward(**given)
        self.true.gradients()
        self.dy, self.dh, self.dc = (np.zeros(a.shape) for a in (self.dy, self.dh, self.dc))

    def one_direction(self, k: int, x: Array, dy: Array) -> tuple[Array, list[Array]]:
        w_ih, w_hh, *biases = self.parameters(k)
        error, true = self.against_time(k, dy, w_hh), self.true.traces[k].grad_gates
        rows, flat, *factors = map(positions, (error, true, x, self.before(k, self.h[k], self.h0[k])))
        dw_ih, dw_hh = (matmul_error(rows.T, flat.T, a) for a in factors)
        db = matmul_error(rows.T, flat.T, np.ones((len(rows), 1)))[:, 0]
        return np.where(self.active, matmul_error(error, true, w_ih), 0), [dw_ih, dw_hh, *(db for _ in biases)]

    def against_time(self, k: int, dy: Array, w_hh: Array) -> Array:
        c_prev, true = self.before(k, self.c[k], self.c0[k]), self.true.traces[k]
        errors = np.zeros(true.grad_gates.shape)
        for passed, t in enumerate(self.steps(k), 1):
            gates = [gate[t] for gate in self.gates[k]]
            here = (c_prev[t], gates, self.tanhc[k][t])
            came = cell_spread(np.hypot(dy[t], self.dh[k]), self.dc[k], *here)
            made = cell_gradient_totals(true.grad_h[t], true.grad_c[t], *here)
            g, dc = (old + _CELL * new for old, new in zip(came, made, strict=True))
            errors[t] = np.where(self.active[t], g, 0)
            self.pass_on(k, t, matmul_error(g, true.grad_gates[t], w_hh, passed), dc)
        return errors


_CELL = 8 + math.sqrt(2) + 8 + 1  # the sum dc, and the products behind it


def cell_spread(
    error_h: Array, error_c: Array, c_prev: Array, gates: list[Array], tanh_c: Array
) -> tuple[Array, Array]:
    """What errors of the gradients that enter a step become in those that leave it."""
    i, f, g, o = gates
    dc = error_h * np.abs(o * (1 - tanh_c**2)) + error_c
    factors = [g * i * (1 - i), c_prev * f * (1 - f), i * (1 - g**2)]
    do = error_h * np.abs(tanh_c * o * (1 - o))
    return np.concatenate([*(dc * np.abs(factor) for factor in factors), do], axis=-1), dc * np.abs(f)


def positions(sequences: Array) -> Array:
    """Steps and batch as one axis."""
    steps, batch, features = sequences.shape
    return sequences.reshape(steps * batch, features)


def matmul_error(error: Array, value: Array, matrix: Array, passed: int = 1) -> Array:
    """The error of value @ matrix, when value comes with an error and the matrix is exact.

    A product at the end of a chain of them is a sum over all paths through the chain, so that is its length.
    """
    passed_on: Array = np.sqrt(error**2 @ matrix**2)
    return passed_on + (8 + math.sqrt(len(matrix) * passed)) * (np.abs(value) @ np.abs(matrix))
