"""Shares of a launch's work: one for each thread, the others in turn: who is slowed down by others takes fewer."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.source.calls import shifted
from aclnn.kernels.source.helpers import inner


@inner
def first_share(lot: int, shares: Any) -> Any:
    """The first and the end of the items of the share that a lot begins with: the same in every run, so that a thread
    finds what it wrote the last time in its own cache. The list has how many shares there are, how many lots, then
    the first and the end of each share."""
    return shares[2 + 2 * lot], shares[3 + 2 * lot]


@inner
def next_share(found: Any, shares: Any) -> Any:
    """Those of the next share that no lot began with, or none. Shares are counted behind what is found."""
    share = shares[1] + count_one(shifted(found, 1))
    if share < shares[0]:
        return shares[2 + 2 * share], shares[3 + 2 * share]
    return 0, 0


@inner
def following(item: int, end: int, found: Any, shares: Any) -> Any:
    """The next item of a share that ends there, or the first and the end of the next share."""
    return (item + 1, end) if item + 1 < end else next_share(found, shares)


@intrinsic
def count_one(context: Any, counter: Any) -> Any:
    """What a counter was before this thread added one to it."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.atomic_rmw("add", args[0], ir.IntType(64)(1), "monotonic")

    return types.int64(counter), code
