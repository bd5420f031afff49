"""Gates: i, f, g, o in blocks of rows (parameters) or columns (the cell)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Recomputed, as_computed, as_given, every_array

_ROWS = ("params", "dparamsOut")
_COLUMNS = ("storage", "input_gates", "hidden_gates", "input_bias", "hidden_bias")
_COLUMNS_WRITTEN = ("gradGatesOut", "gradBiasOut", "storageOut")


def in_the_other_order(case: LoadedCase) -> Iterator[Recomputed]:
    """The other order may be in what is read, in what is written, or in both."""
    read = [a.name for a in case.op.inputs if a.snake in (*_ROWS, *_COLUMNS)]
    written = [a.name for a in case.op.outputs if a.name in (*_ROWS, *_COLUMNS_WRITTEN)]
    if read and written:
        yield Recomputed(every_array(_reordered), _reordered, words=_where(read + written))
    if read:
        yield Recomputed(every_array(_reordered), as_computed, words=_where(read))
    if written:
        yield Recomputed(as_given, _reordered, words=_where(written))


def lists_exchanged(case: LoadedCase) -> Iterator[Recomputed]:
    if {"g", "f"} <= case.op.by_name.keys():
        yield Recomputed(lambda case, arguments: {**arguments, "g": arguments["f"], "f": arguments["g"]})


def _where(names: list[str]) -> dict[str, Text]:
    return {"where": Text(" and ".join(names), "、".join(names))}


def _reordered(case: LoadedCase, name: str, values: Array) -> Array:
    """Blocks i, f, g, o as i, g, f, o, and back."""
    stem = name.partition("[")[0]
    if stem not in (*_ROWS, *_COLUMNS, *_COLUMNS_WRITTEN):
        return values
    axis = 0 if stem in _ROWS else values.ndim - 1
    i, f, g, o = np.split(values, 4, axis)
    return np.concatenate([i, g, f, o], axis)
