"""Parameters of the LSTM: per layer and direction w_ih, w_hh and, with bias, b_ih, b_hh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        gone = partial(_no_bias, direction)
        yield Recomputed(partial(_read, gone), partial(_written, gone), words={"direction": _DIRECTIONS[direction]})


def transposed(case: LoadedCase) -> Iterator[Recomputed]:
    for chosen, what in _MATRICES:
        for read, written, done in _WAYS:
            yield Recomputed(
                partial(_read, partial(_taken_transposed, chosen)) if read else as_given,
                partial(_written, partial(_made_transposed, chosen)) if written else as_computed,
                words={"what": what, "done": done, "whose": "or its gradient " if written else ""},
            )


Change = Callable[[int, int, Array], Array]  # of a parameter: its direction, which it is of its direction's, its values


def _read(change: Change, case: LoadedCase, arguments: Arguments) -> Arguments:
    changed = [change(*_parameter(case, i), values) for i, values in enumerate(arguments["params"])]
    return {**arguments, "params": changed}


def _written(change: Change, case: LoadedCase, output: str, values: Array) -> Array:
    name, _, index = output.rstrip("]").partition("[")
    return change(*_parameter(case, int(index)), values) if name == "dparamsOut" else values


def _parameter(case: LoadedCase, index: int) -> tuple[int, int]:
    """The direction a parameter is of, and which of its direction's parameters it is."""
    per_direction = 4 if case.call["hasBias"] else 2
    directions = 1 + case.call["bidirectional"]
    return index // per_direction % directions, index % per_direction


def _no_bias(direction: int, whose: int, which: int, values: Array) -> Array:
    return np.zeros_like(values) if whose == direction and which >= 2 else values


def _taken_transposed(chosen: tuple[int, ...], whose: int, which: int, values: Array) -> Array:
    return values.reshape(values.shape[::-1]).T if which in chosen else values


def _made_transposed(chosen: tuple[int, ...], whose: int, which: int, values: Array) -> Array:
    return np.reshape(values.T, values.shape) if which in chosen else values
