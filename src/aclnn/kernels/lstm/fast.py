"""LSTM, backwards and forwards, on compiled loops and matmuls: float32, float16 and bfloat16, sequences of any length.

Per layer and direction a loop over the steps. Backwards it makes the gradients of the gates, [T·B, 4H] in float32, with
one small matmul per step; then three matmuls over the whole sequence make dx and the gradients of the weights.
Forwards it multiplies the input of some steps, then for each of them the state, to which that is added, and makes the
gates. Between layers states stay float32, whatever they are rounded to in the lists.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.lstm.program import (
    ALONE,
    KERNELS,
    NOWHERE,
    DenseCopies,
    LstmProgram,
    Moving,
    Sequences,
    Sizes,
    Spot,
    TimeLoop,
    how_kept,
    scratch,
)
from aclnn.kernels.matmul import matrix
from aclnn.kernels.native import abi, jit
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel
from aclnn.kernels.shared import convert, sums
from aclnn.kernels.shared.launch import Launch, Numbers, Room
from aclnn.kernels.shared.workspace import Arena, spread

MOST_SEQUENCES = 2**22  # a plan lists where each begins
PER_THREAD = 32768  # elements of a copy that pay for waking a thread
SAVED = ("i", "f", "g", "o", "tanhc", "c")  # in the order of the gates' arguments
LISTS = ("iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")  # likewise


@kernel("aclnnLstmBackward", "tiles", engine="fast")
def lstm_backward_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    steps, batch, hidden = call["i"][0].shape
    sizes = Sizes(steps, batch, call["input"].shape[2], hidden, call["numLayers"], 2 if call["bidirectional"] else 1)
    return _prepared(BackwardPlan, call, sizes, threads, ("dy", "i", "g", "f", "o", "c", "tanhc", "hx"))


@kernel("aclnnLSTM", "tiles", engine="fast")
def lstm_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    steps, batch, features = call["input"].shape
    if call["batchFirst"]:
        steps, batch = batch, steps
    hidden, directions = call["params"][1].shape[1], 2 if call["bidirectional"] else 1
    sizes = Sizes(steps, batch, features, hidden, call["numLayers"], directions)
    return _prepared(ForwardPlan, call, sizes, threads, ("output", *(LISTS if call["train"] else ())))


def _prepared(
    plan_of: type[LstmPlan], call: Call, sizes: Sizes, threads: int, side_by_side: Sequence[str]
) -> Prepared | Refusal:
    if call["input"].dtype not in jit.POINTER:
        return Refusal("it takes float32, float16 and bfloat16")
    if call["input"].is_empty or sizes.rows * sizes.hidden == 0:
        return Refusal("a tensor is empty")
    if sizes.batch > MOST_SEQUENCES:
        return Refusal(f"{sizes.batch} sequences are more than {MOST_SEQUENCES}")
    try:
        plan = plan_of(call, sizes, threads, side_by_side)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))
    return Prepared(plan.run, plan.arena.size)


class LstmPlan:
    """Where everything lies in the workspace, how tensors get in and out, and what is launched, loaded. What both
    operators have: inputs as rows, states, what lies between layers, packed weights and the loop."""

    TENSORS: ClassVar[tuple[str, ...]]
    COUNTS: ClassVar[str]  # the tensor with the batch sizes
    TAKES: ClassVar[bool]  # whether the gates take, or make, tensors of whose features they do many at once

    def __init__(self, call: Call, sizes: Sizes, threads: int, side_by_side: Sequence[str]):
        self.sizes, self.threads = sizes, threads
        self.dtype, self.arena, self.numbers = call["input"].dtype, Arena(), Numbers()
        self.copies = DenseCopies(self.arena, threads, self.TAKES)
        self.call = replace(
            call, values={**call.values, **{name: self.as_met(name, call[name]) for name in side_by_side}}
        )
        self.room, self.letter = Room(self.arena, self.numbers, threads), jit.POINTER[self.dtype]
        self.variable = call[self.COUNTS] is not None
        self.each = len(call["params"]) // (sizes.layers * sizes.directions)
        self.gather = jit.load("lstm.gather", f"{self.letter}iii{self.letter}iiiFiiiiI")
        for one in KERNELS:
            jit.load(*one)
        self.between = [self.floats(sizes.rows, sizes.width(1), sizes.layers > n) for n in (1, 2)]
        self.state, self.cell = self.floats(2 * sizes.batch, sizes.hidden), self.floats(sizes.batch, sizes.hidden)
        self.packing: list[list[Launch]] = []

    def as_met(self, name: str, value: Any) -> Any:
        """The value of an argument, with tensors as the gates meet them."""
        if isinstance(value, TensorSpec):
            return self.copies.of(self.spot(name), value)
        return tuple(self.copies.of(self.spot(name, n), spec) for n, spec in enumerate(value))

    def floats(self, rows: int, columns: int, wanted: bool = True) -> int:
        """Reserves a matrix of float32 that lives as long as a layer, or longer."""
        return self.arena.reserve(4 * rows * columns) if wanted else -1

    def packed(self, kinds: int = 1, of_input: int = 1) -> Iterator[tuple[int, matrix.Packed, matrix.Packed]]:
        """By layer and direction both weights, packed as long as others are planned for them; forwards turned, and that
        of the states gate by gate, and of the input if it has kinds too."""
        for k in range(self.sizes.layers * self.sizes.directions):
            weights = self.call["params"][k * self.each : k * self.each + 2]
            if kinds > 1:
                weights = [w._replace(shape=w.shape[::-1], strides=w.strides[::-1]) for w in weights]
            w_ih, w_hh = matrix.Packed(weights[0], self.room, of_input), matrix.Packed(weights[1], self.room, kinds)
            self.packing.append([w_ih.launch, w_hh.launch])
            yield k, w_ih, w_hh
            for one in (w_ih, w_hh):
                one.launch.load()
                one.release(self.room)

    def copied(self, spec: TensorSpec, comes: bool) -> convert.Copy:
        """From a slice of the states to our matrix, or from it to such a slice."""
        slice_ = TensorSpec(spec.dtype, spec.shape[1:], spec.strides[1:])
        ours = dense(FLOAT32, slice_.shape)
        return convert.plan(*((slice_, ours) if comes else (ours, slice_)), self.threads)

    def is_matrix(self, spec: TensorSpec, batch_first: bool = False) -> bool:
        """Whether sequences are a float32 matrix as they lie."""
        return not self.variable and self.dtype is FLOAT32 and not batch_first and spec.is_contiguous

    def run(self) -> Run:
        """What one executor runs."""
        program = LstmProgram(self.sizes.steps, self.sizes.batch, self.TENSORS.index(self.COUNTS))
        if self.TAKES:
            self.copies.add_to(program)
        self.write(program)
        if not self.TAKES:
            self.copies.add_to(program)
        return program.run

    def write(self, program: LstmProgram) -> None:
        raise NotImplementedError

    def spot(self, name: str, element: int = ALONE) -> Spot:
        return self.copies.met_at(Spot(self.TENSORS.index(name), element, 0))

    def slice_of(self, name: str, spec: TensorSpec, k: int, element: int = ALONE) -> Spot:
        """The states of a layer and direction."""
        return self.spot(name, element).further(k * spec.strides[0] * spec.dtype.itemsize)

    def weight(self, k: int, n: int, name: str = "params") -> Spot:
        return self.spot(name, k * self.each + n)

    def pack(self, program: LstmProgram, k: int) -> None:
        for n, packing in enumerate(self.packing[k]):
            program.add_launch(packing, self.numbers, {"b": self.weight(k, n)})

    def outside(self, name: str, layer: int, direction: int) -> Sequences:
        """What a layer's output is, or its gradient: the caller's, or between this layer and the one above."""
        sizes, spec, width = self.sizes, self.call[name], self.sizes.width(1)
        if layer == sizes.layers - 1:
            spot = self.spot(name).further(direction * sizes.hidden * spec.dtype.itemsize)
            return Sequences.of(spot, spec, self.call["batchFirst"])
        place = self.between[layer % 2] + 4 * direction * sizes.hidden
        return Sequences(scratch(place), 4 * sizes.batch * width, width)

    def lay_out(
        self,
        program: LstmProgram,
        source: Sequences,
        target: Spot,
        width: int,
        features: int,
        first: tuple[Spot, int, int] | None = None,
        shift: int = 0,
    ) -> None:
        """Sequences as rows of a float32 matrix, those of the step before or after if `shift` says so."""
        sizes, counts = self.sizes, ctypes.addressof(program.counts)
        team = worth(sizes.rows * features, PER_THREAD, self.threads)
        per_step = source.per_step // self.dtype.itemsize
        values = source.spot, per_step, source.per_sequence, source.per_feature, *(first or (source.spot, 0, 0)), shift
        work = Work(self.gather, sizes.rows, 1, [0] * 14, team)
        program.add(work, *values, target, width, features, sizes.batch, sizes.steps, counts)


class BackwardPlan(LstmPlan):
    """From the top layer down, against each direction."""

    TENSORS = (
        *("input", "hx", "params", "dy", "dh", "dc", "i", "g", "f", "o", "h", "c", "tanhc", "batchSizesOptional"),
        *("dxOut", "dhPrevOut", "dcPrevOut", "dparamsOut"),
    )
    COUNTS, TAKES = "batchSizesOptional", True

    def __init__(self, call: Call, sizes: Sizes, threads: int, side_by_side: Sequence[str]):
        super().__init__(call, sizes, threads, side_by_side)
        letter, out = self.letter, call["dxOut"]
        self.gates = [
            jit.load("lstm_gates.backward", f"Fiiiiiiii{letter * 6}{dy}FFFFI{letter}FFii") for dy in ("F", letter)
        ]
        self.scatter = jit.load("lstm.scatter", f"Fi{letter}iiiiI")
        below = call["h"][:: sizes.directions][:-1]
        self.gathers = [
            not self.is_matrix(call["input"], call["batchFirst"]),
            *(sizes.directions > 1 or not self.is_matrix(h) for h in below),
        ]
        self.scatters = not self.is_matrix(out, call["batchFirst"])
        self.states = [
            self.copied(call[name], not name.endswith("Out")) for name in ("dh", "dc", "dhPrevOut", "dcPrevOut")
        ]
        self.pitch = spread(4 * sizes.hidden)  # often a power of two: rows are laid a line more apart
        self.grad, self.h_prev = self.floats(sizes.rows, self.pitch), self.floats(sizes.rows, sizes.hidden)
        self.x = self.floats(sizes.rows, sizes.widest, any(self.gathers))
        self.dx = self.floats(sizes.rows, sizes.features, self.scatters)
        self._plan_matmuls()

    def _plan_matmuls(self) -> None:
        """By layer and direction a step, dx, the gradients of the weights and, db_ih = Σ grad = db_hh, of biases."""
        sizes, room, dparams = self.sizes, self.room, self.call["dparamsOut"]
        grad, grads = (TensorSpec(FLOAT32, (n, 4 * sizes.hidden), (self.pitch, 1)) for n in (sizes.batch, sizes.rows))
        self.launches: list[tuple[matrix.StepLaunch, Launch, Launch]] = []
        self.biases: list[tuple[sums.Sums, convert.Copy]] = []
        for k, w_ih, w_hh in self.packed():
            of_ih, of_hh, *of_biases = dparams[k * self.each : (k + 1) * self.each]
            step = matrix.step(grad, w_hh, room, not self.variable)
            of_input = matrix.matmul(grads, w_ih, room, adds=k % sizes.directions > 0)
            widths = sizes.width(k // sizes.directions), sizes.hidden
            of_weights = matrix.row_sums(grads, widths, (of_ih, of_hh), room)
            for launch in (step.launch, of_input, of_weights):
                launch.load()
            self.launches.append((step, of_input, of_weights))
            if of_biases:
                one, same = of_biases
                self.biases.append((sums.plan(grads, 1, one, self.threads), convert.plan(one, same, self.threads)))

    def write(self, program: LstmProgram) -> None:
        sizes, call = self.sizes, self.call
        for layer in reversed(range(sizes.layers)):
            x = self._input(program, layer)
            dx = scratch(self.between[(layer - 1) % 2] if layer else self.dx)
            if layer == 0 and not self.scatters:
                dx = self.spot("dxOut")
            for direction in range(sizes.directions):
                self._one_direction(program, layer, direction, x, dx)
        if self.scatters:
            out = Sequences.of(self.spot("dxOut"), call["dxOut"], call["batchFirst"])
            team = worth(sizes.rows * sizes.features, PER_THREAD, self.threads)
            per_step = out.per_step // self.dtype.itemsize
            places = scratch(self.dx), sizes.features, out.spot, per_step, out.per_sequence, out.per_feature
            work = Work(self.scatter, sizes.rows, 1, [0] * 8, team)
            program.add(work, *places, sizes.batch, ctypes.addressof(program.counts))

    def _one_direction(self, program: LstmProgram, layer: int, direction: int, x: Spot, dx: Spot) -> None:
        call, k, grad = self.call, layer * self.sizes.directions + direction, scratch(self.grad)
        dh, dc, dh_prev, dc_prev = self.states
        program.add(dh.work(), self.slice_of("dh", call["dh"], k), scratch(self.state))
        program.add(dc.work(), self.slice_of("dc", call["dc"], k), scratch(self.cell))
        self.pack(program, k)
        self._time_loop(program, layer, direction)
        program.add(dh_prev.work(), scratch(self.state), self.slice_of("dhPrevOut", call["dhPrevOut"], k))
        program.add(dc_prev.work(), scratch(self.cell), self.slice_of("dcPrevOut", call["dcPrevOut"], k))
        self._h_before(program, k, 1 if direction else -1)
        _, of_input, of_weights = self.launches[k]
        program.add_launch(of_input, self.numbers, {"a": grad, "c": dx})
        results = {"c": self.weight(k, 0, "dparamsOut"), "c_more": self.weight(k, 1, "dparamsOut")}
        program.add_launch(of_weights, self.numbers, {"a": grad, "b": x, "more": scratch(self.h_prev), **results})
        if self.biases:
            total, copy = (one.work() for one in self.biases[k])
            of_ih, of_hh = (self.weight(k, n, "dparamsOut") for n in (2, 3))
            program.point(total.block, abi.FIRST_ARGUMENT, grad)
            program.add(total, of_ih, first=2)
            program.add(copy, of_ih, of_hh)

    def _time_loop(self, program: LstmProgram, layer: int, direction: int) -> None:
        sizes, call, k = self.sizes, self.call, layer * self.sizes.directions + direction
        loop = TimeLoop(program, self.launches[k][0], self.gates[layer == sizes.layers - 1], self.numbers)
        loop.table[abi.DOWN], loop.table[abi.LAG], loop.table[abi.SEQUENCES] = direction == 0, 1, sizes.batch
        given = [Sequences.of(self.spot(name, k), call[name][k]) for name in SAVED]
        given.append(self.outside("dy", layer, direction))
        moving = [
            Moving(one.spot, one.per_step, abi.NEXT if name == "c" else abi.NOW)
            for name, one in zip((*SAVED, "dy"), given, strict=True)
        ]
        grad, per_step, c_first = scratch(self.grad), 4 * sizes.batch * self.pitch, call["hx"][1]
        parts = [Moving(grad.further(4 * n * sizes.hidden), per_step) for n in range(abi.KINDS)]
        distances = [*(one.per_sequence for one in given), c_first.strides[1]]
        states = self.slice_of("hx", c_first, k, 1), scratch(self.state), scratch(self.cell)
        loop.move([Moving(grad, per_step, abi.DONE), *moving, *parts], distances, *states, sizes.hidden, self.pitch)
        program.add_loop(loop)

    def _input(self, program: LstmProgram, layer: int) -> Spot:
        """Where the layer's input is a float32 matrix."""
        sizes, call, first = self.sizes, self.call, (layer - 1) * self.sizes.directions
        if layer:
            parts = [Sequences.of(self.spot("h", first + n), call["h"][first + n]) for n in range(sizes.directions)]
        else:
            parts = [Sequences.of(self.spot("input"), call["input"], call["batchFirst"])]
        if not self.gathers[layer]:
            return parts[0].spot
        features = sizes.hidden if layer else sizes.features
        for n, part in enumerate(parts):
            self.lay_out(program, part, scratch(self.x + 4 * n * sizes.hidden), sizes.width(layer), features)
        return scratch(self.x)

    def _h_before(self, program: LstmProgram, k: int, shift: int) -> None:
        """Lays out the hidden states that steps began with."""
        first, hidden = self.call["hx"][0], self.sizes.hidden
        at_first = self.slice_of("hx", first, k, 0), *first.strides[1:]
        states = Sequences.of(self.spot("h", k), self.call["h"][k])
        self.lay_out(program, states, scratch(self.h_prev), hidden, hidden, at_first, shift)


