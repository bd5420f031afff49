"""LSTM forwards: how its tensors lie, and phase 2, from the bottom layer up, along each direction."""

from __future__ import annotations

import ctypes

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.lstm.plan import Sizes
from aclnn.kernels.lstm.program import ALONE, NOWHERE, LoopEntries, LstmProgram, Sequences, Spot, TimeLoop, scratch
from aclnn.kernels.matmul import matrix
from aclnn.kernels.native import abi, jit
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.registry import Run
from aclnn.kernels.shared import convert
from aclnn.kernels.shared.arena import Arena
from aclnn.kernels.shared.launch import Launch, Numbers, Room

ROWS_AHEAD = 256  # of the input that are multiplied before steps take them: the products are still near then
LISTS = ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")
TENSORS = ("input", "params", "hx", "batchSizes", "output", "hy", "cy", *LISTS)


def spot_of(name: str, element: int = ALONE) -> Spot:
    return Spot(TENSORS.index(name), element, 0)


def sizes_of(call: Call) -> Sizes:
    steps, batch, features = call["input"].shape
    if call["batchFirst"]:
        steps, batch = batch, steps
    directions = 2 if call["bidirectional"] else 1
    return Sizes(steps, batch, features, call["params"][1].shape[1], call["numLayers"], directions)


