"""Weights of convolutions, (out, in, taps …), and of ConvTbc, (taps, in, out): their direction and their channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.why.hypotheses.model import Arguments, Recomputed

Change = Callable[[LoadedCase, Array], Array]


def turned_round(case: LoadedCase) -> Iterator[Recomputed]:
    if max(_taps(case), default=1) > 1:
        yield Recomputed(partial(_with_weight, _flipped), partial(_with_grad_weight, _flipped))


def transposed(case: LoadedCase) -> Iterator[Recomputed]:
    if min(_matrix(case)) > 1:
        yield Recomputed(partial(_with_weight, _read_transposed), partial(_with_grad_weight, _written_transposed))


def _taps(case: LoadedCase) -> tuple[int, ...]:
    shape: tuple[int, ...] = case.call["weight"].shape
    return shape[:1] if case.op.family == "ConvTbc" else shape[2:]


def _matrix(case: LoadedCase) -> tuple[int, ...]:
    shape: tuple[int, ...] = case.call["weight"].shape
    return shape[1:] if case.op.family == "ConvTbc" else shape[:2]


def _with_weight(change: Change, case: LoadedCase, arguments: Arguments) -> Arguments:
    return {**arguments, "weight": change(case, arguments["weight"])}


def _with_grad_weight(change: Change, case: LoadedCase, output: str, values: Array) -> Array:
    return change(case, values) if output == "gradWeight" else values


def _flipped(case: LoadedCase, kernel: Array) -> Array:
    return np.flip(kernel, 0 if case.op.family == "ConvTbc" else tuple(range(2, kernel.ndim)))


def _channel_axes(case: LoadedCase) -> tuple[int, int]:
    return (1, 2) if case.op.family == "ConvTbc" else (0, 1)


def _read_transposed(case: LoadedCase, kernel: Array) -> Array:
    """The same memory, taken for a kernel whose two channel axes stand the other way round."""
    a, b = _channel_axes(case)
    shape = list(kernel.shape)
    shape[a], shape[b] = shape[b], shape[a]
    return np.swapaxes(kernel.reshape(shape), a, b)


def _written_transposed(case: LoadedCase, kernel: Array) -> Array:
    return np.reshape(np.swapaxes(kernel, *_channel_axes(case)), kernel.shape)