class ForwardPlan(LstmPlan):
    """From the bottom layer up, along each direction."""

    TENSORS = ("input", "params", "hx", "batchSizes", "output", "hy", "cy", *LISTS)
    COUNTS, TAKES = "batchSizes", False

    def __init__(self, call: Call, sizes: Sizes, threads: int, side_by_side: Sequence[str]):
        super().__init__(call, sizes, threads, side_by_side)
        letter = self.letter
        self.gates = [jit.load("lstm_gates.forward", f"FiiiiiiiiF{out}{letter * 7}FFIFFiii") for out in ("F", letter)]
        self.gathers = not self.is_matrix(call["input"], call["batchFirst"])
        self.ahead = sizes.ahead()
        self.at_once = self.ahead == 1  # the input of a step is multiplied with its state: nothing is added to the sums
        rows = 1 if self.at_once else self.ahead * sizes.batch
        self.a, self.bias = self.floats(rows, 4 * sizes.hidden), self.floats(1, 4 * sizes.hidden)
        self.x = self.floats(sizes.rows, sizes.features, self.gathers)
        self.total = jit.load("lstm.total", f"{letter * 2}iiiF")
        self.first = None if call["hx"] is None else [self.copied(spec, True) for spec in call["hx"]]
        self.last = [self.copied(call[name], False) for name in ("hy", "cy")]
        self.launches: list[tuple[matrix.StepLaunch, Launch | None]] = []
        state = dense(FLOAT32, (sizes.batch, sizes.hidden))
        for k, w_ih, w_hh in self.packed(abi.KINDS, abi.KINDS if self.at_once else 1):
            some = dense(FLOAT32, (self.ahead * sizes.batch, sizes.width(k // sizes.directions)))
            step = matrix.step(state, w_hh, self.room, not self.variable, w_ih if self.at_once else None)
            ahead = None if self.at_once else matrix.matmul(some, w_ih, self.room)
            step.launch.load()
            if ahead is not None:
                ahead.load()
            self.launches.append((step, ahead))

    def write(self, program: LstmProgram) -> None:
        x, sizes, call = self.spot("input"), self.sizes, self.call
        if self.gathers:
            source = Sequences.of(x, call["input"], call["batchFirst"])
            x = scratch(self.x)
            self.lay_out(program, source, x, sizes.features, sizes.features)
        for layer in range(sizes.layers):
            for direction in range(sizes.directions):
                self._one_direction(program, layer, direction, x)
            x = scratch(self.between[layer % 2])

    def _one_direction(self, program: LstmProgram, layer: int, direction: int, x: Spot) -> None:
        sizes, call, k = self.sizes, self.call, layer * self.sizes.directions + direction
        for n, place in enumerate((self.state, self.cell)):
            if self.first is None:
                program.add(Work(self.total, sizes.batch * sizes.hidden, 1, [0] * 6, 1), scratch(place), first=5)
            else:
                program.add(self.first[n].work(), self.slice_of("hx", call["hx"][n], k, n), scratch(place))
        if self.at_once:
            program.add(Work(self.total, 4 * sizes.hidden, 1, [0] * 6, 1), scratch(self.a), first=5)
        biases = [self.weight(k, n) for n in range(2, self.each)]
        strides = [call["params"][k * self.each + n].strides[0] for n in range(2, self.each)]
        total = Work(self.total, 4 * sizes.hidden, 1, [0] * 6, 1)
        program.add(total, *(biases or (0, 0)), *(strides or (0, 0)), len(biases), scratch(self.bias))
        self.pack(program, k)
        self._time_loop(program, layer, direction, x)
        last = self.state + 4 * sizes.batch * sizes.hidden * (sizes.steps % 2)  # where the loop leaves the states
        for name, place, copy in zip(("hy", "cy"), (last, self.cell), self.last, strict=True):
            program.add(copy.work(), scratch(place), self.slice_of(name, call[name], k))

    def _time_loop(self, program: LstmProgram, layer: int, direction: int, x: Spot) -> None:
        sizes, call, k = self.sizes, self.call, layer * self.sizes.directions + direction
        step, ahead = self.launches[k]
        loop = TimeLoop(program, step, self.gates[layer == sizes.layers - 1], self.numbers)
        loop.table[abi.DOWN], loop.table[abi.SEQUENCES] = direction == 1, sizes.batch
        given = [self.outside("output", layer, direction), *[Sequences(NOWHERE, 0, 0)] * len(LISTS)]
        if call["train"]:  # else the lists take no part, whatever was given for them
            given[1:] = [Sequences.of(self.spot(name, k), call[name][k]) for name in LISTS]
        a, state, size = scratch(self.a), scratch(self.state), 4 * sizes.batch * sizes.hidden
        states = [Moving(state, size, clock) for clock in (abi.EVEN, abi.ODD)]
        per_step, a_pitch = (0, 0) if self.at_once else (4 * size, 4 * sizes.hidden)
        moving = [states[0], Moving(a, per_step, abi.NTH), *(Moving(one.spot, one.per_step) for one in given), *states]
        others = scratch(self.cell), scratch(self.bias), sizes.hidden, a_pitch, how_kept(call, LISTS)
        loop.move(moving, [one.per_sequence for one in given], *others)
        loop.take_input(x, 4 * sizes.batch * sizes.width(layer))
        if ahead is not None:
            loop.multiply_ahead(ahead, self.numbers, self.ahead, a)
        program.add_loop(loop)
