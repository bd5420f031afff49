"""Phase 2 of an LSTM call: from the top layer down, against each direction."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from aclnn.base.geometry import Array
from aclnn.kernels.lstm_plan import Plan
from aclnn.kernels.lstm_walk import Places, Sequences, Walk
from aclnn.kernels.strides import LINE, address, aligned
from aclnn.kernels.threads import Work, worth

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
    """What one executor owns: launches and memory objects. Runs one call at a time."""

    def __init__(self, plan: Plan):
        self._plan, self._memory, sizes = plan, plan.memory(), plan.sizes
        self._counts = (ctypes.c_int64 * sizes.steps)(*[sizes.batch] * sizes.steps)
        counts = ctypes.addressof(self._counts)
        memory, threads = self._memory, plan.facts.threads
        self._walk = Walk(plan.entries, sizes, memory.pitch, memory.step, threads, counts)
        self._dx_products = {kind: product.multiplier() for kind, product in memory.dx_products.items()}
        self._weight_sums = {width: sums.adder() for width, sums in memory.weight_sums.items()}
        self._dh, self._dc, self._dh_prev, self._dc_prev = (copy.work() for copy in plan.states)
        self._weights = [copy.work() for copy in plan.weights]
        self._gradients = [copy.work() if copy else None for copy in plan.gradients]
        self._biases = [bias.work() for bias in plan.biases]
        team = worth(sizes.rows * sizes.hidden, PER_THREAD, threads)
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
        if self._plan.facts.scatters:
            out = self._time_major(tensor.dx)
            self._scatter.point(0, base + self._memory.dx)
            self._scatter.point(2, address(out), *_steps(out))
            self._scatter.run()

    def _one_direction(self, tensor: Tensors, layer: int, direction: int, x: int, dx: int, base: int) -> None:
        sizes, memory, reverse = self._plan.sizes, self._memory, direction == 1
        k = layer * sizes.directions + direction
        places = Places(*(base + at for at in (memory.grad, memory.dh, memory.dh_made, memory.dc)))
        _copy(self._dh, address(tensor.dh[k]), places.dh)
        _copy(self._dc, address(tensor.dc[k]), places.dc)
        self._rows(tensor.h[k], base + memory.h_prev, sizes.hidden, 1 if reverse else -1, tensor.hx[0][k])
        saved = [s[k] for s in (tensor.i, tensor.f, tensor.g, tensor.o, tensor.tanhc, tensor.c)]
        moving = [*(Sequences.of(s) for s in saved), self._dy(tensor, layer, direction, base)]
        w_ih, w_hh = (self._weight(tensor, k, n, base) for n in range(2))
        top = layer == sizes.layers - 1
        made = self._walk.run(reverse, top, moving, tensor.hx[1][k], places, w_hh, base)
        ctypes.memmove(places.dh, places.dh_made, 4 * made * sizes.hidden)
        _copy(self._dh_prev, places.dh, address(tensor.dh_prev[k]))
        _copy(self._dc_prev, places.dc, address(tensor.dc_prev[k]))
        self._dx_products[sizes.width(layer), reverse].run(places.grad, w_ih, dx, base)
        self._sum_up_weights(tensor, layer, k, places.grad, x, base)
        self._add_up(tensor, k, places.grad)

    def _sum_up_weights(self, tensor: Tensors, layer: int, k: int, grad: int, x: int, base: int) -> None:
        """dw_ih and dw_hh."""
        sizes, memory = self._plan.sizes, self._memory
        each = len(tensor.params) // (sizes.layers * sizes.directions)
        outs = [k * each, k * each + 1]
        ours = [base + memory.dw_ih, base + memory.dw_hh]
        made = [o if self._gradients[n] else address(tensor.dparams[n]) for n, o in zip(outs, ours, strict=True)]
        self._weight_sums[sizes.width(layer)].run(grad, x, base + memory.h_prev, made[0], made[1], base)
        for n, place in zip(outs, made, strict=True):
            work = self._gradients[n]
            if work is not None:
                _copy(work, place, address(tensor.dparams[n]))

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
        in_place = self._plan.facts.engine.any_address or _begins_a_line(parts[0])
        if not self._plan.gathers[layer] and in_place:
            return address(parts[0])
        place = base + self._memory.x
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
        place = base + self._memory.between[layer % 2] + 4 * direction * sizes.hidden
        return Sequences(place, 4 * sizes.batch * width, width)

    def _dx_place(self, tensor: Tensors, layer: int, base: int) -> int:
        if layer:
            return base + self._memory.between[(layer - 1) % 2]
        return base + self._memory.dx if self._plan.facts.scatters else address(tensor.dx)

    def _weight(self, tensor: Tensors, k: int, which: int, base: int) -> int:
        """Where w_ih (0) or w_hh (1) is a dense float32 matrix."""
        each = len(tensor.params) // (self._plan.sizes.layers * self._plan.sizes.directions)
        n = k * each + which
        if self._plan.usable[n]:
            return address(tensor.params[n])
        place = base + (self._memory.w_hh if which else self._memory.w_ih)
        _copy(self._weights[n], address(tensor.params[n]), place)
        return place

    def _time_major(self, array: Array) -> Array:
        return array.swapaxes(0, 1) if self._plan.call["batchFirst"] else array


def _begins_a_line(array: Array) -> bool:
    """oneDNN reads a right-hand side that does not begin a cache line a fifth slower; copying it is cheaper."""
    return address(array) % LINE == 0


def _copy(work: Work, source: int, target: int) -> None:
    work.point(0, source, target)
    work.run()


def _steps(array: Array) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(s // array.itemsize for s in array.strides)
