"""What the data of a case look like, as tables write it: distributions, and NaN or Inf put among them.

data      normal:0:2                          every input that takes any number
          gradOutput=uniform:-1:1 weight=constant:0.5
inject    input=nan:3 gradOutput=inf:1,-inf:2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.status import invalid
from aclnn.contract.cases import Case, draw
from aclnn.contract.model import Arg

_KINDS: dict[str, tuple[int, Callable[..., Array]]] = {
    # name: how many numbers follow it, and what it draws
    "normal": (2, lambda rng, shape, mean=0.0, spread=1.0: rng.normal(mean, spread, shape)),
    "uniform": (2, lambda rng, shape, low=-1.0, high=1.0: rng.uniform(low, high, shape)),
    "constant": (1, lambda rng, shape, value=0.5: np.full(shape, value)),
}
_SPECIAL = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


@dataclass(frozen=True)
class Drawn:
    """Contents of an argument: a distribution (or what the argument's domain asks for), then special values."""

    arg: Arg
    kind: str = ""
    numbers: tuple[float, ...] = ()
    special: tuple[tuple[float, int], ...] = ()

    def __call__(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        values = _KINDS[self.kind][1](rng, shape, *self.numbers) if self.kind else draw(self.arg.domain, shape, rng)
        flat = values.reshape(-1)
        places = rng.permutation(flat.size)
        for value, count in self.special:
            flat[places[:count]], places = value, places[count:]
        return values


def with_data(case: Case, data: str, inject: str) -> Case:
    """The case with the contents that the two cells of its row ask for."""
    drawn: dict[str, Drawn] = {}
    for name, text in _cells(case, data):
        drawn[name] = _distribution(case.op.by_name[name], text)
    for name, text in _cells(case, inject):
        drawn[name] = replace(drawn.get(name, Drawn(case.op.by_name[name])), special=_special(text))
    return replace(case, data={**case.data, **drawn}) if drawn else case


def _cells(case: Case, text: str) -> list[tuple[str, str]]:
    """(argument, value) pairs; a value without a name is for every input that takes any number."""
    given: list[tuple[str, str]] = []
    takers = {a.name: a for a in case.op.args if a.is_tensor and a.given and a.name not in case.data}
    for part in text.split():
        name, sign, value = part.rpartition("=")
        if sign and name not in takers:
            raise invalid(f"{case.op.name} has no input {name!r} to draw; choose among {', '.join(takers)}.")
        given += (
            [(name, value)] if sign else [(n, value) for n, a in takers.items() if a.domain in ("normal", "weight")]
        )
    return given


def _distribution(arg: Arg, text: str) -> Drawn:
    kind, *numbers = text.split(":")
    if kind not in _KINDS or len(numbers) > _KINDS[kind][0]:
        forms = ", ".join(f"{k}{':…' * n}" for k, (n, _) in _KINDS.items())
        raise invalid(f"{text!r} is no distribution; write one of {forms}.")
    return Drawn(arg, kind, tuple(_number(n, text) for n in numbers))


def _special(text: str) -> tuple[tuple[float, int], ...]:
    found = []
    for part in text.split(","):
        name, _, count = part.partition(":")
        times = whole_number(count or "1")
        if name not in _SPECIAL or times is None:
            raise invalid(f"{part!r} injects nothing; write nan:3, inf:1 or -inf:2.")
        found.append((_SPECIAL[name], times))
    return tuple(found)


def whole_number(text: str) -> int | None:
    """A count as tables write it: ASCII digits that fit into 60 bits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise invalid(f"{text!r} in {whole!r} is not a number.") from None
