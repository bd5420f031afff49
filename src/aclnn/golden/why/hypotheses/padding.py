"""Padding of convolutions: input u·stride − padding + tap·dilation is read at output u; a sign is easily wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.taps import padding_ends
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Arguments, Before, Hypothesis


def of(case: LoadedCase) -> Iterator[Hypothesis]:
    name = "pad" if case.op.family == "ConvTbc" else "padding"
    if not np.any(case.call[name]) or (_is_forward(case) and _is_transposed(case)):
        return
    yield Hypothesis(
        "padding-sign",
        Text(f"{name} was added where it must be subtracted", f"{name}的符号相反"),
        Text(f"with {name} of the other sign", f"以符号相反的{name}重算"),
        _with_padding_times(name, -1),
    )
    yield Hypothesis(
        "padding-ignored",
        Text(f"{name} was ignored", f"忽略了{name}"),
        Text(f"with {name} 0", f"以{name}为0重算"),
        _with_padding_times(name, 0),
    )


def _is_forward(case: LoadedCase) -> bool:
    return not case.op.name.endswith("Backward")


def _is_transposed(case: LoadedCase) -> bool:
    return "transposed" in case.op.by_name and bool(case.call["transposed"])


def _with_padding_times(name: str, factor: int) -> Before:
    """Another padding under the same sizes. A forward's size depends on its padding, so its input is moved instead."""

    def before(case: LoadedCase, arguments: Arguments) -> Arguments:
        asked = arguments[name]
        if not _is_forward(case):
            return {**arguments, name: factor * asked if isinstance(asked, int) else tuple(factor * p for p in asked)}
        moved = arguments["input"]
        for axis, front, size in _positions(case):
            moved = _moved(moved, axis, -factor * front, size)
        return {**arguments, "input": moved, name: 0 if isinstance(asked, int) else (0,) * len(asked)}

    return before


def _positions(case: LoadedCase) -> Iterator[tuple[int, int, int]]:
    """Of every spatial axis: its number in the input, the padding in front, and how many positions are visited."""
    call = case.call
    if case.op.family == "ConvTbc":
        yield 0, call["pad"], call["output"].shape[0] + call["weight"].shape[0] - 1
        return
    outputs, taps = call["output"].shape[2:], call["weight"].shape[2:]
    axes = zip(outputs, taps, call["stride"], padding_ends(call["padding"], len(taps)), call["dilation"], strict=True)
    for axis, (n, k, s, (front, _), d) in enumerate(axes, 2):
        yield axis, front, (n - 1) * s + d * (k - 1) + 1


def _moved(array: Array, axis: int, shift: int, size: int) -> Array:
    """`size` positions of an axis from `shift` on, zero where there are none."""
    positions = np.arange(shift, shift + size)
    inside = (positions >= 0) & (positions < array.shape[axis])
    shape = list(array.shape)
    shape[axis] = size
    found = np.zeros(shape, array.dtype)
    np.moveaxis(found, axis, 0)[inside] = np.moveaxis(array, axis, 0)[positions[inside]]
    return found
