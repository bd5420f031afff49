"""The calls of ours in a dump: entries paired by name and number, each call once.

`Functional.conv2d.0.forward` and `.backward` are one call, `Module.net.conv.Conv2d.forward.0`, `.backward.0` and
`.parameters_grad.0` another; where a module made a function call that is in the dump too, that one is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aclnn.golden.read.msprobe.dump import Dump, Place, Recorded
from aclnn.golden.texts import Text

FORWARD, BACKWARD, PARAMETERS = "forward", "backward", "parameters_grad"

FUNCTIONS = re.compile(
    r"(?P<prefix>Functional|Torch|Tensor|Aten|NPU|VF)\.(?P<kind>conv[123]d|conv_transpose[123]d|conv_tbc|[sc]?elu)"
    r"(?P<inplace>_?)\.(?P<number>\d+)\.(?P<direction>forward|backward)"
)
MODULES = re.compile(
    r"(?P<path>Module\..+)\.(?P<kind>Conv[123]d|ConvTranspose[123]d|ELU|SELU|CELU|LSTM|LSTMCell)"
    r"\.(?P<direction>forward|backward|parameters_grad)\.(?P<number>\d+)"
)


class Unjudged(Exception):  # noqa: N818 - it is no error, but an answer
    """Why a call cannot be judged."""

    def __init__(self, en: str, zh: str):
        super().__init__(en)
        self.why = Text(en, zh)


def is_ours(name: str) -> bool:
    return bool(FUNCTIONS.fullmatch(name) or MODULES.fullmatch(name))


@dataclass(frozen=True)
class RecordedCall:
    """One call: what went in and came out, and the same of its gradients, where they are in the dump."""

    dump: Dump
    name: str  # without direction
    kind: str  # as a function of torch is called: conv2d, elu, LSTM
    is_module: bool
    forward: Mapping[str, Any] | None
    backward: Mapping[str, Any] | None
    in_place: bool = False

    @property
    def module(self) -> str:
        """The name of a module, without the number of the call."""
        return self.name.rpartition(".")[0]

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        found = self._part(self.forward, FORWARD)
        listed, named = found.get("input_args", []), found.get("input_kwargs", {})
        return listed if isinstance(listed, list) else [listed], named if isinstance(named, dict) else {}

    def results(self) -> list[Any]:
        found = self._part(self.forward, FORWARD).get("output")
        return found if isinstance(found, list) else [found]

    def parameters(self) -> Mapping[str, Recorded]:
        found = self._part(self.forward, FORWARD).get("parameters", {})
        return {n: p for n, p in found.items() if isinstance(p, Recorded)} if isinstance(found, dict) else {}

    def grad_results(self) -> list[Any]:
        found = self._part(self.backward, BACKWARD).get("input", [])
        return found if isinstance(found, list) else [found]

    def grad_arguments(self) -> list[Any]:
        found = self._part(self.backward, BACKWARD).get("output", [])
        return found if isinstance(found, list) else [found]

    def _part(self, part: Mapping[str, Any] | None, direction: str) -> Mapping[str, Any]:
        if isinstance(part, dict):
            return part
        zh = {FORWARD: "正向", BACKWARD: "反向"}[direction]
        raise Unjudged(f"its {direction} is not in the dump", f"dump中没有它的{zh}")


@dataclass(frozen=True)
class Unit:
    """What is judged at once: one direction of a call, or the gradients of a module's parameters."""

    name: str  # of its entry in the dump
    direction: str
    call: RecordedCall
    siblings: tuple[RecordedCall, ...] = ()  # of a module's parameters: every call of it that has a backward
    order: int = 0

    @property
    def place(self) -> Place | None:
        """The user's line; a gradient has that of its forward."""
        dump, call = self.call.dump, self.call
        stem, _, number = call.name.rpartition(".")
        return dump.place(f"{stem}.{FORWARD}.{number}" if call.is_module else f"{call.name}.{FORWARD}")


def units(dump: Dump) -> list[Unit]:
    """Everything there is to judge, in order of execution."""
    calls = {call.name: call for call in _calls(dump)}
    hidden = _seen_as_functions(dump, calls)
    found = []
    for order, name in enumerate(dump.entries):
        call, direction = _home(name)
        if call in hidden or (direction == PARAMETERS and f"{call.rpartition('.')[0]}." in _stems(hidden)):
            continue
        if direction == PARAMETERS:
            module = call.rpartition(".")[0]
            used = tuple(c for c in calls.values() if c.is_module and c.module == module and c.backward is not None)
            first = used[0] if used else RecordedCall(dump, call, _kind(name), True, None, None)
            found.append(Unit(name, direction, first, used, order))
        else:
            found.append(Unit(name, direction, calls[call], (), order))
    return found


def _stems(names: set[str]) -> set[str]:
    return {f"{name.rpartition('.')[0]}." for name in names}


def _home(name: str) -> tuple[str, str]:
    """The call that an entry belongs to, and which part of it the entry is."""
    function = FUNCTIONS.fullmatch(name)
    if function is not None:
        return name.rpartition(".")[0], function["direction"]
    module = MODULES.fullmatch(name)
    assert module is not None
    return f"{module['path']}.{module['kind']}.{module['number']}", module["direction"]


def _kind(name: str) -> str:
    found = FUNCTIONS.fullmatch(name) or MODULES.fullmatch(name)
    assert found is not None
    return found["kind"]


def _calls(dump: Dump) -> Iterator[RecordedCall]:
    parts: dict[str, dict[str, Any]] = {}
    for name, entry in dump.entries.items():
        call, direction = _home(name)
        if direction != PARAMETERS:
            parts.setdefault(call, {"entry": name})[direction] = entry
    for call, found in parts.items():
        function = FUNCTIONS.fullmatch(found["entry"])
        in_place = bool(function and function["inplace"])
        both = found.get(FORWARD), found.get(BACKWARD)
        yield RecordedCall(dump, call, _kind(found["entry"]), function is None, *both, in_place=in_place)


def _seen_as_functions(dump: Dump, calls: Mapping[str, RecordedCall]) -> set[str]:
    """Modules whose work is in the dump as a call of a function too: by construct.json, else by their results."""
    functions = [c for c in calls.values() if not c.is_module and c.forward is not None]
    named = {parent for c in functions if (parent := dump.parents.get(f"{c.name}.{FORWARD}"))}
    made = {(c.kind.replace("_", ""), signature) for c in functions if (signature := _signature(c))}
    hidden = set()
    for call in calls.values():
        if not call.is_module or call.kind.startswith("LSTM"):
            continue
        stem, _, number = call.name.rpartition(".")
        same = not dump.parents and (call.kind.lower(), _signature(call)) in made
        if f"{stem}.{FORWARD}.{number}" in named or same:
            hidden.add(call.name)
    return hidden


def _signature(call: RecordedCall) -> tuple[Any, ...] | None:
    """What dump.json says of the first result: enough to know it again."""
    results = call.results() if call.forward is not None else []
    first = results[0] if results else None
    return (first.shape, first.dtype, *first.numbers) if isinstance(first, Recorded) else None
