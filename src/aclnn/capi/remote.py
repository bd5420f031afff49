"""The engine for a program that has a Python of another version inside: a process of its own beside that program.

capi/src/remote_engine.cpp asks, one question at a time, through a socket that is the standard input here; addresses of
a run lie in memory that both processes see. The process ends when the program does.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Iterator
from itertools import count

from aclnn.capi import engine
from aclnn.capi.engine import BoundPlan, Refusal
from aclnn.capi.native import address_counts
from aclnn.capi.signature import contracts_id
from aclnn.runtime.plan import Plan

HELLO, PLAN, CHECK, RUN, DESTROY = range(5)
_CONNECTION, _MEMORY = 0, 3  # descriptors


def serve() -> None:
    """Answers until the program ends."""
    connection = socket.socket(fileno=_CONNECTION)
    served = _Served()
    while head := _received(connection, 32):
        request, subject, size, words = struct.unpack("=4q", head)
        given = _received(connection, 8 * words)
        answer = served.answer(request, subject, size, given)
        connection.sendall(_packed(answer))
    os._exit(0)  # nobody is left who could read what an orderly end says


def _received(connection: socket.socket, size: int) -> bytes:
    """So many bytes; none when the other end is closed."""
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            return b""
        found += part
    return found


def _packed(answer: list[int] | Refusal) -> bytes:
    if isinstance(answer, list):
        return struct.pack(f"={2 + len(answer)}q", 0, len(answer), *answer)
    code, sentence = answer
    text = sentence.encode("utf-8", "replace")
    return struct.pack("=2q", code, len(text)) + text


class _Served:
    """What was planned and is not destroyed, by number, and the shared memory."""

    def __init__(self) -> None:
        self._numbers = count()
        self._planned: dict[int, BoundPlan] = {}
        self._memory: mmap.mmap | None = None

    def answer(self, request: int, subject: int, size: int, given: bytes) -> list[int] | Refusal:
        if request == HELLO:
            return self._hello(given)
        if request == PLAN:
            return self._plan(given)
        if request == CHECK:
            return _done(engine.check(self._planned[subject], given))
        if request == RUN:
            return _done(engine.run(self._planned[subject], self._here(given, size)))
        self._planned.pop(subject, None)
        return []

    def _hello(self, given: bytes) -> list[int] | Refusal:
        return [] if given.rstrip(b"\0") == contracts_id().encode() else engine.OTHER_VERSION

    def _plan(self, signature: bytes) -> list[int] | Refusal:
        answer = engine.plan(signature)
        if len(answer) == 2:
            return answer
        planned = answer[1]
        number = next(self._numbers)
        self._planned[number] = planned
        return [number, planned.plan.workspace_size, *_layout(planned.plan)]

    def _here(self, places: bytes, size: int) -> bytes:
        """The addresses of places in the shared memory, which may have grown."""
        if self._memory is None or len(self._memory) != size:
            self._memory = mmap.mmap(_MEMORY, size)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        workspace, needed, *tensors = memoryview(places).cast("q")
        words = [base + workspace, needed, *(base + place for place in tensors)]
        return struct.pack(f"={len(words)}q", *words)


def _done(answer: int | Refusal) -> list[int] | Refusal:
    return answer if isinstance(answer, tuple) else []


def _layout(plan: Plan) -> Iterator[int]:
    """How every tensor lies in memory: whether it takes part, whether it is written, bytes of an element, where the
    first one is, rank, sizes, strides."""
    for arg, placements, parts in zip(plan.op.tensors, plan.placements, address_counts(plan), strict=True):
        if placements is None:
            yield from [0, 0, 1, 0, 0] * parts
            continue
        for place in placements:
            yield from (1, int(arg.out), place.dtype.itemsize, place.offset, len(place.shape))
            yield from place.shape
            yield from place.strides
