"""What one executor of an LSTM runs: pieces of work in order, and which of their arguments lie where.

Strides, sizes and places in the workspace are known in phase 1. What is left for a run is the address of every tensor,
looked up once, and the arguments that lie so many bytes behind it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.matmul import matrix
from aclnn.kernels.native import abi, jit
from aclnn.kernels.native.entry import Entry
from aclnn.kernels.native.memory import address, aligned
from aclnn.kernels.native.threads import Work, runtime
from aclnn.kernels.shared import convert
from aclnn.kernels.shared.launch import Launch
from aclnn.kernels.shared.workspace import Arena

WORKSPACE, ALONE = -1, -1
FAR = 2**20  # elements of lists, from which on they drive what is needed sooner out of the caches
ROWS_AHEAD = 256  # of the input that are multiplied before steps take them: what is made is still near then
NEAR = (4, 2**18), (8, 2**20)  # for so many sequences, so many weights of the input are near from step to step
KERNELS = ("lstm.steps", "IIIii"), ("lstm.time_loop", "I")  # of a time loop
_OF_GATES = abi.GATES_WORDS - abi.FIRST_ARGUMENT  # arguments, at most


class Spot(NamedTuple):
    """Bytes behind a tensor of the call: its position among the tensors, and in a list; or behind the workspace."""

    tensor: int
    element: int
    behind: int

    def further(self, count: int) -> Spot:
        return self._replace(behind=self.behind + count)


def scratch(place: int) -> Spot:
    return Spot(WORKSPACE, ALONE, place)


NOWHERE = Spot(WORKSPACE, ALONE, 0)


class Sequences(NamedTuple):
    """[T, B, features]: bytes from step to step, elements from sequence to sequence and from feature to feature."""

    spot: Spot
    per_step: int
    per_sequence: int
    per_feature: int = 1

    @classmethod
    def of(cls, spot: Spot, spec: TensorSpec, batch_first: bool = False) -> Sequences:
        per_step, per_sequence, per_feature = spec.strides
        if batch_first:
            per_step, per_sequence = per_sequence, per_step
        return cls(spot, per_step * spec.dtype.itemsize, per_sequence, per_feature)


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
    def widest(self) -> int:
        return max(self.width(layer) for layer in range(self.layers))

    def ahead(self) -> int:
        """How many steps' input a forward multiplies together, before the steps: 1 if each multiplies its own. That
        reads these weights once per step, but makes no sums that must be kept for it (0.9 of the time)."""
        weights = 4 * self.hidden * self.widest
        if any(self.batch >= few and weights <= most for few, most in NEAR):
            return 1
        return min(self.steps, max(1, ROWS_AHEAD // self.batch))


def how_kept(call: Call, lists: Sequence[str]) -> int:
    """Whether the gates keep what the backward operator asks for, and whether past the caches."""
    if not call["train"]:
        return 0
    specs = [spec for name in lists for spec in call[name]]
    is_far = sum(spec.size for spec in specs) >= FAR and all(spec.dtype is FLOAT32 for spec in specs)
    return abi.KEEPS_FAR if is_far else abi.KEEPS


class LstmProgram:
    """Pieces of work in order. Runs one call at a time; `counts`: how many sequences take part in each step."""

    def __init__(self, steps: int, batch: int, batch_sizes: int):
        self.counts = (ctypes.c_int64 * steps)(*[batch] * steps)
        self._batch_sizes = batch_sizes
        self._arguments: dict[tuple[int, int], list[tuple[Any, int, int]]] = {}
        self._runs: list[Callable[[], None]] = []

    def point(self, words: Any, first: int, *values: Spot | int) -> None:
        """Sets words from `first` on, those that are spots in every run."""
        for at, value in enumerate(values, first):
            if isinstance(value, Spot):
                self._arguments.setdefault(value[:2], []).append((words, at, value.behind))
            else:
                words[at] = value

    def aim(self, launch: Launch, work: Work, spots: Mapping[str, Spot | int]) -> None:
        """Points the work of a launch to its operands by name, and to its places in the workspace."""
        places = (0 if o is None else scratch(o) if isinstance(o, int) else spots[o] for o in launch.operands)
        self.point(work.block, abi.FIRST_ARGUMENT, *places)

    def add(self, work: Work, *values: Spot | int, first: int = 0) -> None:
        self.point(work.block, abi.FIRST_ARGUMENT + first, *values)
        self._runs.append(work.run)

    def add_launch(self, launch: Launch, keep: object, spots: Mapping[str, Spot | int]) -> None:
        work = launch.work(keep)
        self.aim(launch, work, spots)
        self.add(work)

    def add_loop(self, loop: TimeLoop) -> None:
        self._runs.append(loop.run)

    def run(self, workspace: Array, *tensors: Any) -> None:
        for (position, element), arguments in self._arguments.items():
            if position == WORKSPACE:
                where = aligned(address(workspace))
            elif tensors[position] is None:
                continue
            else:
                where = address(tensors[position] if element == ALONE else tensors[position][element])
            for words, at, behind in arguments:
                words[at] = where + behind
        if tensors[self._batch_sizes] is not None:
            self.counts[:] = tensors[self._batch_sizes].tolist()
        for run in self._runs:
            run()


class DenseCopies:
    """Dense copies, in the workspace, of tensors whose features do not lie side by side. They come before the program
    runs, or go after it."""

    def __init__(self, arena: Arena, threads: int, come: bool):
        self._arena, self._threads, self._come = arena, threads, come
        self._copies: dict[Spot, tuple[convert.Copy, Spot]] = {}

    def of(self, spot: Spot, spec: TensorSpec) -> TensorSpec:
        """How the tensor at a spot lies where it is met."""
        if spec.strides[-1] == 1 or spec.shape[-1] == 1:
            return spec
        ours = dense(spec.dtype, spec.shape)
        copy = convert.plan(*((spec, ours) if self._come else (ours, spec)), self._threads)
        self._copies[spot] = copy, scratch(self._arena.reserve(ours.size * ours.dtype.itemsize))
        return ours

    def met_at(self, spot: Spot) -> Spot:
        return self._copies[spot][1] if spot in self._copies else spot

    def add_to(self, program: LstmProgram) -> None:
        for spot, (copy, ours) in self._copies.items():
            program.add(copy.work(), *((spot, ours) if self._come else (ours, spot)))


class Moving(NamedTuple):
    """What a round of the loop works on: so many bytes further for each of what a clock counts."""

    spot: Spot
    per_count: int
    clock: int = abi.NOW


class TimeLoop:
    """The steps of one layer and direction: the tables that source.lstm reads."""

    def __init__(self, program: LstmProgram, step: matrix.StepLaunch, gates: Entry, keep: object):
        self._program, self._step = program, step.launch.work(keep)
        self._ahead: Work | None = None
        self._distances, self.table = (ctypes.c_int64 * 12)(), (ctypes.c_int64 * abi.TABLE_SIZE)()
        self._moving = (ctypes.c_int64 * (abi.MOVING_WORDS * 12))()
        self._gates = Work(gates, 1, 1, [0] * _OF_GATES, 1)
        self._step.point(abi.STEP_GATES - 1, gates.address)
        program.aim(step.launch, self._step, {"a": 0, "x": 0})
        tables = [ctypes.addressof(one) for one in (self.table, program.counts, self._moving)]
        self._some = Work(jit.load(*KERNELS[0]), step.apart, 1, [*tables, 0, 0], step.apart)
        self._work = Work(jit.load(*KERNELS[1]), 1, 1, tables[:1], 1)
        self.table[abi.STEP], self.table[abi.STEP_BLOCK] = self._step.entry.address, self._step.address
        self.table[abi.SOME], self.table[abi.SOME_BLOCK] = self._some.entry.address, self._some.address
        self.table[abi.GATES_BLOCK], self.table[abi.LOTS_APART] = self._gates.address, step.apart
        self.table[abi.STEPS], self.table[abi.AHEAD] = len(program.counts), len(program.counts) + 1

    def move(self, moving: Sequence[Moving], distances: Sequence[int], *others: Spot | int) -> None:
        """What moves, first what is multiplied, then what the gates are given; the distances between the sequences of
        that, and the other arguments of the gates."""
        for n, one in enumerate(moving):
            self._program.point(self._moving, abi.MOVING_WORDS * n, *one)
        self._program.point(self._distances, 0, *distances)
        self.table[abi.MOVING_COUNT], first = len(moving), abi.FIRST_ARGUMENT + abi.MOVING + len(moving) - 1
        self._program.point(self._gates.block, first, ctypes.addressof(self._distances), *others)

    def take_input(self, x: Spot, per_step: int) -> None:
        """Where the input of the first step lies, and the bytes to the next."""
        self._program.point(self.table, abi.INPUT, x, per_step)

    def multiply_ahead(self, launch: Launch, keep: object, steps: int, c: Spot) -> None:
        """The matmul with the input of some steps, which comes before them."""
        self._ahead = work = launch.work(keep)
        self._program.aim(launch, work, {"a": 0, "c": c})
        self.table[abi.AHEAD_ENTRY], self.table[abi.AHEAD_BLOCK] = work.entry.address, work.address
        self.table[abi.AHEAD] = steps

    def run(self) -> None:
        """On the threads that can be had now: a fork may have taken them."""
        omp = runtime()
        self.table[abi.PARALLEL] = omp.parallel_address if omp is not None else 0
        self.table[abi.STEP_THREADS], self.table[abi.SOME_THREADS] = self._step.arm(), self._some.arm()
        if self._ahead is not None:
            self.table[abi.AHEAD_THREADS] = self._ahead.arm()
        self._work.run()
