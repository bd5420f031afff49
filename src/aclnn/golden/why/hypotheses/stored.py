"""Convolutions of 16 bits whose partial sums are stored in 16 bits: tap by tap, or picture by picture.

A kernel that makes a convolution of one matrix product per picture, and adds into the result itself, rounds at every
addition. What comes out can be computed to the bit, so it can be told from any other fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.dtype import BFLOAT16, FLOAT16, DType
from aclnn.base.geometry import Array
from aclnn.base.taps import every_tap, tap_ranges, taps_first, taps_last
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Recomputed, computed_as
from aclnn.ops.convolution import channels_last, channels_second, flat
from aclnn.runtime.reference import arguments

_BY_TAP = Text("tap by tap", "逐个核元素")
_BY_PICTURE = Text("picture by picture", "逐张图")


class Made(NamedTuple):
    """What an output is if its sums are stored in 16 bits, and where."""

    values: Array
    dtype: DType
    between: Text


def between_parts(case: LoadedCase) -> Iterator[Recomputed]:
    for output, (between, _) in _makers(case).items():
        yield Recomputed(
            instead=partial(_values, output),
            explains=partial(_is, output),
            words={"narrow": computed_as(case), "between": between},
        )


def made(case: LoadedCase, output: str) -> Made | None:
    """An output so computed; None if it is none of a convolution of 16 bits, or has no such sums."""
    maker = _makers(case).get(output)
    if maker is None:
        return None
    dtype = computed_as(case)
    return Made(maker[1](Arrays(case, dtype)), dtype, maker[0])


def _makers(case: LoadedCase) -> Mapping[str, tuple[Text, Callable[[Arrays], Array]]]:
    """How each output that can be so is computed, and between what its sums are stored."""
    if case.op.family != "Convolution" or computed_as(case) not in (FLOAT16, BFLOAT16):
        return {}
    if case.op.name.endswith("Backward"):
        weights = {"gradWeight": (_BY_PICTURE, _grad_weight), "gradBias": (_BY_PICTURE, _grad_bias)}
        return weights if case.call["transposed"] else {"gradInput": (_BY_TAP, _grad_input), **weights}
    return {"output": (_BY_TAP, _transposed_output)} if case.call["transposed"] else {}


def _is(wanted: str, case: LoadedCase, output: str) -> bool:
    return output == wanted


def _values(wanted: str, case: LoadedCase, output: str) -> Array | None:
    found = made(case, output) if output == wanted else None
    return None if found is None else found.values


class Arrays:
    """The tensors of a case in groups, channels last, and where its taps meet."""

    def __init__(self, case: LoadedCase, dtype: DType):
        self.given, self.dtype = arguments(case.op, case.call, case.given), dtype
        given: dict[str, Any] = self.given
        self.groups, self.transposed = given["groups"], given["transposed"]
        self.result = given["grad_output"].shape if "grad_output" in given else case.call["output"].shape
        self.x = channels_last(given["input"].astype(np.float64), self.groups)
        self.w = taps_first(given["weight"].astype(np.float64), self.groups, self.transposed)
        sizes = (self.result[2:], self.x.shape[2:-1], self.w.shape[:-3])
        geometry = (given["stride"], given["padding"], given["dilation"])
        self.taps = list(every_tap(tap_ranges(*sizes, *geometry, self.transposed)))

    @property
    def g(self) -> Array:
        return channels_last(self.given["grad_output"].astype(np.float64), self.groups)

    def rounded(self, values: Array) -> Array:
        """As the kernel stores it: a sum of float32, in 16 bits."""
        return np.asarray(values.astype(np.float32).astype(self.dtype.numpy).astype(np.float64))


def _grad_input(a: Arrays) -> Array:
    g, found = a.g, np.zeros(a.x.shape)
    for q, u, i in a.taps:
        found[i] = a.rounded(found[i] + a.rounded((flat(g[u]) @ a.w[q]).reshape(found[i].shape)))
    return np.reshape(channels_second(found), a.given["input"].shape)


def _transposed_output(a: Arrays) -> Array:
    groups, batch = a.x.shape[:2]
    found = np.zeros((groups, batch, *a.result[2:], a.w.shape[-2]))
    for q, u, i in a.taps:
        part = flat(a.x[i]) @ a.w[q].swapaxes(1, 2)
        found[u] = a.rounded(found[u] + a.rounded(part.reshape(found[u].shape)))
    by_channel, bias = channels_second(found).reshape(a.result), a.given["bias"]
    if bias is None:
        return np.asarray(by_channel)
    return a.rounded(by_channel + bias.astype(np.float64).reshape(-1, *(1,) * (len(a.result) - 2)))


def _grad_weight(a: Arrays) -> Array:
    g, found = a.g, np.zeros(a.w.shape)
    for picture in range(a.x.shape[1]):
        one = slice(picture, picture + 1)
        here, there = g[:, one], a.x[:, one]
        for q, u, i in a.taps:
            found[q] = a.rounded(found[q] + flat(here[u]).swapaxes(1, 2) @ flat(there[i]))
    return taps_last(found, a.transposed)


def _grad_bias(a: Arrays) -> Array:
    grad = a.given["grad_output"].astype(np.float64)
    found = np.zeros(grad.shape[1])
    for picture in grad:
        found = a.rounded(found + a.rounded(picture.reshape(len(found), -1).sum(axis=1)))
    return found
