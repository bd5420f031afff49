"""The words contracts are written in: short builders for the rules of `rules`, each giving a group of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from aclnn.contract import rules
from aclnn.contract.expr import Attr, Expr, Given, lift
from aclnn.contract.rule import Pair, Range, Rule
from aclnn.contract.stage import Stage

Rules = tuple[Rule, ...]


def when(condition: Expr | str, *rules: Any) -> Rules:
    """The rules, under a condition; a string names a flag."""
    test = Attr(condition) if isinstance(condition, str) else condition
    return tuple(replace(rule, conditions=(test, *rule.conditions)) for rule in flatten(rules))


def all_or_none(*names: str) -> Rules:
    """Arguments that may be null, but only together."""
    pairs = ((name, other) for name in names for other in names if name != other)
    return tuple(rules.NotNull(arg=name, stage=Stage.NEEDED, conditions=(Given(other),)) for name, other in pairs)


def _alike(kind: type[Pair]) -> Callable[..., Rules]:
    """Arguments that are like the first one."""
    return lambda first, *others: tuple(kind(first=other, second=first) for other in others)


same_dtype, same_rank = _alike(rules.SameDtype), _alike(rules.SameRank)
same_format, same_shape = _alike(rules.SameFormat), _alike(rules.SameShape)


def between(what: Expr | str, low: Any = None, high: Any = None, stage: Stage = Stage.ATTRIBUTE) -> Rules:
    return (rules.Between(what=Attr(what) if isinstance(what, str) else what, range=Range(low, high), stage=stage),)


def at_least(what: Expr | str, low: Any) -> Rules:
    return between(what, low)


def one_of(arg: str, *among: Any) -> Rules:
    return (rules.OneOf(arg=arg, among=among),)


def equal(left: Expr, right: Expr | int) -> Rules:
    return (rules.Equal(left=left, right=lift(right)),)


def length(arg: str, *lengths: Expr | int, stage: Stage = Stage.LIST) -> Rules:
    return (rules.Length(arg=arg, lengths=tuple(map(lift, lengths)), stage=stage),)


def multiple(what: Expr, of: Expr) -> Rules:
    return (rules.Multiple(what=what, of=of),)


def each_below(arg: str, other: str) -> Rules:
    return (rules.EachBelow(arg=arg, other=other),)


def shape_is(arg: str, shape: Expr | Iterable[Expr | int]) -> Rules:
    return (rules.ShapeIs(arg=arg, shape=shape if isinstance(shape, Expr) else tuple(map(lift, shape))),)


def flatten(rules: Iterable[Any]) -> Rules:
    """Rules written in groups, as one sequence."""
    out: list[Rule] = []
    for rule in rules:
        out.extend((rule,) if isinstance(rule, Rule) else flatten(rule))
    return tuple(out)
