"""Parameters of the LSTM: per layer and direction w_ih, w_hh and, with bias, b_ih, b_hh."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Recomputed, as_computed, as_given, every_array

_DIRECTIONS = (Text("forward", "正向"), Text("reverse", "反向"))
_MATRICES = (((0,), "w_ih"), ((1,), "w_hh"), ((0, 1), Text("w_ih and w_hh", "w_ih与w_hh")))
_WAYS = (
    (True, True, Text("read and written", "读取与写出")),
    (True, False, Text("read", "读取")),
    (False, True, Text("written", "写出")),
)


def without_bias(case: LoadedCase) -> Iterator[Recomputed]:
    directions = 1 + case.call["bidirectional"] if case.call["hasBias"] else 0
    for direction in range(directions):
        gone = partial(_no_bias, direction)
        yield Recomputed(every_array(gone), gone, words={"direction": _DIRECTIONS[direction]})


def transposed(case: LoadedCase) -> Iterator[Recomputed]:
    for chosen, what in _MATRICES:
        for read, written, done in _WAYS:
            yield Recomputed(
                every_array(partial(_taken_transposed, chosen)) if read else as_given,
                partial(_made_transposed, chosen) if written else as_computed,
                words={"what": what, "done": done, "whose": "or its gradient " if written else ""},
            )


def _parameter(case: LoadedCase, name: str) -> tuple[int | None, int | None]:
    """The direction a parameter is of, and which of its direction's parameters it is; None of what is no parameter."""
    stem, _, index = name.rstrip("]").partition("[")
    if stem not in ("params", "dparamsOut"):
        return None, None
    per_direction = 4 if case.call["hasBias"] else 2
    whose, which = divmod(int(index), per_direction)
    return whose % (1 + case.call["bidirectional"]), which


def _no_bias(direction: int, case: LoadedCase, name: str, values: Array) -> Array:
    whose, which = _parameter(case, name)
    return np.zeros_like(values) if whose == direction and which in (2, 3) else values


def _taken_transposed(chosen: tuple[int, ...], case: LoadedCase, name: str, values: Array) -> Array:
    return values.reshape(values.shape[::-1]).T if _parameter(case, name)[1] in chosen else values


def _made_transposed(chosen: tuple[int, ...], case: LoadedCase, name: str, values: Array) -> Array:
    return np.reshape(values.T, values.shape) if _parameter(case, name)[1] in chosen else values
