"""The memory of large outputs, used again for others once nobody holds it.

Blocks of more than 32 MB go back to the system when they are freed, and to map and clear them anew takes longer than an
operator on as many elements. So the first ones stay with us. A block that nobody else refers to is free: arrays, views
of them, tensors of other libraries and whatever else sees its memory refer to it. It leaves the dict while one looks at
it, in a single step, so that no two calls take the same.
"""

from __future__ import annotations

import sys
from sys import getrefcount

from aclnn.base.geometry import Array

LARGE = 2**25  # bytes: the most that malloc keeps of what is freed
MOST_KEPT = 2**28  # bytes, of all threads, in use or not
_WASTE = 8  # a block may be larger than asked for by this part of it
_NOBODY = 2  # references: the name of who looks, and the argument of getrefcount
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()  # else references are counted otherwise, and blocks not kept

_blocks: dict[int, Array] = {}  # by their ids, the oldest first


def take(size: int) -> Array | None:
    """A block of at least so many bytes that nobody holds."""
    for key in tuple(_blocks):
        block = _blocks.pop(key, None)
        if block is None:  # another call is looking at it
            continue
        if getrefcount(block) <= _NOBODY and size <= block.size <= size + size // _WASTE:
            return block
        _blocks[key] = block
    return None


def keep(block: Array | None) -> None:
    """Keeps a block that is in use now for the time when it is not, if there is room for it without what is free. It
    must own its memory: whoever sees memory refers to its owner, not to the views between."""
    if not _COUNTS or block is None or block.size > MOST_KEPT or not block.flags.owndata:
        return
    for key in tuple(_blocks):
        if sum(kept.size for kept in tuple(_blocks.values())) + block.size <= MOST_KEPT:
            break
        other = _blocks.pop(key, None)
        if other is not None and getrefcount(other) > _NOBODY:
            _blocks[key] = other
    if sum(kept.size for kept in tuple(_blocks.values())) + block.size <= MOST_KEPT:
        _blocks[id(block)] = block


def clear() -> None:
    """Keeps none any more: each lives as long as somebody holds it."""
    _blocks.clear()
