"""Parameters of the LSTM: per layer and direction w_ih, w_hh and, with bias, b_ih, b_hh."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Arguments, Hypothesis, as_computed, as_given


def of(case: LoadedCase) -> Iterator[Hypothesis]:
    directions = 1 + case.call["bidirectional"]
    for direction in range(directions if case.call["hasBias"] else 0):
        yield _missing_bias(direction, (Text("forward", "正向"), Text("reverse", "反向"))[direction])
    for chosen, what in (((0,), Text("w_ih", "w_ih")), ((1,), Text("w_hh", "w_hh")), ((0, 1), _BOTH)):
        yield from _transposed(chosen, what)


_BOTH = Text("w_ih and w_hh", "w_ih与w_hh")


def _missing_bias(direction: int, whose: Text) -> Hypothesis:
    return Hypothesis(
        "missing-bias",
        Text(f"the bias of the {whose.en} direction is missing", f"缺少{whose.zh}方向的偏置"),
        Text(f"without the bias of the {whose.en} direction", f"去掉{whose.zh}方向的偏置重算"),
        partial(_without_bias, direction),
        partial(_without_grad_bias, direction),
    )


def _transposed(chosen: tuple[int, ...], what: Text) -> Iterator[Hypothesis]:
    for read, written in ((True, True), (True, False), (False, True)):
        en = ("read" if read else "") + (" and " if read and written else "") + ("written" if written else "")
        zh = ("读取" if read else "") + ("与" if read and written else "") + ("写出" if written else "")
        yield Hypothesis(
            "transposed-weight",
            Text(f"{what.en} {'or its gradient ' if written else ''}is {en} transposed", f"{what.zh}按转置{zh}"),
            Text(f"with {what.en} transposed", f"以转置的{what.zh}重算"),
            partial(_read_transposed, chosen) if read else as_given,
            partial(_written_transposed, chosen) if written else as_computed,
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
