"""The scratch of functional calls: kept for the next one, and taken out of what is kept while a call uses it.

A call inside a call (the handler of a signal, a `__del__`, the code of a DLPack producer) runs on the same thread in
the middle of another; it finds other memory. Taking and giving back are single steps of a dict, so that an interrupt
between them loses a block to the garbage collector at worst, and never hands one out twice.
"""

from __future__ import annotations

from operator import attrgetter

from aclnn.base.dtype import UINT8
from aclnn.base.geometry import Array
from aclnn.contract.model import Op
from aclnn.runtime.memory import new_memory

MOST_KEPT = 2**28  # bytes, of all threads: to map 150 MB anew took a fifth of the LSTM that needed them

_size = attrgetter("size")
_kept: dict[int, Array] = {}  # what nobody uses now by its id, given back last at the end


def take(op: Op, room: int) -> Array | None:
    """Scratch of at least so many bytes, for the caller alone until it is given back; None where none is needed."""
    if not room:
        return None
    try:
        key, block = _kept.popitem()
    except KeyError:
        return new_memory(op, "workspace", (room,), UINT8)
    if block.size >= room:
        return block
    _kept[key] = block
    del block
    found = _found(room)
    return _instead(op, room) if found is None else found


def give_back(block: Array | None) -> None:
    """Keeps a block for the next call. A call that failed need not care: the garbage collector has its block."""
    if block is None or block.size > MOST_KEPT:
        return
    _kept[id(block)] = block
    while len(_kept) > 1 and bytes_kept() > MOST_KEPT:
        _kept.pop(next(iter(_kept.copy()), 0), None)  # the one that was not used for longest


def bytes_kept() -> int:
    return sum(map(_size, _kept.copy().values()))  # a copy is one step: others take and give meanwhile


def clear() -> None:
    """Gives all that is kept back to the system, whichever thread used it."""
    _kept.clear()


def _found(room: int) -> Array | None:
    """A kept block that is large enough."""
    for key, block in _kept.copy().items():
        if block.size >= room and _kept.pop(key, None) is block:
            return block
    return None


def _instead(op: Op, room: int) -> Array:
    """A new block in place of the largest that is too small: there are no more blocks than calls at once."""
    sizes = {key: block.size for key, block in _kept.copy().items()}
    if sizes and room <= MOST_KEPT:
        _kept.pop(max(sizes, key=sizes.__getitem__), None)  # before there is more
    return new_memory(op, "workspace", (room,), UINT8)
