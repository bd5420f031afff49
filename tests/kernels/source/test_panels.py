"""Weights become panels, whole rows of them, past the caches or not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("numba")

from aclnn.kernels.matmul.tiles import columns, packed_columns
from aclnn.kernels.native import jit
from aclnn.kernels.native.threads import Work


def panels_of(weight: np.ndarray, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What packing makes of [output][term]: panel by panel, [row][column], zeros beside the last output."""
    outputs, found = len(weight), []
    terms = weight.reshape(outputs, -1)[:, places[np.argsort(rows)]]
    for first in range(0, outputs, columns()):
        some = terms[first : first + columns()]
        wide = np.zeros((packed_columns(outputs) - first, terms.shape[1]), "f4")[: columns()]
        wide[: len(some)] = some
        found.append(wide.T.ravel())
    return np.concatenate(found)


@pytest.mark.parametrize(
    ("outputs", "channels", "taps"),
    [(1, 3, 9), (37, 20, 9), (150, 16, 9), (64, 100, 1), (70, 23, 4), (160, 800, 9), (128, 2100, 4)],
    ids=["one", "odd", "panels", "one tap", "few", "streamed", "streamed, whole panels"],
)
@pytest.mark.parametrize("by_taps", [False, True])
@pytest.mark.parametrize("strip", [16, None])
@pytest.mark.parametrize("begin", [0, 4])
@pytest.mark.parametrize("side_by_side", [False, True], ids=["terms", "outputs"])
def test_weights_are_packed(
    outputs: int, channels: int, taps: int, by_taps: bool, strip: int | None, begin: int, side_by_side: bool
) -> None:
    if strip is not None and columns() % strip:
        pytest.skip("a panel is narrower than that strip")
    rng, strip = np.random.default_rng(1), strip or columns()
    terms = channels * taps
    elements = rng.standard_normal(outputs * terms + begin).astype("f4")[begin:]
    weight = elements.reshape(terms, outputs).T if side_by_side else elements.reshape(outputs, terms)
    places = np.arange(terms)
    rows = (places % taps * channels + places // taps) if by_taps else places
    to_next_output, to_next_term = (s // 4 for s in weight.strides)
    given, strides = (
        np.concatenate([places * to_next_term, rows]),
        np.array([outputs * terms, to_next_output, 1, 0, terms]),
    )
    memory = np.full(packed_columns(outputs) * terms + 16, np.nan, "f4")
    packed = memory[-memory.ctypes.data // 4 % 16 :][: packed_columns(outputs) * terms]
    for output, bad in itertools.product((0, outputs - 1), (np.float32(1), np.inf, np.nan)):
        found, weight[output, terms - 1] = np.zeros(1, "f4"), bad
        arguments = [elements.ctypes.data, packed.ctypes.data, found.ctypes.data, outputs, terms]
        arguments += [given.ctypes.data, strides.ctypes.data, strip]
        Work(jit.load("panels.pack_taps", "FFFiiIIi"), -(-outputs // strip), 1, arguments, 2).run()
        np.testing.assert_array_equal(packed, panels_of(weight, places, rows))
        assert found[0] == (not np.isfinite(bad))
        weight[output, terms - 1] = 1
