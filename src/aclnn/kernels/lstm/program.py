"""What one executor of an LSTM runs: pieces of work in order, and which of their arguments lie where.

Strides, sizes and places in the workspace are known in phase 1. What is left for a run is the address of every tensor,
looked up once, and the arguments that lie so many bytes behind it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.kernels.native import abi
from aclnn.kernels.native.entry import Entry
from aclnn.kernels.native.memory import address, aligned
from aclnn.kernels.native.threads import Work, runtime
from aclnn.kernels.shared.launch import Launch

WORKSPACE, ALONE = -1, -1
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


class LoopEntries(NamedTuple):
    """What a time loop executes beside the products: gates whose output, or its gradient, the caller has, gates where
    it is a float32 matrix of ours, the loop itself."""

    top: Entry
    below: Entry
    loop: Entry


class TimeLoop:
    """The steps of one layer and direction: the tables that source.lstm and source.lstm_forward read."""

    def __init__(
        self, entries: LoopEntries, top: bool, reverse: bool, step: Launch, keep: object, program: LstmProgram
    ):
        self._program, self._launch = program, step
        self.table = (ctypes.c_int64 * abi.TABLE_SIZE)()
        self._distances, self._bases, self._strides = ((ctypes.c_int64 * 12)() for _ in range(3))
        self.gates = Work(entries.top if top else entries.below, 1, 1, [0] * _OF_GATES, 1)
        self._step = step.work(keep)
        self._product: Work | None = None
        tables = [ctypes.addressof(t) for t in (self._bases, self._strides)]
        counts = ctypes.addressof(program.counts)
        self._work = Work(entries.loop, 1, 1, [ctypes.addressof(self.table), counts, *tables], 1)
        self._step.point(len(step.operands) + len(step.tables) - 2, self.gates.entry.address, self.gates.address)
        self.table[abi.STEPS], self.table[abi.REVERSE] = len(program.counts), reverse
        self.table[abi.STEP], self.table[abi.STEP_BLOCK] = self._step.entry.address, self._step.address
        self.table[abi.GATES_BLOCK] = self.gates.address

    @property
    def distances(self) -> int:
        """The address of the distances between sequences, an argument of the gates."""
        return ctypes.addressof(self._distances)

    def begin(self, a: Spot) -> None:
        """What the first step multiplies."""
        self._program.aim(self._launch, self._step, {"a": a})

    def move(self, moving: Sequence[Sequences], distances: Sequence[int]) -> None:
        """What moves from step to step, and the distances between the sequences of it."""
        self._program.point(self._bases, 0, *(one.spot for one in moving))
        self._program.point(self._strides, 0, *(one.per_step for one in moving))
        self._program.point(self._distances, 0, *distances)

    def multiply_ahead(self, launch: Launch, keep: object, steps: int, spots: Mapping[str, Spot | int]) -> None:
        """The product with the input of some steps, which comes before them."""
        self._product = product = launch.work(keep)
        self._program.aim(launch, product, spots)
        self.table[abi.PRODUCT], self.table[abi.PRODUCT_BLOCK] = product.entry.address, product.address
        self.table[abi.PRODUCT_STEPS] = steps

    def run(self) -> None:
        """On the threads that can be had now: a fork may have taken them."""
        omp = runtime()
        self.table[abi.PARALLEL] = omp.parallel_address if omp is not None else 0
        self.table[abi.STEP_THREADS] = self._step.arm()
        if self._product is not None:
            self.table[abi.PRODUCT_THREADS] = self._product.arm()
        self._work.run()
