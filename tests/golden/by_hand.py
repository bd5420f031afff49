"""Gradients computed by hand, for faults that no argument of the operator makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.golden.planting import Array, Planted


def accumulated(terms: Array, dtype: Any) -> Array:
    total = np.zeros(terms.shape[1:], dtype)
    for term in terms:
        total = (total + term.astype(dtype)).astype(dtype)
    return total


def lstm_backwards(run: Planted, product: Callable[[Array, Array], Array]) -> tuple[Array, Array, Array]:
    """One layer and direction backwards, with another matrix product: dx, dhPrev and the gradients of the gates."""
    given = {k: [a.astype(np.float32) for a in v] if isinstance(v, list) else v for k, v in run.given.items()}
    i, g, f, o, c, tanhc = (given[n][0] for n in ("i", "g", "f", "o", "c", "tanhc"))
    w_ih, w_hh, c0 = given["params"][0], given["params"][1], given["hx"][1]
    dy, dh, dc = (given[n].astype(np.float32) for n in ("dy", "dh", "dc"))
    dh_next, dc_next, dx, gates = dh[0], dc[0], [], []
    for t in reversed(range(len(i))):
        c_prev = c[t - 1] if t else c0[0]
        dh_t = dy[t] + dh_next
        dc_t = dh_t * o[t] * (1 - tanhc[t] ** 2) + dc_next
        parts = [dc_t * g[t] * i[t] * (1 - i[t]), dc_t * c_prev * f[t] * (1 - f[t])]
        parts += [dc_t * i[t] * (1 - g[t] ** 2), dh_t * tanhc[t] * o[t] * (1 - o[t])]
        gate = np.concatenate(parts, -1)
        dh_next, dc_next = product(gate, w_hh), dc_t * f[t]
        dx.append(product(gate, w_ih))
        gates.append(gate)
    return np.stack(dx[::-1]), dh_next[None], np.stack(gates[::-1])


def product_by_picture(run: Planted) -> dict[str, Any]:
    """The gradients of a plain convolution with one tap, or of several along the last axis, by hand."""
    g, x, w = (run.given[n].astype(np.float32) for n in ("gradOutput", "input", "weight"))
    taps, dtype = w.shape[-1], run.given["input"].dtype
    wide = x.shape[-1] - taps + 1
    grad_x = np.zeros(x.shape, dtype)
    for q in range(taps):
        part = np.einsum("nohw,oc->nchw", g, w[:, :, 0, q]).astype(dtype)
        grad_x[..., q : q + wide] = grad_x[..., q : q + wide] + part
    grad_w, grad_b = np.zeros(w.shape, dtype), np.zeros(len(w), dtype)
    for n in range(len(g)):
        for q in range(taps):
            one = np.einsum("ohw,chw->oc", g[n], x[n, ..., q : q + wide], dtype=np.float32)
            grad_w[:, :, 0, q] = (grad_w[:, :, 0, q].astype(np.float32) + one).astype(dtype)
        grad_b = grad_b + g[n].sum(axis=(1, 2)).astype(dtype)
    return {"gradInput": grad_x, "gradWeight": grad_w, "gradBias": grad_b}
