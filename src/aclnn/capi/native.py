"""Plans that the C++ library runs by itself, without Python and its lock: one kernel of native code.

Such a kernel takes a block of 64-bit words (kernels/native/entry.py). Which of them are addresses is found by pointing
the kernel at two sets of addresses that nobody follows: a word that is the same for both is none, and one that differs
must have moved as one of the tensors did, or as the workspace. A kernel with any other word stays with Python.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from aclnn.base.status import AclnnError
from aclnn.kernels.native.threads import Launch, Work, runtime
from aclnn.kernels.shared.strides import aligned
from aclnn.runtime.executor import VERBOSE
from aclnn.runtime.plan import Plan

Bind = Callable[[bytes], list[Any]]
"""Scratch and views on addresses: the workspace and its size, then one address per tensor."""

_FAR, _APART = 2**40, 2**33  # where the sets begin, and what lies between two addresses of one: their steps differ
_OFF_LINE = 8  # bytes: the workspace is moved to the next line, and this shows it


class NativeCall:
    """A kernel, its block, and where in it the addresses stand, as python_engine.cpp reads them."""

    def __init__(self, work: Work, slots: list[tuple[int, int, int]]):
        self._work = work  # owns memory that the block points to
        omp = runtime()
        self.threads = work.arm()
        head = [work.entry.address, omp.parallel_address if omp else 0, self.threads, len(slots), len(work.block)]
        words = [*head, *(number for slot in slots for number in slot), *work.block]
        self._words = (ctypes.c_int64 * len(words))(*words)
        self.address = ctypes.addressof(self._words)


def native_call(plan: Plan, bind: Bind) -> NativeCall | None:
    """How to run a plan without Python; None if there is more to it than a kernel."""
    if plan.kernel != "numba" or VERBOSE or plan.value_rules:
        return None
    launch = plan.instantiate()
    if not isinstance(launch, Launch):
        return None
    count = sum(1 if a.kind == "tensor" else len(plan.call[a.name] or ()) for a in plan.op.tensors)
    first, second = ([k * _FAR + k * _APART * i for i in range(1 + count)] for k in (1, 2))
    first[0] += _OFF_LINE
    second[0] += _OFF_LINE
    try:
        works = [_pointed_at(launch, bind, addresses, plan.workspace_size) for addresses in (first, second)]
    except AclnnError:  # a view that no memory can hold: who calls gets the sentence
        return None
    slots = _slots(works, first, second)
    needs_pool = works[0].threads > 1 and runtime() is None
    return None if slots is None or needs_pool else NativeCall(works[0], slots)


def _pointed_at(launch: Launch, bind: Bind, addresses: list[int], size: int) -> Work:
    workspace, *tensors = addresses
    words = [workspace, size, *tensors]
    work: Any = getattr(launch.bound(*bind(struct.pack(f"={len(words)}q", *words))), "__self__", None)
    assert isinstance(work, Work)
    return work


def _slots(works: list[Work], first: list[int], second: list[int]) -> list[tuple[int, int, int]] | None:
    """(word of the block, which address, how far from it) of all words that move; the workspace is address 0."""
    steps = {b - a: i for i, (a, b) in enumerate(zip(first, second, strict=True))}
    slots = []
    for word, (one, other) in enumerate(zip(works[0].block, works[1].block, strict=True)):
        if one == other:
            continue
        address = steps.get(other - one)
        if address is None or (address == 0 and one != aligned(first[0])):
            return None
        slots.append((word, address, 0 if address == 0 else one - first[address]))
    return slots


class By(IntEnum):
    """Who may run a plan, as engine.h has it."""

    WORKER = 0
    ANYONE = 1
    BRINGER = 2


SHORT = 4096  # elements of output: fewer are computed sooner than queued and taken from the queue


def run_by(plan: Plan, native: NativeCall | None) -> By:
    """A team of threads belongs to the thread that woke it first, and a second team beside it would slow both: a run
    that wakes any is the worker's. Whoever waits for another may as well do it."""
    if native is None:
        return By.ANYONE if plan.kernel in ("numpy", "nothing to compute") else By.WORKER
    written = sum(spec.size for arg in plan.outputs for spec in plan.call.specs(arg.name))
    return By.WORKER if native.threads > 1 else By.BRINGER if written <= SHORT else By.ANYONE
