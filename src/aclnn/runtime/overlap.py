"""Which tensors of a call may share memory: no output with another tensor, none with the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from aclnn.base.geometry import Array, overlap, same_view
from aclnn.contract.model import Arg, Op
from aclnn.runtime.refusals import parameter

Views = Sequence[Any]
"""The tensors of a call in contract order: arrays, lists of arrays, None where one is absent."""


def check_addresses(op: Op, views: Views, scratch: Array | None = None) -> None:
    """What only addresses can say: no output may overlap another tensor, and no tensor the workspace."""
    found = [(arg, name, view) for arg, name, view in _every_view(op, views) if view.size]
    ranges = sorted((*_byte_range(view), i) for i, (_, _, view) in enumerate(found))
    reaching: list[tuple[int, int]] = []  # (end, index) of ranges that may still meet the next one
    for low, high, i in ranges:
        reaching = [(end, j) for end, j in reaching if end > low]
        for _, j in reaching:
            _check_pair(op, found[j], found[i])
        reaching.append((high, i))
    if scratch is not None:
        for arg, name, view in found:
            if np.may_share_memory(view, scratch):  # an input there would be written over while it is read
                raise parameter(op, f"{name} overlaps the workspace; the two must be apart", arg.name)


NamedView = tuple[Arg, str, Array]
"""A tensor's argument, its name for a message (`params[3]` in a list), its memory."""


def _check_pair(op: Op, one: NamedView, other: NamedView) -> None:
    (first, _, a), (second, _, b) = one, other
    if not (first.out or second.out) or not overlap(a, b):
        return
    if op.in_place and first.out != second.out and same_view(a, b):
        return
    allowed = "may only be the same view or apart" if op.in_place else "must be apart"
    (arg, out, _), (_, met, _) = (one, other) if first.out else (other, one)
    raise parameter(op, f"{out} overlaps {met} in memory; the two {allowed}", arg.name)


def _every_view(op: Op, views: Views) -> Iterator[NamedView]:
    for arg, view in zip(op.tensors, views, strict=True):
        if isinstance(view, (list, tuple)):
            yield from ((arg, f"{arg.name}[{i}]", one) for i, one in enumerate(view) if one is not None)
        elif view is not None:
            yield arg, arg.name, view


def _byte_range(view: Array) -> tuple[int, int]:
    start = view.__array_interface__["data"][0]
    ends = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    return start + sum(e for e in ends if e < 0), start + sum(e for e in ends if e > 0) + view.itemsize
