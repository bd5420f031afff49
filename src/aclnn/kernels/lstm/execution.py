"""Phase 2 of an LSTM call: from the top layer down, against each direction."""

from __future__ import annotations

import ctypes

from aclnn.base.tensor import TensorSpec
from aclnn.kernels.lstm.plan import BackwardPlan
from aclnn.kernels.lstm.program import ALONE, LstmProgram, Sequences, Spot, TimeLoop, scratch
from aclnn.kernels.native import abi
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.registry import Run

PER_THREAD = 32768  # elements of a copy that pay for waking a thread
SAVED = ("i", "f", "g", "o", "tanhc", "c")  # in the order of the gates' arguments
TENSORS = (
    *("input", "hx", "params", "dy", "dh", "dc", "i", "g", "f", "o", "h", "c", "tanhc", "batchSizesOptional"),
    *("dxOut", "dhPrevOut", "dcPrevOut", "dparamsOut"),
)


def spot_of(name: str, element: int = ALONE) -> Spot:
    return Spot(TENSORS.index(name), element, 0)


def backward_run(plan: BackwardPlan) -> Run:
    """What one executor runs."""
    return BackwardWriter(plan).program.run


class BackwardWriter:
    """Writes the program of a call."""

    def __init__(self, plan: BackwardPlan):
        self._plan, self._call, self._sizes, sizes = plan, plan.call, plan.sizes, plan.sizes
        self.program = LstmProgram(sizes.steps, sizes.batch, TENSORS.index("batchSizesOptional"))
        self._team = worth(sizes.rows * sizes.hidden, PER_THREAD, plan.threads)
        for layer in reversed(range(sizes.layers)):
            x, dx = self._input(layer), self._dx_place(layer)
            for direction in range(sizes.directions):
                self._one_direction(layer, direction, x, dx)
        if plan.scatters:
            out = Sequences.of(spot_of("dxOut"), self._call["dxOut"], self._call["batchFirst"])
            counts = ctypes.addressof(self.program.counts)
            work = Work(plan.scatter, sizes.rows, 1, [0] * 8, self._team)
            per_step = out.per_step // self._call["dxOut"].dtype.itemsize
            places = scratch(plan.dx), sizes.features, out.spot, per_step, out.per_sequence, out.per_feature
            self.program.add(work, *places, sizes.batch, counts)

    def _one_direction(self, layer: int, direction: int, x: Spot, dx: Spot) -> None:
        plan, sizes, program = self._plan, self._sizes, self.program
        k = layer * sizes.directions + direction
        n = k * (len(self._call["params"]) // (sizes.layers * sizes.directions))
        dh, dc, dh_prev, dc_prev = plan.states
        program.add(dh.work(), self._state("dh", k), scratch(plan.dh))
        program.add(dc.work(), self._state("dc", k), scratch(plan.dc))
        for m, packing in enumerate(plan.packing[k]):
            program.add_launch(packing, plan.numbers, {"b": spot_of("params", n + m)})
        self._time_loop(layer, direction)
        program.add(dh_prev.work(), scratch(plan.dh), self._state("dhPrevOut", k))
        program.add(dc_prev.work(), scratch(plan.dc), self._state("dcPrevOut", k))
        self._h_before(k, 1 if direction else -1)
        _, of_input, of_weights = plan.launches[k]
        grad = scratch(plan.grad)
        program.add_launch(of_input, plan.numbers, {"a": grad, "c": dx})
        results = {"c": spot_of("dparamsOut", n), "c_more": spot_of("dparamsOut", n + 1)}
        program.add_launch(of_weights, plan.numbers, {"a": grad, "b": x, "more": scratch(plan.h_prev), **results})
        if plan.biases:
            total, copy = (one.work() for one in plan.biases[k])
            of_ih, of_hh = (spot_of("dparamsOut", n + m) for m in (2, 3))
            program.point(total.block, abi.FIRST_ARGUMENT, grad)
            program.add(total, of_ih, first=2)
            program.add(copy, of_ih, of_hh)

    def _time_loop(self, layer: int, direction: int) -> None:
        plan, sizes, call, top = self._plan, self._sizes, self._call, layer == self._sizes.layers - 1
        k = layer * sizes.directions + direction
        loop = TimeLoop(plan.entries, top, direction == 1, plan.launches[k][0], plan.numbers, self.program)
        moving = [Sequences.of(spot_of(name, k), call[name][k]) for name in SAVED]
        moving.append(self._dy(layer, direction))
        c_first = call["hx"][1]
        distances = [*(one.per_sequence for one in moving), c_first.strides[1]]
        grad = scratch(plan.grad)
        parts = [
            Sequences(grad.further(4 * n * sizes.hidden), 4 * sizes.batch * plan.pitch, 0) for n in range(abi.KINDS)
        ]
        loop.move([*moving, *parts], distances)
        places = loop.distances, self._slice("hx", c_first, 1, k), scratch(plan.dh), scratch(plan.dc)
        first = abi.FIRST_ARGUMENT + abi.MOVING + abi.BACKWARD_MOVING
        self.program.point(loop.gates.block, first, *places, sizes.hidden, 0, 0, plan.pitch)
        loop.begin(grad)
        self.program.add_loop(loop)

    def _slice(self, name: str, spec: TensorSpec, element: int, k: int) -> Spot:
        return spot_of(name, element).further(k * spec.strides[0] * spec.dtype.itemsize)

    def _state(self, name: str, k: int) -> Spot:
        return self._slice(name, self._call[name], ALONE, k)

    def _input(self, layer: int) -> Spot:
        """Where the layer's input is a float32 matrix."""
        sizes, call, first = self._sizes, self._call, (layer - 1) * self._sizes.directions
        if layer:
            parts = [Sequences.of(spot_of("h", first + n), call["h"][first + n]) for n in range(sizes.directions)]
        else:
            parts = [Sequences.of(spot_of("input"), call["input"], call["batchFirst"])]
        if not self._plan.gathers[layer]:
            return parts[0].spot
        features = sizes.hidden if layer else sizes.features
        for n, part in enumerate(parts):
            target = scratch(self._plan.x + 4 * n * sizes.hidden)
            self._gather(part, (part.spot, 0, 0), 0, target, sizes.width(layer), features)
        return scratch(self._plan.x)

    def _h_before(self, k: int, shift: int) -> None:
        """Lays out the hidden states that steps began with."""
        sizes, first = self._sizes, self._call["hx"][0]
        at_first = self._slice("hx", first, 0, k), *first.strides[1:]
        states = Sequences.of(spot_of("h", k), self._call["h"][k])
        self._gather(states, at_first, shift, scratch(self._plan.h_prev), sizes.hidden, sizes.hidden)

    def _gather(
        self, source: Sequences, first: tuple[Spot, int, int], shift: int, target: Spot, width: int, features: int
    ) -> None:
        """Lays sequences out as rows of a float32 matrix, those of the step before or after if `shift` says so."""
        sizes, itemsize = self._sizes, self._plan.dtype.itemsize
        work = Work(self._plan.gather, sizes.rows, 1, [0] * 14, self._team)
        per_step, counts = source.per_step // itemsize, ctypes.addressof(self.program.counts)
        values = source.spot, per_step, source.per_sequence, source.per_feature, *first, shift, target
        self.program.add(work, *values, width, features, sizes.batch, sizes.steps, counts)

    def _dy(self, layer: int, direction: int) -> Sequences:
        """The gradient of the layer's output: the caller's, or dx of the layer above."""
        sizes, spec = self._sizes, self._call["dy"]
        if layer == sizes.layers - 1:
            spot = spot_of("dy").further(direction * sizes.hidden * spec.dtype.itemsize)
            return Sequences.of(spot, spec, self._call["batchFirst"])
        width = sizes.directions * sizes.hidden
        place = self._plan.between[layer % 2] + 4 * direction * sizes.hidden
        return Sequences(scratch(place), 4 * sizes.batch * width, width)

    def _dx_place(self, layer: int) -> Spot:
        if layer:
            return scratch(self._plan.between[(layer - 1) % 2])
        return scratch(self._plan.dx) if self._plan.scatters else spot_of("dxOut")
