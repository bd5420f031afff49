"""What a hypothesis is: a row of the table (table.py), and what it recomputes for a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.dtype import INT64, DType, promote
from aclnn.base.geometry import Array
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text

Arguments = dict[str, Any]
Before = Callable[[LoadedCase, Arguments], Arguments]
After = Callable[[LoadedCase, str, Array], Array]
Instead = Callable[[LoadedCase, str], Array | None]
Words = Mapping[str, Any]  # what fills the holes of a sentence: a Text, or what is the same in both languages


def as_given(case: LoadedCase, arguments: Arguments) -> Arguments:
    return arguments


def as_computed(case: LoadedCase, output: str, values: Array) -> Array:
    return values


def any_output(case: LoadedCase, output: str) -> bool:
    return True


@dataclass(frozen=True)
class Recomputed:
    """How an operator is computed under a hypothesis.

    `before` changes the arguments of the reference, `after` an output, by its report name; `instead` has its values
    altogether, or None where it has none. `unit` is that of coarser arithmetic: the order of its roundings is not
    known, so the target need only be within what they can do.
    """

    before: Before = as_given
    after: After = as_computed
    instead: Instead | None = None
    unit: float | None = None
    explains: Callable[[LoadedCase, str], bool] = any_output  # whether an output has what this speaks of
    words: Words = field(default_factory=dict)


class HypothesisRow(NamedTuple):
    """One way to be wrong: its key, the sentence that names it, what comes before "… % is in tolerance", and what is
    recomputed, for an operator that has any of the arguments it needs. Sentences and keys may have holes.
    """

    key: str
    says: Text
    proof: Text
    recomputed: Callable[[LoadedCase], Iterator[Recomputed]]
    needs: frozenset[str] = frozenset()  # none: it makes sense for every operator

    def of(self, case: LoadedCase) -> Iterator[Hypothesis]:
        if self.needs and not self.needs & case.op.by_name.keys():
            return
        for way in self.recomputed(case):
            key = self.key.format(**_in(way.words, "en"))
            yield Hypothesis(key, _filled(self.says, way.words), _filled(self.proof, way.words), way)


class Hypothesis(NamedTuple):
    """A row, filled in for one case."""

    key: str
    says: Text
    proof: Text
    way: Recomputed


def _in(words: Words, lang: str) -> dict[str, Any]:
    return {name: word.say(lang) if isinstance(word, Text) else word for name, word in words.items()}


def _filled(text: Text, words: Words) -> Text:
    return Text(text.en.format(**_in(words, "en")), text.zh.format(**_in(words, "zh")))


def computed_as(case: LoadedCase) -> DType:
    """The type that the tensors of a case are promoted to."""
    return promote({s.dtype for a in case.op.inputs for s in case.call.specs(a.name)} - {INT64})


def every_array(change: After) -> Before:
    """Every array among the arguments changed; one of a list has a name like params[3]."""

    def one(case: LoadedCase, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [one(case, f"{name}[{i}]", element) for i, element in enumerate(value)]
        return change(case, name, value) if isinstance(value, np.ndarray) else value

    return lambda case, arguments: {name: one(case, name, value) for name, value in arguments.items()}


def setting(name: str, value: Any) -> Before:
    """One argument replaced."""
    return lambda case, arguments: {**arguments, name: value}
