"""An LSTM's way through layers, directions and time; and what its gradients and their rounding errors make of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.sums import sum_rows
from aclnn.ops.lstm_cell import cell_gradient_totals, cell_gradients

States = dict[str, Array]
"""What one layer and direction goes through, by name: gates i, f, g, o, cell states c, their tanhc, hidden states h."""


class LstmLoop:
    """The loops, whatever is computed in them.

    Index k is layer·directions + direction. Arrays are float64 and time-major, (…, steps, batch, features); what stands
    before these axes goes along, such as a value and its error. Where a sequence takes no part, 0 stands for whatever
    was given, and states and gradients pass unchanged.
    """

    def __init__(
        self, sizes: tuple[int, int], batch_sizes: Array | None, params: Sequence[Array], layers: int, directions: int
    ):
        steps, batch = sizes
        counts = np.full(steps, batch) if batch_sizes is None else batch_sizes
        self.active = np.arange(batch)[:, None] < counts[:, None, None]
        self.layers, self.directions = layers, directions
        each = len(params) // (layers * directions)
        wide = [p.astype(np.float64) for p in params]
        self.params = [wide[first : first + each] for first in range(0, len(wide), each)]

    def read(self, padded: Array) -> Array:
        return np.where(self.active, padded.astype(np.float64), 0)

    def steps(self, k: int) -> range:
        forwards = range(len(self.active))
        return forwards[::-1] if self.is_reverse(k) else forwards

    def is_reverse(self, k: int) -> bool:
        return bool(k % self.directions)

    def chosen(self, t: int, new: Array, old: Array | int) -> Array:
        return np.where(self.active[t], new, old)

    def before(self, k: int, states: Array, initial: Array) -> Array:
        """The state each step started from: that of the step before in its direction, else the initial one."""
        step, start = (-1, slice(-1, None)) if self.is_reverse(k) else (1, slice(1))
        came, state = np.roll(self.active, step, axis=0), np.roll(states, step, axis=-3)
        came[start] = False
        return self.read(np.where(came, state, initial[..., None, :, :]))

    def input_of(self, k: int, x: Array, hidden: Sequence[Array]) -> Array:
        """What a layer reads: x, or the hidden states of the layer below, its directions side by side."""
        first = k - k % self.directions
        return np.concatenate(hidden[first - self.directions : first], axis=-1) if first else x

    def upwards(self, x: Array, one_direction: Callable[[int, Array], States]) -> tuple[list[States], Array]:
        """What every layer and direction goes through, and the hidden states of the top layer."""
        found: list[States] = []
        hidden: list[Array] = []
        for k in range(len(self.params)):
            found.append(one_direction(k, self.input_of(k, x, hidden)))
            hidden.append(found[-1]["h"])
        return found, self.input_of(len(self.params), x, hidden)

    def along(
        self, k: int, cell: Callable[[int, Array, Array], States], kept: States, h: Array, c: Array
    ) -> tuple[Array, Array]:
        """Notes what `cell` makes of every step and the state before it, and returns the last state."""
        for t in self.steps(k):
            now = cell(t, h, c)
            for name, of_steps in kept.items():
                of_steps[..., t, :, :] = self.chosen(t, now[name], 0)
            h, c = self.chosen(t, now["h"], h), self.chosen(t, now["c"], c)
        return h, c

    def downwards(
        self, grad: Array, one_direction: Callable[[int, Array], tuple[Array, list[Array]]]
    ) -> tuple[Array, list[Array]]:
        """dx and dparams, from dy: from the top layer down, the directions of a layer added up."""
        dparams: list[Array] = []
        for layer in reversed(range(self.layers)):
            halves = np.split(grad, self.directions, axis=-1)
            found = [one_direction(k, dy) for k, dy in enumerate(halves, layer * self.directions)]
            grad = self.added([dx for dx, _ in found])
            dparams = [d for _, of_direction in found for d in of_direction] + dparams
        return grad, dparams

    def added(self, parts: list[Array]) -> Array:
        return np.asarray(np.sum(parts, axis=0))

    def against(
        self,
        k: int,
        cell: Callable[[int, Array, Array], tuple[Array, Array, Array]],
        gates: Array,
        dh: Array,
        dc: Array,
    ) -> tuple[Array, Array]:
        """Notes the gradients of the gates that `cell` makes of every step, and returns those of the initial state."""
        for t in reversed(self.steps(k)):
            now, to_h, to_c = cell(t, dh, dc)
            gates[..., t, :, :] = self.chosen(t, now, 0)
            dh, dc = self.chosen(t, to_h, dh), self.chosen(t, to_c, dc)
        return dh, dc


class Trace(NamedTuple):
    """What one layer and direction went through on the way back, step by step."""

    grad_h: Array
    grad_c: Array
    grad_gates: Array


class Backward(LstmLoop):
    """The gradients of a call."""

    def __init__(self, **given: Any):
        sizes = given["i"][0].shape[:2]
        super().__init__(sizes, given["batch_sizes"], given["params"], given["num_layers"], 1 + given["bidirectional"])
        self.batch_first = given["batch_first"]
        self.x, self.dy = (self.read(self.time_major(given[name])) for name in ("input", "dy"))
        self.h, self.c, self.tanhc, *gates = (
            [self.read(array) for array in given[n]] for n in ("h", "c", "tanhc", *"ifgo")
        )
        self.gates = list(zip(*gates, strict=True))
        self.h0, self.c0, self.dh, self.dc = (a.astype(np.float64) for a in (*given["hx"], given["dh"], given["dc"]))
        self.traces: dict[int, Trace] = {}

    def time_major(self, array: Array) -> Array:
        return array.swapaxes(0, 1) if self.batch_first else array

    def gradients(self) -> tuple[Array, Array, Array, list[Array]]:
        """dx, dhPrev, dcPrev, dparams."""
        dx, dparams = self.downwards(self.dy, self.one_direction)
        return self.time_major(dx), self.dh, self.dc, dparams

    def one_direction(self, k: int, dy: Array) -> tuple[Array, list[Array]]:
        """dx, and the gradients of the parameters; dh[k] and dc[k] become those of the initial state."""
        w_ih, _, *biases = self.params[k]
        gates = self.against_time(k, dy)
        dw_ih, dw_hh = (np.tensordot(gates, a, axes=((0, 1), (0, 1))) for a in self.factors(k))
        db = sum_rows(sum_rows(gates))
        return self.read(gates @ w_ih), [dw_ih, dw_hh, *(db for _ in biases)]

    def factors(self, k: int) -> tuple[Array, Array]:
        """What the gates multiply with w_ih and w_hh: the input of each step and the hidden state before it."""
        return self.input_of(k, self.x, self.h), self.before(k, self.h[k], self.h0[k])

    def against_time(self, k: int, dy: Array) -> Array:
        """The gradients of the gates at every step, G."""
        w_hh, here = self.params[k][1], self.states_at(k)
        trace = Trace(np.zeros(dy.shape), np.zeros(dy.shape), np.zeros((*dy.shape[:2], len(w_hh))))

        def cell(t: int, dh: Array, dc: Array) -> tuple[Array, Array, Array]:
            trace.grad_h[t], trace.grad_c[t] = dy[t] + dh, dc
            g, to_c = cell_gradients(trace.grad_h[t], trace.grad_c[t], *here(t))
            return g, g @ w_hh, to_c

        self.dh[k], self.dc[k] = self.against(k, cell, trace.grad_gates, self.dh[k], self.dc[k])
        self.traces[k] = trace
        return trace.grad_gates

    def states_at(self, k: int) -> Callable[[int], tuple[Array, list[Array], Array]]:
        """What a step backwards reads of the forward: the cell state before it, its gates, and tanhc."""
        c_prev = self.before(k, self.c[k], self.c0[k])
        return lambda t: (c_prev[t], [gate[t] for gate in self.gates[k]], self.tanhc[k][t])


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

    def one_direction(self, k: int, dy: Array) -> tuple[Array, list[Array]]:
        w_ih, _, *biases = self.params[k]
        error, true = self.against_time(k, dy), self.true.traces[k].grad_gates
        rows, flat, *factors = map(positions, (error, true, *self.factors(k)))
        dw_ih, dw_hh = (matmul_error(rows.T, flat.T, a) for a in factors)
        db = matmul_error(rows.T, flat.T, np.ones((len(rows), 1)))[:, 0]
        return self.read(matmul_error(error, true, w_ih)), [dw_ih, dw_hh, *(db for _ in biases)]

    def against_time(self, k: int, dy: Array) -> Array:
        true, w_hh, here = self.true.traces[k], self.params[k][1], self.states_at(k)
        errors, passed = np.zeros(true.grad_gates.shape), count(1)

        def cell(t: int, dh: Array, dc: Array) -> tuple[Array, Array, Array]:
            came = cell_spread(np.hypot(dy[t], dh), dc, *here(t))
            made = cell_gradient_totals(true.grad_h[t], true.grad_c[t], *here(t))
            g, to_c = (old + _CELL * new for old, new in zip(came, made, strict=True))
            return g, matmul_error(g, true.grad_gates[t], w_hh, next(passed)), to_c

        self.dh[k], self.dc[k] = self.against(k, cell, errors, self.dh[k], self.dc[k])
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
