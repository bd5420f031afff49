"""An LSTM from its inputs alone: states, gradients, and how far rounding may take each of them.

A dump has neither gates nor cell states, so both passes are computed here, and with every value its error: what came
in passes on as independent errors do (the root of the sum of squares, times the slope), and every step adds its own.
A sum of K terms adds (8 + √K)·u·Σ|terms|, u the unit of what is computed in.

Libraries that compute step by step store every value v on the way, in 16 bits if the tensors have 16. One such store
is off by δ·v, |δ| ≤ u, u the unit of the storage. Followed to a result to first order, the stores give S = Σ cᵢδᵢ. The
worst case, u·Σ|cᵢ|, grows by √hidden at every step beyond what ever happens and would excuse anything. The δᵢ are
spread evenly over ±u or less and know nothing of each other; for such (an even distribution is strictly sub-Gaussian,
of variance u²/3)

    P(|S| > λ·u·√Σcᵢ²)  ≤  2·exp(−3λ²/2).

√Σcᵢ² is what errors that are added as squares come to. So a store adds λ·u·|v|, as a square, and λ follows from how
often a right element may be called wrong: 1 in 10¹⁰ makes λ = √(⅔·ln(2·10¹⁰)) = 3.98.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32, FLOAT64, DType
from aclnn.base.geometry import Array
from aclnn.golden.read.msprobe.arguments import Recurrence
from aclnn.ops.lstm import SAVED
from aclnn.ops.lstm_cell import cell_states, sigmoid_slope, tanh_slope
from aclnn.ops.lstm_time_loop import LstmLoop, States

FALSE_ALARM = 1e-10  # the part of right elements that may be called wrong
STORED = math.sqrt(2 / 3 * math.log(2 / FALSE_ALARM))  # λ


class Inexact(NamedTuple):
    """A value and the error it may have. On the way both are one array, whose first axis has these two entries."""

    value: Array
    error: Array


def exactly(array: Array) -> Array:
    wide = array.astype(np.float64)
    return np.stack([wide, np.zeros(wide.shape)])


class Units(NamedTuple):
    """What a rounding costs: of arithmetic, and of storage in between."""

    compute: float
    stored: float

    @classmethod
    def of(cls, dtype: DType) -> Units:
        compute = FLOAT64 if dtype is FLOAT64 else FLOAT32
        return cls(compute.unit, STORED * dtype.unit if dtype.unit > compute.unit else 0.0)

    def one(self, value: Array, error: Array, size: Array | None = None) -> Array:
        """A value of this size that is computed from others and stored once; without a size, of its own."""
        size = np.abs(value) if size is None else size
        return np.stack([value, _hypot(error, self.stored * size) + 4 * self.compute * size])

    def few(self, value: Array, error: Array, size: Array | None = None) -> Array:
        """One made by a handful of products, of which three are stored."""
        size = np.abs(value) if size is None else size
        return np.stack([value, _hypot(error, math.sqrt(3) * self.stored * size) + 16 * self.compute * size])

    def sum(self, length: int) -> float:
        return (8 + math.sqrt(max(length, 1))) * self.compute

    def matmul(self, a: Array, matrix: Array) -> Array:
        value = a[0] @ matrix
        error = _hypot(np.sqrt(a[1] ** 2 @ matrix**2), self.stored * np.abs(value))
        return np.stack([value, error + self.sum(len(matrix)) * (np.abs(a[0]) @ np.abs(matrix))])

    def bell(self, gate: Array) -> Array:
        """s·(1 − s), whose slope is 1 − 2s."""
        s, error = gate
        return self.few(s * (1 - s), np.abs(1 - 2 * s) * error + error**2, np.abs(s))

    def one_less_square(self, x: Array) -> Array:
        """1 − x², of |x| ≤ 1."""
        return self.few(1 - x[0] ** 2, 2 * np.abs(x[0]) * x[1], np.ones(()))


def _hypot(*errors: Array) -> Array:
    return np.asarray(np.sqrt(sum(e * e for e in errors)))


def _product(a: Array, b: Array) -> Array:
    return np.stack([a[0] * b[0], _hypot(a[1] * b[0], a[0] * b[1])])


_SLOPES = (sigmoid_slope, sigmoid_slope, tanh_slope, sigmoid_slope)  # of the gates i, f, g, o


def _nearest_zero(value: Array, error: Array) -> Array:
    """Where a slope may be steepest."""
    return np.asarray(np.maximum(np.abs(value) - error, 0))


class Lstm(LstmLoop):
    """Both passes of an LSTM."""

    def __init__(self, of: Recurrence):
        steps, batch, _ = of.x.shape
        super().__init__((steps, batch), of.batch_sizes, of.params, of.layers, of.directions)
        self.units = Units.of(of.dtype)
        self.x, self.h0, self.c0 = self.read(exactly(of.x)), exactly(of.h0), exactly(of.c0)
        self.hy, self.cy = self.h0.copy(), self.c0.copy()
        self.states, self.output = self.upwards(self.x, self._forward)

    def results(self) -> dict[str, Inexact]:
        return {"output": Inexact(*self.output), "hy": Inexact(*self.hy), "cy": Inexact(*self.cy)}

    def _forward(self, k: int, x: Array) -> States:
        w_ih, w_hh, *biases = self.params[k]
        ahead, biases = self.units.matmul(x, w_ih.T), biases or [np.zeros(len(w_ih))]

        def cell(t: int, h: Array, c: Array) -> States:
            return self._cell(self._gates(ahead[:, t], self.units.matmul(h, w_hh.T), biases), c)

        kept = {name: np.zeros((*x.shape[:3], w_hh.shape[1])) for name in SAVED}
        self.hy[:, k], self.cy[:, k] = self.along(k, cell, kept, self.h0[:, k], self.c0[:, k])
        return kept

    def _gates(self, ahead: Array, recurrent: Array, biases: list[Array]) -> Array:
        """The gates before activation, side by side."""
        units, bias = self.units, sum(map(np.abs, biases))
        a = ahead[0] + recurrent[0] + sum(biases)
        parts = [np.abs(ahead[0]), np.abs(recurrent[0])]
        stores = (units.stored * size for size in (*(part + bias for part in parts), np.abs(a)))
        return np.stack([a, _hypot(ahead[1], recurrent[1], *stores) + 4 * units.compute * (sum(parts) + bias)])

    def _cell(self, before: Array, c: Array) -> States:
        units, (a, error) = self.units, before
        values, new, tanhc = cell_states(a, c[0])
        i, f, g, o = (
            units.one(value, e * slope(_nearest_zero(at, e)))
            for value, at, e, slope in zip(values, np.split(a, 4, -1), np.split(error, 4, -1), _SLOPES, strict=True)
        )
        kept, added = _product(f, c), _product(i, g)
        sizes = [np.abs(kept[0]), np.abs(added[0]), np.abs(new)]
        stores = (units.stored * size for size in sizes)
        e_c = _hypot(kept[1], added[1], *stores) + units.sum(2) * (sizes[0] + sizes[1])
        t = units.one(tanhc, tanh_slope(_nearest_zero(new, e_c)) * e_c)
        return {"i": i, "f": f, "g": g, "o": o, "c": np.stack([new, e_c]), "tanhc": t, "h": units.one(*_product(o, t))}

    def gradients(self, dy: Array, dh: Array, dc: Array) -> tuple[Inexact, Inexact, Inexact, list[Inexact]]:
        """dx, dhPrev, dcPrev, dparams."""
        self.dh, self.dc = exactly(dh), exactly(dc)
        dx, dparams = self.downwards(self.read(exactly(dy)), self._backward)
        return Inexact(*dx), Inexact(*self.dh), Inexact(*self.dc), [Inexact(*d) for d in dparams]

    def added(self, parts: list[Array]) -> Array:
        return self.units.one(np.sum([value for value, _ in parts], 0), _hypot(*(error for _, error in parts)))

    def _backward(self, k: int, dy: Array) -> tuple[Array, list[Array]]:
        w_ih, w_hh, *biases = self.params[k]
        states, c_prev = self.states[k], self.before(k, self.states[k]["c"], self.c0[:, k])

        def cell(t: int, dh: Array, dc: Array) -> tuple[Array, Array, Array]:
            size = np.abs(dy[0, t]) + np.abs(dh[0])
            grad = self.units.one(dy[0, t] + dh[0], _hypot(dy[1, t], dh[1]), size)
            here = {name: of_steps[:, t] for name, of_steps in states.items()}
            gates, to_c = self._cell_gradients(grad, dc, here, c_prev[:, t])
            return gates, self.units.matmul(gates, w_hh), to_c

        gates = np.zeros((*dy.shape[:3], len(w_hh)))
        self.dh[:, k], self.dc[:, k] = self.against(k, cell, gates, self.dh[:, k], self.dc[:, k])
        x = self.input_of(k, self.x, [s["h"] for s in self.states])
        factors = [x, self.before(k, states["h"], self.h0[:, k])]
        dparams = [self._summed(k, gates, factor) for factor in factors]
        if biases:
            db = self._summed(k, gates, exactly(np.ones((*gates.shape[1:3], 1))))[..., 0]
            dparams += [db for _ in biases]
        return self.read(self.units.matmul(gates, w_ih)), dparams

    def _cell_gradients(self, dh: Array, dc: Array, states: States, c_prev: Array) -> tuple[Array, Array]:
        units, (i, f, g, o, tanhc) = self.units, (states[name] for name in ("i", "f", "g", "o", "tanhc"))
        made = _product(_product(dh, o), units.one_less_square(tanhc))
        size = np.abs(made[0]) + np.abs(dc[0])
        total = units.few(made[0] + dc[0], _hypot(made[1], dc[1]), size)
        parts = [
            _product(_product(total, g), units.bell(i)),
            _product(_product(total, c_prev), units.bell(f)),
            _product(_product(total, i), units.one_less_square(g)),
            _product(_product(dh, tanhc), units.bell(o)),
        ]
        return np.concatenate([units.few(*part) for part in parts], -1), units.one(*_product(total, f))

    def _summed(self, k: int, gates: Array, factor: Array) -> Array:
        """Σ Gᵀ·factor over steps and batch."""
        g, e, x, ex = (a.reshape(-1, a.shape[-1]) for a in (*gates, *factor))
        error = np.sqrt((e**2).T @ x**2 + (g**2).T @ ex**2)
        if self.units.stored:
            error = _hypot(error, self.units.stored * self._partial_sums(k, gates[0], factor[0]))
        return np.stack([g.T @ x, error + self.units.sum(len(g)) * (np.abs(g).T @ np.abs(x))])

    def _partial_sums(self, k: int, gates: Array, factor: Array) -> Array:
        """What step by step is stored while the gradient of a parameter is added up, as the root of its squares."""
        sofar = squares = np.zeros((gates.shape[-1], factor.shape[-1]))
        for t in reversed(self.steps(k)):
            here = gates[t].T @ factor[t]
            sofar = sofar + here
            squares = squares + here**2 + np.square(sofar)
        return np.asarray(np.sqrt(squares + np.square(sofar)))
