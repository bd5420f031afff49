"""Sequences of oneDNN primitives over tensors and a workspace."""

from __future__ import annotations

import ctypes
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from ctypes import c_int, c_void_p
from typing import Any, Generic, NamedTuple, TypeVar

from aclnn.base.run_once import ProcessLock, fork_count
from aclnn.kernels.native import floating
from aclnn.kernels.native.threads import runtime
from aclnn.kernels.onednn import library as onednn
from aclnn.kernels.onednn.library import DST, SCRATCHPAD, SRC, Layout, Primitive
from aclnn.kernels.registry import forgetters
from aclnn.kernels.shared.workspace import Arena


class Buffer(NamedTuple):
    """A tensor of a program: at an offset of the workspace, or bound at every run."""

    number: int
    layout: Layout
    offset: int | None


class Program:
    """Primitives in order, and the buffers they work on. Immutable once built; shared between threads."""

    def __init__(self, threads: int):
        self.threads = threads
        self.arena = Arena()
        self.buffers: list[Buffer] = []
        self.steps: list[tuple[Primitive, dict[int, Buffer]]] = []

    def tensor(self, layout: Layout) -> Buffer:
        """Memory of the caller's, bound at every run."""
        return self._add(layout, None)

    def scratch(self, layout: Layout) -> Buffer:
        """Memory in the workspace, until it is released."""
        return self._add(layout, self.arena.reserve(layout.size))

    def release(self, *buffers: Buffer) -> None:
        """Ends the life of scratch buffers; tensors are passed over."""
        for buffer in buffers:
            if buffer.offset is not None:
                self.arena.release(buffer.offset, buffer.layout.size)

    def laid_out(self, source: Buffer, layout: Layout) -> Buffer:
        """The same elements in another layout: the source itself, or a reordered copy."""
        if source.layout.same_as(layout):
            return source
        copy = self.scratch(layout)
        self.copy(source, copy)
        return copy

    def copy(self, source: Buffer, target: Buffer) -> None:
        self.execute(onednn.reorder(source.layout, target.layout), {SRC: source, DST: target})

    def execute(self, primitive: Primitive, arguments: Mapping[int, Buffer]) -> None:
        given = dict(arguments)
        if primitive.scratch.size:
            given[SCRATCHPAD] = self.scratch(primitive.scratch)
            self.release(given[SCRATCHPAD])
        self.steps.append((primitive, given))

    def _add(self, layout: Layout, offset: int | None) -> Buffer:
        buffer = Buffer(len(self.buffers), layout, offset)
        self.buffers.append(buffer)
        return buffer


Made = TypeVar("Made")


BYTES_OF_A_STEP = 2**16  # generated code and descriptions that a step keeps alive: 40 to 60 KB were measured
MOST_BYTES = 2**26  # that one kind of program keeps alive


class Recent(Generic[Made]):
    """What was made last, up to a number of entries and of steps in them; safe to share between threads."""

    def __init__(self, steps: Callable[[Made], int], limit: int = 128, most_steps: int = MOST_BYTES // BYTES_OF_A_STEP):
        self._made: OrderedDict[Hashable, Made] = OrderedDict()
        self._steps, self._limit, self._most_steps = steps, limit, most_steps
        self._lock = ProcessLock()
        _every_recent.add(self)

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        key = fork_count(), key  # what a forked child inherits counts on threads of its parent
        with self._lock():
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = make()  # outside the lock: it may take long, and two threads may both do it
        with self._lock():
            self._made[key] = made
            while len(self._made) > self._limit or self._has_too_many_steps():
                self._made.popitem(last=False)
        return made

    def _has_too_many_steps(self) -> bool:
        return len(self._made) > 1 and sum(map(self._steps, self._made.values())) > self._most_steps

    def clear(self) -> None:
        with self._lock():
            self._made.clear()

    def __len__(self) -> int:
        return len(self._made)


_every_recent: weakref.WeakSet[Recent[Any]] = weakref.WeakSet()


def forget_programs() -> None:
    """Lets go of what no executor and no plan uses any longer."""
    for recent in list(_every_recent):
        recent.clear()


forgetters.append(forget_programs)


class _Argument(ctypes.Structure):
    _fields_ = (("which", c_int), ("memory", c_void_p))


class Session:
    """The memory objects of one executor."""

    def __init__(self, program: Program):
        lib = self._lib = onednn.library()
        self.program = program
        self.stream = lib.owned(self, "stream", lib.made("stream_create", lib.engine, onednn.IN_ORDER))
        self.memory = [
            lib.owned(self, "memory", lib.made("memory_create", b.layout.handle, lib.engine, None))
            for b in program.buffers
        ]
        self._at: list[int] = [0] * len(program.buffers)
        self.steps = [(p, self._arguments(given)) for p, given in program.steps]
        self._inner = [b for b in program.buffers if b.offset is not None]

    def _arguments(self, given: Mapping[int, Buffer]) -> ctypes.Array[_Argument]:
        return (_Argument * len(given))(*(_Argument(which, self.memory[b.number]) for which, b in given.items()))

    def bind(self, workspace: int, tensors: Sequence[tuple[Buffer, int]]) -> None:
        """Points every buffer to where it lies in this run; `workspace` is aligned."""
        for buffer in self._inner:
            self._point(buffer.number, workspace + (buffer.offset or 0))
        for buffer, address in tensors:
            self._point(buffer.number, address)

    def _point(self, number: int, address: int) -> None:
        if self._at[number] != address:
            self._lib.check(self._lib.functions.dnnl_memory_set_data_handle(self.memory[number], address))
            self._at[number] = address

    def run(self) -> None:
        """Executes every step, on the threads the program was made for."""
        lib = onednn.library()  # refuses after a fork
        execute = lib.functions.dnnl_primitive_execute
        omp = runtime()
        if omp is not None and self.program.threads > 1:
            floating.clear_workers(omp.parallel, self.program.threads)
        with lib.limits.held_at(self.program.threads):
            for primitive, arguments in self.steps:
                lib.check(execute(primitive.handle, self.stream, len(arguments), arguments))
