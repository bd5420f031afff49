"""Parameters of the LSTM: per layer and direction w_ih, w_hh and, with bias, b_ih, b_hh."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Arguments, Recomputed, as_computed, as_given

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
        words = {"direction": _DIRECTIONS[direction]}
        yield Recomputed(partial(_without_bias, direction), partial(_without_grad_bias, direction), words=words)


def transposed(case: LoadedCase) -> Iterator[Recomputed]:
    for chosen, what in _MATRICES:
        for read, written, done in _WAYS:
            yield Recomputed(
                partial(_read_transposed, chosen) if read else as_given,
                partial(_written_transposed, chosen) if written else as_computed,
                words={"what": what, "done": done, "whose": "or its gradient " if written else ""},
            )


def _parameter(case: LoadedCase, index: int) -> tuple[int, int]:
    """The direction a parameter is of, and which of its direction's parameters it is."""
    per_direction = 4 if case.call["hasBias"] else 2
    directions = 1 + case.call["bidirectional"]
    return index // per_direction % directions, index % per_direction


def _index(output: str) -> int | None:
    return int(output[len("dparamsOut[") : -1]) if output.startswith("dparamsOut[") else None


def _without_bias(direction: int, case: LoadedCase, arguments: Arguments) -> Arguments:
    def one(index: int, value: Array) -> Array:
        whose, which = _parameter(case, index)
        return np.zeros_like(value) if whose == direction and which >= 2 else value

    return {**arguments, "params": [one(i, v) for i, v in enumerate(arguments["params"])]}


def _without_grad_bias(direction: int, case: LoadedCase, output: str, values: Array) -> Array:
    index = _index(output)
    if index is None:
        return values
    whose, which = _parameter(case, index)
    return np.zeros_like(values) if whose == direction and which >= 2 else values


def _read_transposed(chosen: tuple[int, ...], case: LoadedCase, arguments: Arguments) -> Arguments:
    def one(index: int, value: Array) -> Array:
        return value.reshape(value.shape[::-1]).T if _parameter(case, index)[1] in chosen else value

    return {**arguments, "params": [one(i, v) for i, v in enumerate(arguments["params"])]}


def _written_transposed(chosen: tuple[int, ...], case: LoadedCase, output: str, values: Array) -> Array:
    index = _index(output)
    if index is None or _parameter(case, index)[1] not in chosen:
        return values
    return np.reshape(values.T, values.shape)
