"""Plans that the C++ library runs by itself, without Python and its lock: those that only launch native code.

A launch takes a block of 64-bit words (kernels/native/entry.py). Which of them are addresses is found by recording a
run on two sets of addresses that nobody follows: a word that is the same for both is none, and one that differs must
have moved as one of the tensors did, as the workspace, or as the place where kernels write that they met what they are
not made for. A plan with any other word stays with Python.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from aclnn.base.status import AclnnError
from aclnn.kernels.native.memory import aligned
from aclnn.kernels.native.recorded_launches import Launched, Tape, recording
from aclnn.kernels.native.threads import runtime
from aclnn.kernels.registry import Run
from aclnn.runtime.plan import Plan
from aclnn.runtime.verbose import VERBOSE

Bind = Callable[[bytes], list[Any]]
"""Scratch and views on addresses: the workspace and its size, then one address per tensor."""

_FAR, _APART = 2**40, 2**33  # where the sets begin, and what lies between two addresses of one: their steps differ
_OFF_LINE = 8  # bytes: the workspace is used from the next line on, and this shows it

FINDING, WORKSPACE = -1, 0  # tensors have the numbers behind


class Slot(NamedTuple):
    """A word of a block that is an address: which one, and how far behind it."""

    word: int
    which: int
    offset: int


class NativeCall:
    """Launches one after the other, and where in their blocks the addresses stand, as native_call.h reads them."""

    def __init__(self, run: Run, launches: list[tuple[Launched, list[Slot]]]):
        self._run = run  # owns memory that blocks point to
        self.threads = max(launch.threads for launch, _ in launches)
        omp = runtime()
        words = [len(launches), omp.parallel_address if omp else 0]
        for launch, slots in launches:
            words += [launch.entry, launch.threads, len(slots), len(launch.block)]
            words += [*(number for slot in slots for number in slot), *launch.block]
        self._words = (ctypes.c_int64 * len(words))(*words)
        self.address = ctypes.addressof(self._words)


def address_counts(plan: Plan) -> list[int]:
    """How many addresses come for every tensor argument: lists are spread out, and null has one too."""
    return [1 if arg.kind == "tensor" else len(plan.call[arg.name] or ()) for arg in plan.op.tensors]


def native_call(plan: Plan, bind: Bind) -> NativeCall | None:
    """How to run a plan without Python; None if there is more to it than launches."""
    if not plan.prepared.is_launches or VERBOSE or plan.value_rules:
        return None
    places = [Places.far_away(k, sum(address_counts(plan))) for k in (1, 2)]
    try:
        (run, first), (_, second) = (_recorded(plan, bind, far) for far in places)
    except AclnnError:  # a view that no memory can hold: who calls gets the sentence
        return None
    pairs = zip(first.launches, second.launches, strict=True)
    before, after = (far.known(tape.finding) for far, tape in zip(places, (first, second), strict=True))
    found = [(one, _slots(zip(one.block, other.block, strict=True), before, after)) for one, other in pairs]
    known = [(launch, slots) for launch, slots in found if slots is not None]
    needs_pool = runtime() is None and any(launch.wanted > 1 for launch in first.launches)
    if len(known) < len(found) or needs_pool:
        return None
    if _is_short(plan):
        known = [(launch.alone(), slots) for launch, slots in known]
    return NativeCall(run, known)


class Places(NamedTuple):
    """Addresses that nobody follows: of a workspace, and of every tensor."""

    workspace: int
    tensors: list[int]

    @classmethod
    def far_away(cls, k: int, count: int) -> Places:
        return cls(k * _FAR + _OFF_LINE, [k * _FAR + k * _APART * (1 + i) for i in range(count)])

    def known(self, finding: int | None) -> dict[int, int]:
        """Every address that may stand in a block, by what a slot calls it."""
        known = dict(enumerate([aligned(self.workspace), *self.tensors], WORKSPACE))
        return known if finding is None else known | {FINDING: finding}


def _recorded(plan: Plan, bind: Bind, places: Places) -> tuple[Run, Tape]:
    words = [places.workspace, plan.workspace_size, *places.tensors]
    with recording() as tape:
        run = plan.instantiate()
        run(*bind(struct.pack(f"={len(words)}q", *words)))
    return run, tape


def _slots(words: Iterable[tuple[int, int]], before: dict[int, int], after: dict[int, int]) -> list[Slot] | None:
    """Of all words that move; None if one has not moved as an address did that is known."""
    steps = {after[which] - before[which]: which for which in before}
    slots = []
    for word, (one, other) in enumerate(words):
        if one == other:
            continue
        which = steps.get(other - one)
        if which is None or (which == FINDING and one != before[which]):
            return None
        slots.append(Slot(word, which, one - before[which]))
    return slots


class By(IntEnum):
    """Who may run a plan, as engine.h has it."""

    WORKER = 0
    ANYONE = 1
    BRINGER = 2


SHORT = 1 << 18  # elements of all tensors, one by one: fewer are computed where they are, before a worker is awake


def _is_short(plan: Plan) -> bool:
    used = (arg.name for arg, takes_part in zip(plan.op.tensors, plan.taking_part, strict=True) if takes_part)
    return plan.kernel == "numba" and sum(spec.size for name in used for spec in plan.call.specs(name)) <= SHORT


def run_by(plan: Plan, native: NativeCall | None) -> By:
    """A team of threads belongs to the thread that woke it first, and a second team beside it would slow both: a run
    that wakes any is the worker's. Whoever waits for another may as well do it."""
    if native is None:
        return By.ANYONE if plan.kernel in ("numpy", "nothing to compute") else By.WORKER
    if native.threads > 1:
        return By.WORKER
    return By.BRINGER if _is_short(plan) else By.ANYONE
