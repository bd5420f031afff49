"""Gates: i, f, g, o in blocks of rows (parameters) or columns (the cell)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import After, Arguments, Before, Recomputed, as_computed, as_given

_GATED_INPUTS = ("params", "storage", "input_gates", "hidden_gates", "input_bias", "hidden_bias")
_GATED_OUTPUTS = ("gradGatesOut", "gradBiasOut", "storageOut")


def in_the_other_order(case: LoadedCase) -> Iterator[Recomputed]:
    for before, after, where in _readings(case):
        yield Recomputed(before, after, words={"where": where})


def lists_exchanged(case: LoadedCase) -> Iterator[Recomputed]:
    if {"g", "f"} <= case.op.by_name.keys():
        yield Recomputed(lambda case, arguments: {**arguments, "g": arguments["f"], "f": arguments["g"]})


def _readings(case: LoadedCase) -> Iterator[tuple[Before, After, Text]]:
    """Where the other order may be: in what is read, in what is written, or in both."""
    read = [a.name for a in case.op.inputs if a.snake in _GATED_INPUTS]
    written = [a.name for a in case.op.outputs if a.name in (*_GATED_OUTPUTS, "dparamsOut")]
    if read and written:
        yield _read, _written, _listed(read + written)
    if read:
        yield _read, as_computed, _listed(read)
    if written:
        yield as_given, _written, _listed(written)


def _listed(names: list[str]) -> Text:
    return Text(" and ".join(names), "、".join(names))


def _read(case: LoadedCase, arguments: Arguments) -> Arguments:
    def one(name: str, value: Any) -> Any:
        if name not in _GATED_INPUTS or value is None:
            return value
        if isinstance(value, list):
            return [_other_order(v, 0) for v in value]
        return _other_order(value, value.ndim - 1)

    return {name: one(name, value) for name, value in arguments.items()}


def _written(case: LoadedCase, output: str, values: Array) -> Array:
    if output.startswith("dparamsOut"):
        return _other_order(values, 0)
    return _other_order(values, values.ndim - 1) if output in _GATED_OUTPUTS else values


def _other_order(array: Array, axis: int) -> Array:
    """Blocks i, f, g, o as i, g, f, o, and back."""
    i, f, g, o = np.split(array, 4, axis)
    return np.concatenate([i, g, f, o], axis)