class ForwardPlan:
    """What phase 1 finds out: where everything lies in the workspace, and what is launched, loaded."""

    def __init__(self, call: Call, threads: int):
        sizes, dtype = sizes_of(call), call["input"].dtype
        self.call, self.sizes, self.threads, letter = call, sizes, threads, jit.POINTER[dtype]
        in_place = dtype is FLOAT32 and not call["batchFirst"] and call["input"].is_contiguous
        self.gathers = not in_place or call["batchSizes"] is not None
        self.gather = jit.load("lstm.gather", f"{letter}iii{letter}iiiFiiiiI")
        top, below = (jit.load("lstm_forward.gates", f"FiiiiiiF{out}{letter * 7}FFFFIii") for out in (letter, "F"))
        self.entries = LoopEntries(top, below, jit.load("lstm_forward.time_loop", "IIII"))
        self.ahead = min(sizes.steps, max(1, ROWS_AHEAD // sizes.batch))
        self.arena, self.numbers = Arena(), Numbers()

        def matrix(rows: int, columns: int, wanted: bool = True) -> int:
            return self.arena.reserve(4 * rows * columns) if wanted else -1

        self.a, self.bias = matrix(self.ahead * sizes.batch, 4 * sizes.hidden), matrix(1, 4 * sizes.hidden)
        self.h, self.c = matrix(2 * sizes.batch, sizes.hidden), matrix(sizes.batch, sizes.hidden)
        self.x = matrix(sizes.rows, sizes.features, self.gathers)
        self.between = [matrix(sizes.rows, sizes.width(1), sizes.layers > n) for n in (1, 2)]
        self._plan_products()
        self.total = jit.load("lstm_forward.total", f"{letter * 2}iiiF")
        self.first = None if call["hx"] is None else [self._state(spec, True) for spec in call["hx"]]
        self.last = [self._state(call[name], False) for name in ("hy", "cy")]

    def _state(self, spec: TensorSpec, comes: bool) -> convert.Copy:
        """From a slice of hx to our matrix, or from it to a slice of hy or cy."""
        slice_ = TensorSpec(spec.dtype, spec.shape[1:], spec.strides[1:])
        ours = dense(FLOAT32, slice_.shape)
        return convert.plan(*((slice_, ours) if comes else (ours, slice_)), self.threads)

    def _plan_products(self) -> None:
        """By layer and direction the packing of both weights, then a step and the product before it."""
        sizes, room, params = self.sizes, Room(self.arena, self.numbers, self.threads), self.call["params"]
        each = len(params) // (sizes.layers * sizes.directions)
        self.packing: list[list[Launch]] = []
        self.launches: list[tuple[Launch, Launch]] = []
        for k in range(sizes.layers * sizes.directions):
            w_ih, w_hh = (_turned(params[k * each + n]) for n in range(2))
            packed = matrix.Packed(w_ih, room), matrix.Packed(w_hh, room, abi.KINDS)
            x = dense(FLOAT32, (self.ahead * sizes.batch, sizes.width(k // sizes.directions)))
            step = matrix.step(dense(FLOAT32, (sizes.batch, sizes.hidden)), packed[1], room)
            self.launches.append((step, matrix.product(x, packed[0], room)))
            self.packing.append([one.launch for one in packed])
            for one in packed:
                one.release(room)
        for launch in (launch for one in (*self.packing, *self.launches) for launch in one):
            launch.load()


def _turned(weight: TensorSpec) -> TensorSpec:
    return weight._replace(shape=weight.shape[::-1], strides=weight.strides[::-1])


def forward_run(plan: ForwardPlan) -> Run:
    """What one executor runs."""
    return ForwardWriter(plan).program.run


class ForwardWriter:
    """Writes the program of a call."""

    def __init__(self, plan: ForwardPlan):
        self._plan, self._call, self._sizes, sizes = plan, plan.call, plan.sizes, plan.sizes
        self.program = LstmProgram(sizes.steps, sizes.batch, TENSORS.index("batchSizes"))
        x = self._input()
        for layer in range(sizes.layers):
            for direction in range(sizes.directions):
                self._one_direction(layer, direction, x)
            x = scratch(plan.between[layer % 2])

    def _one_direction(self, layer: int, direction: int, x: Spot) -> None:
        plan, sizes, program = self._plan, self._sizes, self.program
        k = layer * sizes.directions + direction
        each = len(self._call["params"]) // (sizes.layers * sizes.directions)
        for n, place in enumerate((plan.h, plan.c)):
            if plan.first is None:
                program.add(Work(plan.total, sizes.batch * sizes.hidden, 1, [0] * 6, 1), scratch(place), first=5)
            else:
                program.add(plan.first[n].work(), self._slice("hx", self._call["hx"][n], n, k), scratch(place))
        biases = [spot_of("params", k * each + n) for n in range(2, each)]
        strides = [self._call["params"][k * each + n].strides[0] for n in range(2, each)]
        total = Work(plan.total, 4 * sizes.hidden, 1, [0] * 6, 1)
        program.add(total, *(biases or (0, 0)), *(strides or (0, 0)), len(biases), scratch(plan.bias))
        for n, packing in enumerate(plan.packing[k]):
            program.add_launch(packing, plan.numbers, {"b": spot_of("params", k * each + n)})
        self._time_loop(layer, direction, x)
        last = plan.h + 4 * sizes.batch * sizes.hidden * (sizes.steps % 2)  # where the loop leaves the states
        for name, place, copy in zip(("hy", "cy"), (last, plan.c), plan.last, strict=True):
            program.add(copy.work(), scratch(place), self._slice(name, self._call[name], ALONE, k))

    def _time_loop(self, layer: int, direction: int, x: Spot) -> None:
        plan, sizes, call, top = self._plan, self._sizes, self._call, layer == self._sizes.layers - 1
        k = layer * sizes.directions + direction
        step, product = plan.launches[k]
        loop = TimeLoop(plan.entries, top, direction == 1, step, plan.numbers, self.program)
        out = self._target(layer, direction)
        kept = [Sequences(NOWHERE, 0, 0)] * len(LISTS)
        if call["train"]:  # else the lists take no part, whatever was given for them
            kept = [Sequences.of(spot_of(name, k), call[name][k]) for name in LISTS]
        a = Sequences(scratch(plan.a), 16 * sizes.batch * sizes.hidden, 0)
        loop.move([a, out, *kept, Sequences(x, 0, 0)], [one.per_sequence for one in (out, *kept)])
        block, first = loop.gates.block, abi.FIRST_ARGUMENT + abi.H_AFTER + 1
        self.program.point(
            block, first, scratch(plan.c), scratch(plan.bias), loop.distances, sizes.hidden, call["train"]
        )
        loop.begin(scratch(plan.h))
        loop.multiply_ahead(product, plan.numbers, plan.ahead, {"a": 0, "c": scratch(plan.a)})
        self.program.point(loop.table, abi.STATE, scratch(plan.h), 4 * sizes.batch * sizes.hidden)
        loop.table[abi.FEATURES] = 4 * sizes.batch * sizes.width(layer)
        self.program.add_loop(loop)

    def _slice(self, name: str, spec: TensorSpec, element: int, k: int) -> Spot:
        return spot_of(name, element).further(k * spec.strides[0] * spec.dtype.itemsize)

    def _input(self) -> Spot:
        """Where the input is a float32 matrix, step after step."""
        sizes, spec, plan = self._sizes, self._call["input"], self._plan
        if not plan.gathers:
            return spot_of("input")
        source, counts = Sequences.of(spot_of("input"), spec, self._call["batchFirst"]), self.program.counts
        team = worth(sizes.rows * sizes.features, convert.PER_THREAD, plan.threads)
        work = Work(plan.gather, sizes.rows, 1, [0] * 14, team)
        values = source.spot, source.per_step // spec.dtype.itemsize, source.per_sequence, source.per_feature
        nothing_before = source.spot, 0, 0, 0
        rows = scratch(plan.x), sizes.features, sizes.features, sizes.batch, sizes.steps, ctypes.addressof(counts)
        self.program.add(work, *values, *nothing_before, *rows)
        return scratch(plan.x)

    def _target(self, layer: int, direction: int) -> Sequences:
        """Where the states of a layer and direction go: to the caller, or to the layer above."""
        sizes, spec = self._sizes, self._call["output"]
        if layer == sizes.layers - 1:
            spot = spot_of("output").further(direction * sizes.hidden * spec.dtype.itemsize)
            return Sequences.of(spot, spec, self._call["batchFirst"])
        width = sizes.width(1)
        place = self._plan.between[layer % 2] + 4 * direction * sizes.hidden
        return Sequences(scratch(place), 4 * sizes.batch * width, width)
