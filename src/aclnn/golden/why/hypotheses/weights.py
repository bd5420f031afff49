"""Weights of convolutions, (out, in, taps …), and of ConvTbc, (taps, in, out): their direction and their channels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.why.hypotheses.model import Recomputed, every_array

_NAMES = ("weight", "gradWeight")


def turned_round(case: LoadedCase) -> Iterator[Recomputed]:
    if max(_taps(case), default=1) > 1:
        yield Recomputed(every_array(_flipped), _flipped)


def transposed(case: LoadedCase) -> Iterator[Recomputed]:
    a, b = _channel_axes(case)
    if min(case.call["weight"].shape[a], case.call["weight"].shape[b]) > 1:
        yield Recomputed(every_array(_read_transposed), _written_transposed)


def _taps(case: LoadedCase) -> tuple[int, ...]:
    shape: tuple[int, ...] = case.call["weight"].shape
    return shape[:1] if case.op.family == "ConvTbc" else shape[2:]


def _channel_axes(case: LoadedCase) -> tuple[int, int]:
    return (1, 2) if case.op.family == "ConvTbc" else (0, 1)


def _flipped(case: LoadedCase, name: str, kernel: Array) -> Array:
    axes = 0 if case.op.family == "ConvTbc" else tuple(range(2, kernel.ndim))
    return np.flip(kernel, axes) if name in _NAMES else kernel


def _read_transposed(case: LoadedCase, name: str, kernel: Array) -> Array:
    """The same memory, taken for a kernel whose two channel axes stand the other way round."""
    if name not in _NAMES:
        return kernel
    a, b = _channel_axes(case)
    shape = list(kernel.shape)
    shape[a], shape[b] = shape[b], shape[a]
    return np.swapaxes(kernel.reshape(shape), a, b)


def _written_transposed(case: LoadedCase, name: str, kernel: Array) -> Array:
    return np.reshape(np.swapaxes(kernel, *_channel_axes(case)), kernel.shape) if name in _NAMES else kernel
