"""Loops in LLVM's language whose state stays in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

_WORD = ir.IntType(64)


def repeated(builder: Any, count: Any, state: Any, *steps: Callable[[Any, Any], Any]) -> Any:
    """The state after all `steps(i, state)` were done for i < count, each time one after the other; leaves the builder
    behind the loop."""
    before, loop, behind = builder.block, *(builder.append_basic_block(name) for name in ("step", "done"))
    builder.cbranch(builder.icmp_signed(">", count, _WORD(0)), loop, behind)
    builder.position_at_end(loop)
    i, *now = (builder.phi(value.type) for value in (count, *state))
    after = now
    for step in steps:
        after = step(i, after)
    following = builder.add(i, _WORD(1))
    for phi, first, next_ in zip((i, *now), (_WORD(0), *state), (following, *after), strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(next_, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, behind)
    builder.position_at_end(behind)
    ends = [builder.phi(value.type) for value in state]
    for phi, first, last in zip(ends, state, after, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(last, loop)
    return ends
