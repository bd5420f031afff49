"""How far an LSTM that stores every value in 16 bits may be off: neither more nor less than its stores explain."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, DType
from aclnn.golden.judge.recurrent import FALSE_ALARM, STORED, Lstm
from aclnn.golden.read.msprobe.arguments import Recurrence
from tests.golden.dumping import DumpWriter

Array = np.ndarray[Any, Any]
TYPES = {FLOAT16: np.float16, BFLOAT16: ml_dtypes.bfloat16}
STEPS, BATCH, INPUTS, HIDDEN = 12, 48, 10, 16
LAMBDA = 3.976  # by hand from the derivation


class Step(NamedTuple):
    """What one step keeps for the way back."""

    i: Array
    f: Array
    g: Array
    o: Array
    before: Array
    tanhc: Array


class ByHand:
    """An LSTM of one layer that computes in float32 and stores every single value in a narrow type."""

    def __init__(self, seed: int, dtype: DType):
        draw, self.numpy = np.random.default_rng(seed), TYPES[dtype]
        shapes = ((4 * HIDDEN, INPUTS), (4 * HIDDEN, HIDDEN), (4 * HIDDEN,), (4 * HIDDEN,))
        self.params = [self.kept(0.4 * draw.standard_normal(s)) for s in shapes]
        self.x = self.kept(draw.standard_normal((STEPS, BATCH, INPUTS)))
        self.dy = self.kept(draw.standard_normal((STEPS, BATCH, HIDDEN)))
        self.steps: list[Step] = []

    def kept(self, value: Array) -> Array:
        return value.astype(np.float32).astype(self.numpy).astype(np.float32)

    def forward(self) -> tuple[Array, Array]:
        k = self.kept
        w_ih, w_hh, b_ih, b_hh = self.params
        h = c = np.zeros((BATCH, HIDDEN), np.float32)
        seen = []
        for x in self.x:
            a = k(k(k(x @ w_ih.T) + b_ih) + k(k(h @ w_hh.T) + b_hh))
            i, f, g, o = np.split(a, 4, -1)
            i, f, o, g = k(1 / (1 + np.exp(-i))), k(1 / (1 + np.exp(-f))), k(1 / (1 + np.exp(-o))), k(np.tanh(g))
            before, c = c, k(k(f * c) + k(i * g))
            tanhc = k(np.tanh(c))
            h = k(o * tanhc)
            seen.append(h)
            self.steps.append(Step(i, f, g, o, before, tanhc))
        return np.stack(seen), c

    def backward(self) -> tuple[Array, Array]:
        """dx, and the gradient of a bias."""
        k = self.kept
        w_ih, w_hh, *_ = self.params
        dh = dc = np.zeros((BATCH, HIDDEN), np.float32)
        dx, bias = [], np.zeros(4 * HIDDEN, np.float32)
        for s, dy in zip(reversed(self.steps), self.dy[::-1], strict=True):
            dh = k(dy + dh)
            dc = k(k(k(dh * s.o) * k(1 - k(s.tanhc**2))) + dc)
            parts = [k(k(dc * s.g) * k(s.i * k(1 - s.i))), k(k(dc * s.before) * k(s.f * k(1 - s.f)))]
            parts += [k(k(dc * s.i) * k(1 - k(s.g**2))), k(k(dh * s.tanhc) * k(s.o * k(1 - s.o)))]
            gates = np.concatenate(parts, -1)
            dx.append(k(gates @ w_ih))
            dh, dc = k(gates @ w_hh), k(dc * s.f)
            bias = k(bias + k(gates.sum(0)))
        return np.stack(dx[::-1]), bias


def spread(dtype: DType, seeds: int) -> dict[str, Array]:
    """Of every output the errors of right results, in units of what is allowed."""
    found: dict[str, list[Array]] = {}
    for seed in range(seeds):
        made = ByHand(seed, dtype)
        (y, c), (dx, bias) = made.forward(), made.backward()
        zero = np.zeros((1, BATCH, HIDDEN), np.float32)
        exact = Lstm(Recurrence(made.x, zero, zero, made.params, 1, 1, None, dtype))
        dx_exact, _, _, params = exact.gradients(made.dy, zero, zero)
        results = exact.results()
        pairs = {"output": (y, results["output"]), "cy": (c[None], results["cy"])}
        pairs |= {"dx": (dx, dx_exact), "bias": (bias, params[2])}
        for name, (value, want) in pairs.items():
            found.setdefault(name, []).append((value - want.value).reshape(-1) / want.error.reshape(-1))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def test_the_factor_is_what_its_derivation_says() -> None:
    assert pytest.approx(FALSE_ALARM) == 2 * math.exp(-1.5 * STORED**2)
    assert pytest.approx(LAMBDA, rel=1e-3) == STORED


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_right_results_are_spread_as_the_bound_says(dtype: DType) -> None:
    """In units of the bound's own standard deviation, λ·√3 of which are allowed, right errors spread by at most 1.

    A factor half as large makes that more than 1, one twice as large less than what is asked for.
    """
    for name, ratios in spread(dtype, 6).items():
        deviation = float(np.sqrt(np.mean(ratios**2))) * LAMBDA * math.sqrt(3)
        assert np.abs(ratios).max() < 1, name
        assert LEAST[name] < deviation < 1, name


LEAST = {"output": 0.5, "cy": 0.5, "dx": 0.35, "bias": 0.4}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("deviations", "wrong"), [(0, False), (8, False), (14, True)])
def test_a_fault_just_above_is_found_and_one_just_below_is_not(
    dtype: DType, deviations: float, wrong: bool, tmp_path: Path
) -> None:
    """A fault in one element, in units of how far right elements of that output were seen to stray."""
    made = ByHand(3, dtype)
    y, c = made.forward()
    zero = np.zeros((1, BATCH, HIDDEN), np.float32)
    exact = Lstm(Recurrence(made.x, zero, zero, made.params, 1, 1, None, dtype)).results()["output"]
    seen = float(np.sqrt(np.mean(((y - exact.value) / exact.error) ** 2)))
    where = (STEPS - 2, 5, 7)
    off = y.copy()
    if deviations:
        off[where] = exact.value[where] + deviations * seen * exact.error[where]
    w = DumpWriter(tmp_path)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    params = {n: p.astype(made.numpy) for n, p in zip(names, made.params, strict=True)}
    x, narrow, h, last = (v.astype(made.numpy) for v in (made.x, off, y[-1:], c[None]))
    w.module("Module.rnn.LSTM", 0, [x], [narrow, [h, last]], params)
    (call,) = aclnn.compare(w.finish()).calls
    assert [r.output for r in call.reports if r.sound is False] == (["output"] if wrong else [])
    if wrong:
        found = call.reports[0].measured
        assert found is not None
        assert (found.misses, found.listed[0].index) == (1, where)
