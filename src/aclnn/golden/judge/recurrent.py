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
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32, FLOAT64, DType
from aclnn.base.geometry import Array
from aclnn.golden.read.msprobe.arguments import Recurrence
from aclnn.ops.lstm_cell import cell_states, sigmoid

FALSE_ALARM = 1e-10  # the part of right elements that may be called wrong
STORED = math.sqrt(2 / 3 * math.log(2 / FALSE_ALARM))  # λ


class Inexact(NamedTuple):
    """A value and the error it may have."""

    value: Array
    error: Array

    def at(self, index: int) -> Inexact:
        return Inexact(self.value[index], self.error[index])


def _stacked(found: Iterable[Inexact]) -> Inexact:
    return Inexact(*(np.stack(parts) for parts in zip(*found, strict=True)))


def _side_by_side(found: Iterable[Inexact]) -> Inexact:
    return Inexact(*(np.concatenate(parts, -1) for parts in zip(*found, strict=True)))


def exactly(array: Array) -> Inexact:
    wide = array.astype(np.float64)
    return Inexact(wide, np.zeros(wide.shape))


class Units(NamedTuple):
    """What a rounding costs: of arithmetic, and of storage in between."""

    compute: float
    stored: float

    @classmethod
    def of(cls, dtype: DType) -> Units:
        compute = FLOAT64 if dtype is FLOAT64 else FLOAT32
        return cls(compute.unit, STORED * dtype.unit if dtype.unit > compute.unit else 0.0)

    def one(self, error: Array, size: Array) -> Array:
        """The error of a value of this size that is computed from others and stored once."""
        return _hypot(error, self.stored * size) + 4 * self.compute * size

    def few(self, error: Array, size: Array) -> Array:
        """That of one made by a handful of products, of which three are stored."""
        return _hypot(error, math.sqrt(3) * self.stored * size) + 16 * self.compute * size

    def sum(self, length: int) -> float:
        return (8 + math.sqrt(max(length, 1))) * self.compute


def _hypot(*errors: Array) -> Array:
    return np.asarray(np.sqrt(sum(e * e for e in errors)))


def _product(a: Inexact, b: Inexact) -> Inexact:
    return Inexact(a.value * b.value, _hypot(a.error * b.value, a.value * b.error))


def _matmul(a: Inexact, matrix: Array, units: Units) -> Inexact:
    value = a.value @ matrix
    error = _hypot(np.sqrt(a.error**2 @ matrix**2), units.stored * np.abs(value))
    return Inexact(value, error + units.sum(len(matrix)) * (np.abs(a.value) @ np.abs(matrix)))


class States(NamedTuple):
    """What one layer and direction went through: gates i, f, g, o, cell states, their tanh, hidden states."""

    gates: tuple[Inexact, Inexact, Inexact, Inexact]
    c: Inexact
    tanhc: Inexact
    h: Inexact


