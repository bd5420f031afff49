"""The walk over the steps of one layer and direction: launches nopython.lstm.walk."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from aclnn.base.dtype import DType
from aclnn.base.geometry import Array
from aclnn.kernels import jit, onednn
from aclnn.kernels.entry import Entry
from aclnn.kernels.lstm_program import Step
from aclnn.kernels.nopython import agreed
from aclnn.kernels.program import Session
from aclnn.kernels.strides import address
from aclnn.kernels.threads import Work, runtime, worth

PER_THREAD = 8192  # elements of a step that pay for waking a thread


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
        top, below = (jit.load("lstm.gates", f"{letter * 6}{dy}I{letter}FFFFiiii") for dy in (letter, "F"))
        return cls(top, below, jit.load("lstm.walk", "IIII"))


class Walk:
    """One executor's tables. `counts` is the address of how many sequences take part in each step."""

    def __init__(self, entries: Entries, steps: int, batch: int, hidden: int, step: Step, counts: int):
        self._rows, self._bases, self._strides = ((ctypes.c_int64 * 8)() for _ in range(3))
        self._table = (ctypes.c_int64 * agreed.TABLE_SIZE)()
        self._grad_step = batch * 4 * hidden * 4
        arguments = [0] * agreed.MOVING + [ctypes.addressof(self._rows)] + [0] * 5 + [hidden, 0, 0, 0]
        team = worth(batch * hidden, PER_THREAD, step.threads)
        self._gates = {
            top: Work(e, batch, 1, arguments, team) for top, e in ((True, entries.top), (False, entries.below))
        }
        tables = [ctypes.addressof(t) for t in (self._table, self._bases, self._strides)]
        self._work = Work(entries.walk, 1, 1, [tables[0], counts, *tables[1:]], 1)
        self._table[agreed.STEPS] = steps
        self._step, self._session = step, step.session()

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
        self._fill(reverse, gates)
        self._fill_product(places, w_hh, workspace)
        with onednn.library().limits.held_at(self._step.threads):
            self._work.run()
        onednn.library().check(self._table[agreed.STATUS])
        return self._table[agreed.MADE]

    def _fill(self, reverse: bool, gates: Work) -> None:
        omp, table = runtime(), self._table
        table[agreed.REVERSE], table[agreed.STATUS] = reverse, 0
        table[agreed.PARALLEL] = omp.parallel_address if omp is not None else 0
        table[agreed.GATES], table[agreed.GATES_BLOCK] = gates.entry.address, gates.address
        table[agreed.GATES_THREADS] = gates.arm()

    def _fill_product(self, places: Places, w_hh: int, workspace: int) -> None:
        """Points the product of a step to this run's memory."""
        table, session, step = self._table, self._session, self._step
        if not isinstance(session, Session):
            session.point(0, places.grad, w_hh, places.dh_made)
            table[agreed.PRIMITIVE], table[agreed.PRODUCT_THREADS] = 0, session.arm()
            table[agreed.PRODUCT], table[agreed.PRODUCT_BLOCK] = session.entry.address, session.address
            return
        session.bind(workspace, [(step.grad, places.grad), (step.weight, w_hh), (step.dh, places.dh_made)])
        session.forget(step.grad)  # the walk moves it
        session.run(but_the_last=True)
        lib, (primitive, arguments) = onednn.library(), session.steps[-1]
        table[agreed.SET_HANDLE] = lib.address("memory_set_data_handle")
        table[agreed.EXECUTE] = lib.address("primitive_execute")
        table[agreed.PRIMITIVE], table[agreed.STREAM] = primitive.handle, session.stream
        table[agreed.ARGUMENTS], table[agreed.ARGUMENT_COUNT] = ctypes.addressof(arguments), len(arguments)
        table[agreed.GRAD_MEMORY] = session.memory[step.grad.number]
