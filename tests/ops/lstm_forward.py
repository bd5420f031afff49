"""An LSTM forwards in float64, for the tests: the states that the backward is given, and what it is the gradient of.

Positions where a sequence takes no part stay NaN, so that whoever reads one shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.contract.cases import Case, fill
from aclnn.ops.lstm import SAVED

Array = np.ndarray


@dataclass
class Forward:
    """Outputs and saved states, time-major; y is 0 where a sequence takes no part."""

    y: Array
    h: Array
    c: Array
    saved: dict[str, list[Array]]


def forward(x: Array, hx: Sequence[Array], params: Sequence[Array], layers: int, counts: Sequence[int]) -> Forward:
    """Layer by layer over time-major x; `counts[t]` sequences take part in step t."""
    h, c = (np.array(state, np.float64) for state in hx)
    directions, per = len(h) // layers, len(params) // len(h)
    saved: dict[str, list[Array]] = {name: [] for name in SAVED}
    for k in range(len(h)):
        if k % directions == 0 and k:
            x = np.concatenate(saved["h"][k - directions : k], axis=-1)
        steps = one_direction(x, h[k], c[k], params[k * per : (k + 1) * per], counts, reverse=k % directions == 1)
        for name in SAVED:
            saved[name].append(steps[name])
    top = np.concatenate(saved["h"][-directions:], axis=-1)
    return Forward(np.where(taking_part(counts, x.shape[1]), top, 0), h, c, saved)


def one_direction(
    x: Array, h: Array, c: Array, params: Sequence[Array], counts: Sequence[int], reverse: bool
) -> dict[str, Array]:
    """Runs one layer in one direction; h and c, given as the initial states, end as the last ones."""
    w_ih, w_hh, *biases = params
    kept = {name: np.full((len(x), *h.shape), np.nan) for name in SAVED}
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        n = counts[t]
        i, f, g, o = np.split(x[t, :n] @ w_ih.T + h[:n] @ w_hh.T + sum(biases), 4, axis=1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        c[:n] = f * c[:n] + i * g
        h[:n] = o * np.tanh(c[:n])
        now = {"i": i, "g": g, "f": f, "o": o, "h": h[:n], "c": c[:n], "tanhc": np.tanh(c[:n])}
        for name, value in now.items():
            kept[name][t, :n] = value
    return kept


def sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


def taking_part(counts: Sequence[int], batch: int) -> Array:
    return (np.arange(batch) < np.reshape(counts, (-1, 1)))[..., None]


def counts_of(case: Case) -> list[int]:
    """How many sequences take part in each step of a case."""
    steps, batch, _ = case.values["i"][0].shape
    return list(case.data.get("batchSizesOptional", [batch] * steps))


def fill_as_forward(case: Case, seed: int) -> tuple[dict[str, Any], Forward]:
    """The case filled, with the saved states of its forward, and NaN in what must not be read."""
    filled = fill(case, seed)
    counts = counts_of(case)
    part = taking_part(counts, case.values["i"][0].shape[1])
    for name in ("input", "dy"):
        view = time_major(case, filled[name].view)
        view[...] = np.where(part, view.astype(np.float64), np.nan)
    x = time_major(case, filled["input"].view).astype(np.float64)
    hx, params = ([t.view.astype(np.float64) for t in filled[name]] for name in ("hx", "params"))
    done = forward(x, hx, params, case.values["numLayers"], counts)
    for name in SAVED:
        for tensor, values in zip(filled[name], done.saved[name], strict=True):
            tensor.view[...] = values
    return filled, done


def time_major(case: Case, array: Array) -> Array:
    return array.swapaxes(0, 1) if case.values["batchFirst"] else array
