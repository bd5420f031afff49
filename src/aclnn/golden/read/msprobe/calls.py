"""The calls of ours in a dump: entries paired by name and number, each call once.

`Functional.conv2d.0.forward` and `.backward` are one call, `Module.net.conv.Conv2d.forward.0`, `.backward.0` and
`.parameters_grad.0` another; where a module made a function call that is in the dump too, that one is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class EntryName(NamedTuple):
    """What the name of an entry says: the call it belongs to, and which part of it the entry is."""

    call: str
    kind: str
    direction: str
    is_module: bool
    in_place: bool

    @property
    def module(self) -> str:
        return self.call.rpartition(".")[0]


def entry_of(name: str) -> EntryName | None:
    """None for what is no entry of ours."""
    if found := FUNCTIONS.fullmatch(name):
        return EntryName(name.rpartition(".")[0], found["kind"], found["direction"], False, bool(found["inplace"]))
    if found := MODULES.fullmatch(name):
        call = f"{found['path']}.{found['kind']}.{found['number']}"
        return EntryName(call, found["kind"], found["direction"], True, False)
    return None


def is_ours(name: str) -> bool:
    return entry_of(name) is not None


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
        named = found.get("input_kwargs", {})
        return _listed(found.get("input_args", [])), named if isinstance(named, dict) else {}

    def results(self) -> list[Any]:
        return _listed(self._part(self.forward, FORWARD).get("output"))

    def parameters(self) -> Mapping[str, Recorded]:
        found = self._part(self.forward, FORWARD).get("parameters", {})
        return {n: p for n, p in found.items() if isinstance(p, Recorded)} if isinstance(found, dict) else {}

    def grad_results(self) -> list[Any]:
        return _listed(self._part(self.backward, BACKWARD).get("input", []))

    def grad_arguments(self) -> list[Any]:
        return _listed(self._part(self.backward, BACKWARD).get("output", []))

    def _part(self, part: Mapping[str, Any] | None, direction: str) -> Mapping[str, Any]:
        if isinstance(part, dict):
            return part
        zh = {FORWARD: "正向", BACKWARD: "反向"}[direction]
        raise Unjudged(f"its {direction} is not in the dump", f"dump中没有它的{zh}")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


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
    hidden_modules = {calls[name].module for name in hidden}
    found = []
    for order, (name, entry) in enumerate(_entries(dump)):
        if entry.call in hidden or (entry.direction == PARAMETERS and entry.module in hidden_modules):
            continue
        if entry.direction == PARAMETERS:
            of_module = (c for c in calls.values() if c.is_module and c.module == entry.module)
            used = tuple(c for c in of_module if c.backward is not None)
            first = used[0] if used else RecordedCall(dump, entry.call, entry.kind, True, None, None)
            found.append(Unit(name, entry.direction, first, used, order))
        else:
            found.append(Unit(name, entry.direction, calls[entry.call], (), order))
    return found


def _entries(dump: Dump) -> Iterator[tuple[str, EntryName]]:
    for name in dump.entries:
        entry = entry_of(name)
        assert entry is not None  # no others are loaded
        yield name, entry


def _calls(dump: Dump) -> Iterator[RecordedCall]:
    parts: dict[str, tuple[EntryName, dict[str, Any]]] = {}
    for name, entry in _entries(dump):
        if entry.direction != PARAMETERS:
            parts.setdefault(entry.call, (entry, {}))[1][entry.direction] = dump.entries[name]
    for call, (entry, found) in parts.items():
        both = found.get(FORWARD), found.get(BACKWARD)
        yield RecordedCall(dump, call, entry.kind, entry.is_module, *both, in_place=entry.in_place)


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
