"""Pieces of work one after the other that Python starts as one: a run of many launches costs one call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import FIRST_ARGUMENT, MOST_PLACES
from aclnn.kernels.native.memory import address, aligned
from aclnn.kernels.native.recorded_launches import Finding, current
from aclnn.kernels.native.threads import Work, forked, runtime
from aclnn.kernels.registry import Prepared, Run

# The operand that says whether a run must be made by another kernel: an int64, 0 at first. Behind it a second one, 0 at
# first in every launch, counts shares of its work.
FOUND = "found"
KERNEL = ("launch_sequence.run", "F" * MOST_PLACES + "I")
_NOWHERE = np.empty(0, np.uint8)


class Aim(NamedTuple):
    """Where an argument points: to a tensor by name, to a place in the workspace, or to what is found."""

    argument: int
    operand: str | int
    start: int = 0  # bytes by which it begins later


class Step(NamedTuple):
    """One piece of work: what makes it for an executor, and where its arguments point."""

    work: Callable[[], Work]
    aims: Sequence[Aim]


def prepared(
    steps: Sequence[Step], names: Sequence[str], size: int, otherwise: Callable[[], Run] | None = None
) -> Prepared:
    """Steps on tensors in the order of their names, in so many bytes of workspace; `otherwise` gives the run for what
    they find. Raises NoNativeCodeError."""
    jit.load(*KERNEL)
    return Prepared(lambda: SequenceRun(steps, names, None if otherwise is None else otherwise()), size, True)


class SequenceRun:
    """A run of steps on tensors in the order of their names. Where a step finds something, it ends there."""

    def __init__(self, steps: Sequence[Step], names: Sequence[str], otherwise: Run | None = None):
        used = {aim.operand for step in steps for aim in step.aims}
        places = [0, *(i for i, name in enumerate(names, 1) if name in used)]
        assert len(places) <= MOST_PLACES
        self._pick = itemgetter(*places, *[0] * (MOST_PLACES - len(places)))
        self._found, self._otherwise = Finding(), otherwise
        which = {names[place - 1]: i for i, place in enumerate(places) if place} | {FOUND: MOST_PLACES}
        self._aims = [[_place(aim, which) for aim in step.aims] for step in steps]
        self._works = [step.work() for step in steps]
        self._alone = all(work.threads == 1 for work in self._works)
        one_call = current() is None and (self._alone or runtime() is not None)
        self._function = self._as_function() if one_call else None

    def _as_function(self) -> Callable[..., object] | None:
        """All steps as one native call; None where nobody knows how an array lies in memory."""
        omp = runtime()
        table = [self._found.address, 0 if omp is None else omp.parallel_address, len(self._works)]
        for work, aims in zip(self._works, self._aims, strict=True):
            table += [work.entry.address, work.address, work.arm(), len(aims), *(n for aim in aims for n in aim)]
        numbers = (ctypes.c_int64 * len(table))(*table)
        arguments = [0] * MOST_PLACES + [ctypes.addressof(numbers)]
        whole = Work(jit.load(*KERNEL), 1, 1, arguments, 1, (numbers, self._works, self._found))
        return whole.entry.on_arrays(whole.block, whole)

    def __call__(self, workspace: Array | None, *tensors: Any) -> None:
        arrays = self._pick((_NOWHERE if workspace is None else workspace, *tensors))
        if self._function is not None and (self._alone or not forked()):
            self._function(None, *arrays)
        else:
            self._run_one_by_one(arrays)
        if self._found and self._otherwise is not None:
            self._otherwise(workspace, *tensors)

    def _run_one_by_one(self, arrays: Sequence[Array]) -> None:
        """The same from Python, for threads of our own, after a fork, and where launches are recorded."""
        base, *others = map(address, arrays)
        places = [aligned(base), *others, self._found.address]
        self._found.clear()
        for work, aims in zip(self._works, self._aims, strict=True):
            for slot, place, start in aims:
                work.block[slot] = places[place] + start
            self._found.begin_launch()
            work.run()
            if self._found:
                return


def _place(aim: Aim, which: dict[str, int]) -> tuple[int, int, int]:
    """The slot of a block, the number of a place, and the bytes behind it."""
    slot, operand = FIRST_ARGUMENT + aim.argument, aim.operand
    return (slot, 0, operand + aim.start) if isinstance(operand, int) else (slot, which[operand], aim.start)
