"""Phase 2 of an LSTM call: from the top layer down, against each direction."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from aclnn.base.geometry import Array
from aclnn.kernels.lstm.plan import Plan
from aclnn.kernels.lstm.time_loop import Sequences, Walk
from aclnn.kernels.matmul.matrix import Aimed
from aclnn.kernels.native import abi
from aclnn.kernels.native.memory import address, aligned
from aclnn.kernels.native.threads import Work, worth

PER_THREAD = 32768  # elements of a copy that pay for waking a thread


class Tensors(NamedTuple):
    """The call's tensors, in contract order."""

    input: Array
    hx: list[Array]
    params: list[Array]
    dy: Array
    dh: Array
    dc: Array
    i: list[Array]
    g: list[Array]
    f: list[Array]
    o: list[Array]
    h: list[Array]
    c: list[Array]
    tanhc: list[Array]
    batch_sizes: Array | None
    dx: Array
    dh_prev: Array
    dc_prev: Array
    dparams: list[Array]


class Execution:
    """What one executor owns: launches and tables. Runs one call at a time."""

    def __init__(self, plan: Plan):
        self._plan, sizes = plan, plan.sizes
        self._batch_first = plan.call["batchFirst"]
        self._counts = (ctypes.c_int64 * sizes.steps)(*[sizes.batch] * sizes.steps)
        counts = ctypes.addressof(self._counts)
        self._walks = [Walk(plan.entries, step, plan.numbers, sizes.steps, counts) for step, _, _ in plan.launches]
        self._packing = [[Aimed(launch, plan.numbers) for launch in two] for two in plan.packing]
        self._products = [[Aimed(launch, plan.numbers) for launch in three[1:]] for three in plan.launches]
        self._dh, self._dc, self._dh_prev, self._dc_prev = (copy.work() for copy in plan.states)
        self._biases = [bias.work() for bias in plan.biases]
        team = worth(sizes.rows * sizes.hidden, PER_THREAD, plan.threads)
        self._gather = Work(plan.gather, sizes.rows, 1, [0] * 11 + [sizes.batch, sizes.steps, counts], team)
        scattered = [0, sizes.features, 0, 0, 0, 0, sizes.batch, counts]
        self._scatter = Work(plan.scatter, sizes.rows, 1, scattered, team)

    def run(self, workspace: Array, *tensors: Any) -> None:
        tensor, base = Tensors(*tensors), aligned(address(workspace))
        if tensor.batch_sizes is not None:
            self._counts[:] = tensor.batch_sizes.tolist()
        sizes = self._plan.sizes
        for layer in reversed(range(sizes.layers)):
            x, dx = self._input(tensor, layer, base), self._dx_place(tensor, layer, base)
            for direction in range(sizes.directions):
                self._one_direction(tensor, layer, direction, x, dx, base)
        if self._plan.scatters:
            out = self._time_major(tensor.dx)
            self._scatter.point(0, base + self._plan.dx)
            self._scatter.point(2, address(out), *_steps(out))
            self._scatter.run()

    def _one_direction(self, tensor: Tensors, layer: int, direction: int, x: int, dx: int, base: int) -> None:
        sizes, plan = self._plan.sizes, self._plan
        k = layer * sizes.directions + direction
        n = k * (len(tensor.params) // (sizes.layers * sizes.directions))
        grad, h_prev = base + plan.grad, base + plan.h_prev
        _copy(self._dh, address(tensor.dh[k]), base + plan.dh)
        _copy(self._dc, address(tensor.dc[k]), base + plan.dc)
        for packing, weight in zip(self._packing[k], tensor.params[n : n + 2], strict=True):
            packing.run({"b": address(weight)}, base)
        self._walk(tensor, layer, direction, grad, base)
        _copy(self._dh_prev, base + plan.dh, address(tensor.dh_prev[k]))
        _copy(self._dc_prev, base + plan.dc, address(tensor.dc_prev[k]))
        self._rows(tensor.h[k], h_prev, sizes.hidden, 1 if direction else -1, tensor.hx[0][k])
        of_input, of_weights = self._products[k]
        of_input.run({"a": grad, "c": dx}, base)
        dw_ih, dw_hh = map(address, tensor.dparams[n : n + 2])
        of_weights.run({"a": grad, "b": x, "more": h_prev, "c": dw_ih, "c_more": dw_hh}, base)
        self._add_up(tensor, k, grad)

    def _walk(self, tensor: Tensors, layer: int, direction: int, grad: int, base: int) -> None:
        sizes, plan, top = self._plan.sizes, self._plan, layer == self._plan.sizes.layers - 1
        k = layer * sizes.directions + direction
        walk, c_first = self._walks[k], tensor.hx[1][k]
        saved = [s[k] for s in (tensor.i, tensor.f, tensor.g, tensor.o, tensor.tanhc, tensor.c)]
        moving = [*map(Sequences.of, saved), self._dy(tensor, layer, direction, base)]
        rows = [*[m.per_sequence for m in moving], c_first.strides[0] // c_first.itemsize]
        parts = [Sequences(grad + 4 * n * sizes.hidden, 4 * sizes.batch * plan.pitch, 0) for n in range(abi.KINDS)]
        walk.move([*moving, *parts], rows)
        places = walk.rows, address(c_first), base + plan.dh, base + plan.dc
        walk.gates(top, abi.MOVING + abi.BACKWARD_MOVING, *places, sizes.hidden, 0, 0, plan.pitch)
        walk.run(direction == 1, top, grad, base)

    def _add_up(self, tensor: Tensors, k: int, grad: int) -> None:
        """db_ih = db_hh = Σ grad."""
        if not self._biases:
            return
        first, second = tensor.dparams[4 * k + 2 : 4 * k + 4]
        work = self._biases[2 * k]
        work.point(0, grad)
        work.point(2, address(first))
        work.run()
        second[...] = first

    def _input(self, tensor: Tensors, layer: int, base: int) -> int:
        """Where the layer's input is a float32 matrix."""
        sizes = self._plan.sizes
        first = (layer - 1) * sizes.directions
        parts = tensor.h[first : first + sizes.directions] if layer else [self._time_major(tensor.input)]
        if not self._plan.gathers[layer]:
            return address(parts[0])
        place = base + self._plan.x
        for n, part in enumerate(parts):
            self._rows(part, place + 4 * n * sizes.hidden, sizes.width(layer))
        return place

    def _rows(self, source: Array, target: int, width: int, shift: int = 0, first: Array | None = None) -> None:
        """Lays sequences out as rows of a float32 matrix, those of the step before or after if `shift` says so."""
        first = source[0] if first is None else first
        work, features = self._gather, source.shape[2]
        work.point(0, address(source), *_steps(source), address(first), *_steps(first), shift, target, width, features)
        work.run()

    def _dy(self, tensor: Tensors, layer: int, direction: int, base: int) -> Sequences:
        """The gradient of the layer's output: the caller's, or dx of the layer above."""
        sizes = self._plan.sizes
        if layer == sizes.layers - 1:
            whole = Sequences.of(self._time_major(tensor.dy))
            return whole._replace(place=whole.place + direction * sizes.hidden * tensor.dy.itemsize)
        width = sizes.directions * sizes.hidden
        place = base + self._plan.between[layer % 2] + 4 * direction * sizes.hidden
        return Sequences(place, 4 * sizes.batch * width, width)

    def _dx_place(self, tensor: Tensors, layer: int, base: int) -> int:
        if layer:
            return base + self._plan.between[(layer - 1) % 2]
        return base + self._plan.dx if self._plan.scatters else address(tensor.dx)

    def _time_major(self, array: Array) -> Array:
        return array.swapaxes(0, 1) if self._batch_first else array


def _copy(work: Work, source: int, target: int) -> None:
    work.point(0, source, target)
    work.run()


def _steps(array: Array) -> tuple[int, ...]:
    """Strides in elements."""
    size = array.itemsize
    return tuple([s // size for s in array.strides])
