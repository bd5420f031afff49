"""Sequences of oneDNN primitives over tensors and a workspace."""

from __future__ import annotations

import ctypes
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from ctypes import c_int, c_void_p
from typing import Any, Generic, NamedTuple, TypeVar

from aclnn.base.dtype import FLOAT32
from aclnn.base.once import ProcessLock, fork_count
from aclnn.kernels import floating, onednn
from aclnn.kernels.onednn import DST, SCRATCHPAD, SRC, WEIGHTS, Layout, Primitive
from aclnn.kernels.registry import forgetters
from aclnn.kernels.strides import LINE, aligned
from aclnn.kernels.threads import runtime


class Arena:
    """Plans who lies where in a workspace: bytes that are given back serve again."""

    def __init__(self) -> None:
        self._free: list[tuple[int, int]] = []  # (offset, size) of gaps, in order, never touching
        self._end = 0

    @property
    def size(self) -> int:
        """What to ask the caller for: workspaces come at any address."""
        return self._end + LINE if self._end else 0

    def reserve(self, size: int) -> int:
        """The offset of `size` bytes: the smallest gap they fit into, else the end."""
        size = _lines(size)
        fitting = [gap for gap in self._free if gap[1] >= size]
        if not fitting:
            self._end += size
            return self._end - size
        offset, room = min(fitting, key=lambda gap: gap[1])
        self._free.remove((offset, room))
        if room > size:
            self.release(offset + size, room - size)
        return offset

    def release(self, offset: int, size: int) -> None:
        """Gives bytes back."""
        size = _lines(size)
        gaps = sorted([*self._free, (offset, size)])
        self._free = []
        for start, room in gaps:
            if self._free and sum(self._free[-1]) == start:
                start, room = self._free[-1][0], self._free.pop()[1] + room
            self._free.append((start, room))


def _lines(size: int) -> int:
    """The bytes of the lines that hold `size` bytes; an empty buffer has one too, so that no other lies around it."""
    return aligned(max(size, 1))


class Buffer(NamedTuple):
    """A tensor of a program: at an offset of the workspace, or of another buffer, or bound at every run."""

    number: int
    layout: Layout
    offset: int | None
    within: int | None = None  # the number of the buffer it is a part of


class Program:
    """Primitives in order, and the buffers they work on. Immutable once built; shared between threads."""

    def __init__(self, threads: int, arena: Arena | None = None):
        self.threads = threads
        self.arena = arena or Arena()
        self.buffers: list[Buffer] = []
        self.steps: list[tuple[Primitive, dict[int, Buffer]]] = []

    def tensor(self, layout: Layout) -> Buffer:
        """Memory of the caller's, bound at every run."""
        return self._add(layout, None)

    def scratch(self, layout: Layout) -> Buffer:
        """Memory in the workspace, until it is released."""
        return self._add(layout, self.arena.reserve(layout.size))

    def part(self, whole: Buffer, layout: Layout, start: int = 0) -> Buffer:
        """Elements of another buffer, from a byte on, seen in another layout."""
        return self._add(layout, start, whole.number)

    def release(self, *buffers: Buffer) -> None:
        """Ends the life of scratch buffers; tensors and parts are passed over."""
        for buffer in buffers:
            if buffer.offset is not None and buffer.within is None:
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

    def packed(self, b: Buffer, size: tuple[int, int], a: Layout, c: Layout) -> Buffer:
        """A float32 matrix as the right-hand side of the products a·b = c: copied into the layout they like best."""
        product = onednn.matmul(a, onednn.any_layout(FLOAT32, size), c)
        return self.laid_out(b, product.layout(WEIGHTS))

    def multiply(self, a: Buffer, b: Buffer, c: Buffer, add: bool = False) -> None:
        """c = a·b, or c += a·b."""
        self.execute(onednn.matmul(a.layout, b.layout, c.layout, add), {SRC: a, WEIGHTS: b, DST: c})

    def execute(self, primitive: Primitive, arguments: Mapping[int, Buffer]) -> None:
        given = dict(arguments)
        if primitive.scratch.size:
            given[SCRATCHPAD] = self.scratch(primitive.scratch)
            self.release(given[SCRATCHPAD])
        self.steps.append((primitive, given))

    def _add(self, layout: Layout, offset: int | None, within: int | None = None) -> Buffer:
        buffer = Buffer(len(self.buffers), layout, offset, within)
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
        self._inner = [b for b in program.buffers if b.offset is not None and b.within is None]
        self._parts = [(b.number, b.within, b.offset or 0) for b in program.buffers if b.within is not None]

    def _arguments(self, given: Mapping[int, Buffer]) -> ctypes.Array[_Argument]:
        return (_Argument * len(given))(*(_Argument(which, self.memory[b.number]) for which, b in given.items()))

    def bind(self, workspace: int, tensors: Sequence[tuple[Buffer, int]]) -> None:
        """Points every buffer to where it lies in this run; `workspace` is aligned."""
        for buffer in self._inner:
            self._point(buffer.number, workspace + (buffer.offset or 0))
        for buffer, address in tensors:
            self._point(buffer.number, address)
        for number, whole, start in self._parts:
            self._point(number, self._at[whole] + start)

    def forget(self, buffer: Buffer) -> None:
        """Says that others have pointed a buffer elsewhere."""
        self._at[buffer.number] = 0

    def _point(self, number: int, address: int) -> None:
        if self._at[number] != address:
            self._lib.check(self._lib.functions.dnnl_memory_set_data_handle(self.memory[number], address))
            self._at[number] = address

    def run(self, but_the_last: bool = False) -> None:
        """Executes every step, on the threads the program was made for; or leaves the last one to others."""
        lib = onednn.library()  # refuses after a fork
        execute = lib.functions.dnnl_primitive_execute
        omp = runtime()
        if omp is not None and self.program.threads > 1:
            floating.clear_workers(omp.parallel, self.program.threads)
        with lib.limits.held_at(self.program.threads):
            for primitive, arguments in self.steps[:-1] if but_the_last else self.steps:
                lib.check(execute(primitive.handle, self.stream, len(arguments), arguments))
