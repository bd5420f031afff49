"""The walk over the steps of one layer and direction: launches nopython.lstm.walk."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from aclnn.base.dtype import DType
from aclnn.base.geometry import Array
from aclnn.kernels import jit, onednn
from aclnn.kernels.entry import Entry
from aclnn.kernels.lstm_products import Product, Table
from aclnn.kernels.nopython import agreed
from aclnn.kernels.strides import address
from aclnn.kernels.threads import Work, runtime, worth

PER_THREAD = 8192  # elements of a step that pay for waking a thread


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


class Sequences(NamedTuple):
    """[T, B, features] by address: bytes from step to step, elements from sequence to sequence."""

    place: int
    per_step: int
    per_sequence: int

    @classmethod
    def of(cls, array: Array) -> Sequences:
        """An array with the time first."""
        return cls(address(array), array.strides[0], array.strides[1] // array.itemsize)


class Places(NamedTuple):
    """Float32 matrices in the workspace, by address: gradients of the gates, and of the states."""

    grad: int
    dh: int
    dh_made: int
    dc: int


class Entries(NamedTuple):
    """What a walk executes, loaded in phase 1: gates where dy is the caller's, gates where it is ours, the loop."""

    top: Entry
    below: Entry
    walk: Entry

    @classmethod
    def load(cls, dtype: DType) -> Entries:
        letter = jit.POINTER[dtype]
        top, below = (jit.load("lstm.gates", f"{letter * 6}{dy}I{letter}FFFFiiiii") for dy in (letter, "F"))
        return cls(top, below, jit.load("lstm.walk", "IIII"))


class Walk:
    """One executor's tables. `counts` is the address of how many sequences take part in each step."""

    def __init__(self, entries: Entries, sizes: Sizes, pitch: int, step: Product, threads: int, counts: int):
        self._rows, self._bases, self._strides = ((ctypes.c_int64 * 8)() for _ in range(3))
        self._table = (ctypes.c_int64 * agreed.TABLE_SIZE)()
        self._grad_step = 4 * sizes.batch * pitch
        arguments = [0] * agreed.MOVING + [ctypes.addressof(self._rows)] + [0] * 5 + [sizes.hidden, 0, 0, 0, pitch]
        team = worth(sizes.batch * sizes.hidden, PER_THREAD, threads)
        self._gates = {
            top: Work(e, sizes.batch, 1, arguments, team) for top, e in ((True, entries.top), (False, entries.below))
        }
        tables = [ctypes.addressof(t) for t in (self._table, self._bases, self._strides)]
        self._work = Work(entries.walk, 1, 1, [tables[0], counts, *tables[1:]], 1)
        self._table[agreed.STEPS] = sizes.steps
        self._threads, self._product = threads, step.multiplier()

    def run(
        self,
        reverse: bool,
        top: bool,
        moving: Sequence[Sequences],  # i, f, g, o, tanhc, c, dy
        c_first: Array,
        places: Places,
        w_hh: int,
        workspace: int,
    ) -> int:
        """Returns how many sequences have their dh in places.dh_made; the others have it in places.dh."""
        for m, (place, per_step, per_sequence) in enumerate(moving):
            self._bases[m], self._strides[m], self._rows[m] = place, per_step, per_sequence
        self._bases[agreed.MOVING], self._strides[agreed.MOVING] = places.grad, self._grad_step
        self._rows[agreed.MOVING] = c_first.strides[0] // c_first.itemsize
        gates = self._gates[top]
        gates.point(agreed.MOVING + 1, address(c_first), places.dh_made, places.dh, places.dc)
        begin(self._table, reverse, gates)
        self._product.hand_over(self._table, places.grad, w_hh, places.dh_made, workspace)
        go(self._work, self._table, self._threads)
        return self._table[agreed.MADE]


def begin(table: Table, reverse: bool, gates: Work) -> None:
    """Says which way a walk goes, and what it launches at every step beside the product."""
    omp = runtime()
    table[agreed.REVERSE], table[agreed.STATUS] = reverse, 0
    table[agreed.PARALLEL] = omp.parallel_address if omp is not None else 0
    table[agreed.GATES], table[agreed.GATES_BLOCK] = gates.entry.address, gates.address
    table[agreed.GATES_THREADS] = gates.arm()


def go(walk: Work, table: Table, threads: int) -> None:
    if table[agreed.PRIMITIVE] == 0:
        walk.run()
        return
    with onednn.library().limits.held_at(threads):
        walk.run()
    onednn.library().check(table[agreed.STATUS])
