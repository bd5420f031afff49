"""What an LSTM has in both directions: its sizes, its sequences, and the walk over the steps of a layer."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from aclnn.base.geometry import Array
from aclnn.kernels.native import abi
from aclnn.kernels.native.entry import Entry
from aclnn.kernels.native.memory import address
from aclnn.kernels.native.threads import Work, runtime
from aclnn.kernels.shared.launch import Launch

_OF_GATES = abi.GATES_WORDS - abi.FIRST_ARGUMENT  # arguments, at most


class Sizes(NamedTuple):
    """What the matrices of a call look like."""

    steps: int
    batch: int
    features: int
    hidden: int
    layers: int
    directions: int

    @property
    def rows(self) -> int:
        return self.steps * self.batch

    def width(self, layer: int) -> int:
        """The features that a layer sees."""
        return self.directions * self.hidden if layer else self.features

    @property
    def widths(self) -> list[int]:
        return sorted({self.width(layer) for layer in range(self.layers)})


class Sequences(NamedTuple):
    """[T, B, features] by address: bytes from step to step, elements from sequence to sequence."""

    place: int
    per_step: int
    per_sequence: int

    @classmethod
    def of(cls, array: Array) -> Sequences:
        """An array with the time first."""
        return cls(address(array), array.strides[0], array.strides[1] // array.itemsize)


class Entries(NamedTuple):
    """What a walk executes beside the products, loaded in phase 1: gates whose output, or its gradient, the caller has,
    gates where it is a float32 matrix of ours, the loop."""

    top: Entry
    below: Entry
    walk: Entry


class Walk:
    """One executor's tables of a walk. `counts` is the address of how many sequences take part in each step."""

    def __init__(self, entries: Entries, step: Launch, keep: object, steps: int, counts: int):
        self.table = (ctypes.c_int64 * abi.TABLE_SIZE)()
        self._rows, self._bases, self._strides = ((ctypes.c_int64 * 12)() for _ in range(3))
        self._gates = {
            top: Work(e, 1, 1, [0] * _OF_GATES, 1) for top, e in ((True, entries.top), (False, entries.below))
        }
        self._launch, self._step = step, step.work(keep)
        tables = [ctypes.addressof(t) for t in (self.table, self._bases, self._strides)]
        self._work = Work(entries.walk, 1, 1, [tables[0], counts, *tables[1:]], 1)
        self.table[abi.STEPS] = steps

    @property
    def rows(self) -> int:
        """The address of the distances between sequences, an argument of the gates."""
        return ctypes.addressof(self._rows)

    def gates(self, top: bool, first: int, *arguments: int) -> None:
        """Sets arguments of the gates, behind those that move, from `first` on."""
        self._gates[top].point(first, *arguments)

    def move(self, moving: Sequence[Sequences], rows: Sequence[int]) -> None:
        """What moves from step to step, and the distances between the sequences of it."""
        for m, (place, per_step, _) in enumerate(moving):
            self._bases[m], self._strides[m] = place, per_step
        self._rows[: len(rows)] = list(rows)

    def run(self, reverse: bool, top: bool, a: int, workspace: int) -> None:
        """Goes one way or the other; `a` is what the first step multiplies."""
        table, gates, step, omp = self.table, self._gates[top], self._step, runtime()
        self._launch.aim(step, {"a": a}, workspace)
        step.point(len(self._launch.operands) + len(self._launch.tables) - 2, gates.entry.address, gates.address)
        table[abi.REVERSE] = reverse
        table[abi.PARALLEL] = omp.parallel_address if omp is not None else 0
        table[abi.STEP], table[abi.STEP_BLOCK] = step.entry.address, step.address
        table[abi.STEP_THREADS], table[abi.GATES_BLOCK] = step.arm(), gates.address
        self._work.run()