class Lstm:
    """Both passes of an LSTM; index k is layer·directions + direction, arrays are time-major."""

    def __init__(self, of: Recurrence):
        steps, batch = of.x.shape[:2]
        counts = np.full(steps, batch) if of.batch_sizes is None else of.batch_sizes
        self.active = np.arange(batch)[:, None] < counts[:, None, None]
        self.units, self.layers, self.directions = Units.of(of.dtype), of.layers, of.directions
        self.x = self._masked(exactly(of.x))
        self.h0, self.c0 = exactly(of.h0), exactly(of.c0)
        count = self.layers * self.directions
        each = len(of.params) // count
        wide = [p.astype(np.float64) for p in of.params]
        self.params = [wide[k * each : (k + 1) * each] for k in range(count)]
        self.states: list[States] = []
        self.inputs: list[Inexact] = []
        self.last: list[tuple[Inexact, Inexact]] = []
        for k in range(count):
            if k % self.directions == 0:
                self.inputs.append(self.x if k == 0 else self.top())
            self._forward(k, self.inputs[-1])

    def _masked(self, found: Inexact) -> Inexact:
        return Inexact(np.where(self.active, found.value, 0), np.where(self.active, found.error, 0))

    def top(self) -> Inexact:
        """The hidden states of the last layer so far, its directions side by side."""
        return _side_by_side(s.h for s in self.states[-self.directions :])

    def steps(self, k: int) -> range:
        forwards = range(len(self.active))
        return forwards[::-1] if k % self.directions else forwards

    def _forward(self, k: int, x: Inexact) -> None:
        w_ih, w_hh, *biases = self.params[k]
        ahead = _matmul(x, w_ih.T, self.units)
        bias = biases or [np.zeros(len(w_ih))]
        shape = (*x.value.shape[:2], w_hh.shape[1])
        kept = [Inexact(np.zeros(shape), np.zeros(shape)) for _ in range(7)]
        h, c = self.h0.at(k), self.c0.at(k)
        for t in self.steps(k):
            made = self._cell(ahead.at(t), h, c, w_hh, bias)
            for store, value in zip(kept, made, strict=True):
                store.value[t], store.error[t] = (np.where(self.active[t], v, 0) for v in value)
            c, h = (self._chosen(t, new, old) for new, old in ((made[4], c), (made[6], h)))
        self.states.append(States((kept[0], kept[1], kept[2], kept[3]), *kept[4:]))
        self.last.append((h, c))

    def _chosen(self, t: int, new: Inexact, old: Inexact) -> Inexact:
        return Inexact(*(np.where(self.active[t], a, b) for a, b in zip(new, old, strict=True)))

    def _cell(self, ahead: Inexact, h: Inexact, c: Inexact, w_hh: Array, biases: list[Array]) -> list[Inexact]:
        units, recurrent = self.units, _matmul(h, w_hh.T, self.units)
        a = ahead.value + recurrent.value + sum(biases)
        bias = sum(map(np.abs, biases))
        parts = [np.abs(ahead.value), np.abs(recurrent.value)]
        stores = (units.stored * size for size in (*(part + bias for part in parts), np.abs(a)))
        error = _hypot(ahead.error, recurrent.error, *stores) + 4 * units.compute * (sum(parts) + bias)
        (i, f, g, o), new, tanhc = cell_states(a, c.value)
        near = np.maximum(np.abs(a) - error, 0)  # where a slope may be steepest
        slopes = [sigmoid(near) * sigmoid(-near), 1 - np.tanh(near) ** 2]
        pieces = zip(np.split(error, 4, -1), np.split(slopes[0], 4, -1), np.split(slopes[1], 4, -1), strict=True)
        gates = [
            Inexact(v, units.one(e * (tanh if n == 2 else logistic), np.abs(v)))
            for n, (v, (e, logistic, tanh)) in enumerate(zip((i, f, g, o), pieces, strict=True))
        ]
        kept, added = _product(gates[1], c), _product(gates[0], gates[2])
        sizes = [np.abs(kept.value), np.abs(added.value), np.abs(new)]
        stores = (units.stored * size for size in sizes)
        e_c = _hypot(kept.error, added.error, *stores) + units.sum(2) * (sizes[0] + sizes[1])
        slope = 1 - np.tanh(np.maximum(np.abs(new) - e_c, 0)) ** 2
        e_tanh = Inexact(tanhc, units.one(slope * e_c, np.abs(tanhc)))
        hidden = _product(gates[3], e_tanh)
        shown = Inexact(hidden.value, units.one(hidden.error, np.abs(hidden.value)))
        return [*gates, Inexact(new, e_c), e_tanh, shown]

    def results(self) -> dict[str, Inexact]:
        """output, hy, cy."""
        hy, cy = (_stacked(states) for states in zip(*self.last, strict=True))
        return {"output": self.top(), "hy": hy, "cy": cy}

    def gradients(self, dy: Array, dh: Array, dc: Array) -> tuple[Inexact, Inexact, Inexact, list[Inexact]]:
        """dx, dhPrev, dcPrev, dparams."""
        grad, count = self._masked(exactly(dy)), self.layers * self.directions
        first: list[tuple[Inexact, Inexact]] = [(exactly(dh[k]), exactly(dc[k])) for k in range(count)]
        dparams: list[list[Inexact]] = [[] for _ in range(count)]
        for layer in reversed(range(self.layers)):
            base, below = layer * self.directions, list[Inexact]()
            values, errors = (np.split(part, self.directions, -1) for part in grad)
            for d in range(self.directions):
                k = base + d
                gates, first[k] = self._against_time(k, Inexact(values[d], errors[d]), *first[k])
                dparams[k] = self._parameters(k, gates, self.inputs[layer])
                below.append(self._masked(_matmul(gates, self.params[k][0], self.units)))
            total = np.sum([b.value for b in below], 0)
            grad = Inexact(total, self.units.one(_hypot(*(b.error for b in below)), np.abs(total)))
        dhs, dcs = (_stacked(states) for states in zip(*first, strict=True))
        return grad, dhs, dcs, [p for one in dparams for p in one]

    def _against_time(self, k: int, dy: Inexact, dh: Inexact, dc: Inexact) -> tuple[Inexact, tuple[Inexact, Inexact]]:
        states, w_hh = self.states[k], self.params[k][1]
        before = self._before(k, states.c, self.c0.at(k))
        shape = (*dy.value.shape[:2], len(w_hh))
        kept = Inexact(np.zeros(shape), np.zeros(shape))
        for t in reversed(self.steps(k)):
            size = np.abs(dy.value[t]) + np.abs(dh.value)
            grad = Inexact(dy.value[t] + dh.value, self.units.one(_hypot(dy.error[t], dh.error), size))
            gates, passed = self._cell_gradients(
                grad, dc, [g.at(t) for g in states.gates], states.tanhc.at(t), before.at(t)
            )
            kept.value[t], kept.error[t] = (np.where(self.active[t], part, 0) for part in gates)
            dh, dc = (self._chosen(t, new, old) for new, old in ((_matmul(gates, w_hh, self.units), dh), (passed, dc)))
        return kept, (dh, dc)

    def _cell_gradients(
        self, dh: Inexact, dc: Inexact, gates: list[Inexact], tanhc: Inexact, c_prev: Inexact
    ) -> tuple[Inexact, Inexact]:
        (i, f, g, o), few, one = gates, self.units.few, np.ones(())
        slope = Inexact(1 - tanhc.value**2, few(2 * np.abs(tanhc.value) * tanhc.error, one))
        made = _product(_product(dh, o), slope)
        size = np.abs(made.value) + np.abs(dc.value)
        total = Inexact(made.value + dc.value, few(_hypot(made.error, dc.error), size))
        bent = Inexact(1 - g.value**2, few(2 * np.abs(g.value) * g.error, one))
        parts = [
            _product(_product(total, g), _bell(i, self.units)),
            _product(_product(total, c_prev), _bell(f, self.units)),
            _product(_product(total, i), bent),
            _product(_product(dh, tanhc), _bell(o, self.units)),
        ]
        rounded = [Inexact(p.value, few(p.error, np.abs(p.value))) for p in parts]
        passed = _product(total, f)
        return _side_by_side(rounded), Inexact(passed.value, self.units.one(passed.error, np.abs(passed.value)))

    def _before(self, k: int, states: Inexact, initial: Inexact) -> Inexact:
        """The state each step started from."""
        step, start = (-1, slice(-1, None)) if k % self.directions else (1, slice(1))
        came = np.roll(self.active, step, axis=0)
        came[start] = False
        return Inexact(
            *(np.where(came, np.roll(s, step, axis=0), first) for s, first in zip(states, initial, strict=True))
        )

    def _parameters(self, k: int, gates: Inexact, x: Inexact) -> list[Inexact]:
        factors = [x, self._masked(self._before(k, self.states[k].h, self.h0.at(k)))]
        found = [self._summed(k, gates, factor) for factor in factors]
        ones = exactly(np.ones((*gates.value.shape[:2], 1)))
        biases = len(self.params[k]) - 2
        if biases:
            db = self._summed(k, gates, ones)
            found += [Inexact(db.value[:, 0], db.error[:, 0])] * biases
        return found

    def _summed(self, k: int, gates: Inexact, factor: Inexact) -> Inexact:
        """Σ Gᵀ·factor over steps and batch."""
        g, e, x, ex = (a.reshape(-1, a.shape[-1]) for a in (*gates, *factor))
        value = g.T @ x
        error = np.sqrt((e**2).T @ x**2 + (g**2).T @ ex**2)
        if self.units.stored:
            error = _hypot(error, self.units.stored * self._partial_sums(k, gates.value, factor.value))
        return Inexact(value, error + self.units.sum(len(g)) * (np.abs(g).T @ np.abs(x)))

    def _partial_sums(self, k: int, gates: Array, factor: Array) -> Array:
        """What step by step is stored while the gradient of a parameter is added up, as the root of its squares."""
        sofar = squares = np.zeros((gates.shape[-1], factor.shape[-1]))
        for t in reversed(self.steps(k)):
            here = gates[t].T @ factor[t]
            sofar = sofar + here
            squares = squares + here**2 + np.square(sofar)
        return np.asarray(np.sqrt(squares + np.square(sofar)))


def _bell(gate: Inexact, units: Units) -> Inexact:
    """s·(1 − s), whose slope is 1 − 2s."""
    error = np.abs(1 - 2 * gate.value) * gate.error + gate.error**2
    return Inexact(gate.value * (1 - gate.value), units.few(error, np.abs(gate.value)))
