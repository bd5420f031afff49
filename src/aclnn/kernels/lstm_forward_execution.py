"""Phase 2 of an LSTM forwards: from the bottom layer up, along each direction."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels import convert
from aclnn.kernels.entry import Entry
from aclnn.kernels.lstm_products import Engine, Product
from aclnn.kernels.lstm_walk import PER_THREAD, Sequences, Sizes, begin, go
from aclnn.kernels.nopython import agreed
from aclnn.kernels.program import Arena
from aclnn.kernels.strides import address, aligned
from aclnn.kernels.threads import Work, worth

NOWHERE = Sequences(0, 0, 0)


class Facts(NamedTuple):
    """What the layout of the workspace, and the primitives, depend on."""

    sizes: Sizes
    gathers: bool  # the input must be copied before it is a float32 matrix
    converts: bool  # so must the weights
    engine: Engine
    threads: int


class Memory:
    """Where everything lies in the workspace, as offsets, and the products over it."""

    def __init__(self, facts: Facts):
        sizes, arena = facts.sizes, Arena()
        self.arena = arena
        rows, batch, hidden = sizes.rows, sizes.batch, sizes.hidden

        def matrix(rows: int, columns: int, wanted: bool = True) -> int:
            return arena.reserve(4 * rows * columns) if wanted else -1

        self.a, self.bias = matrix(rows, 4 * hidden), matrix(1, 4 * hidden)
        self.h, self.c = matrix(batch, hidden), matrix(batch, hidden)
        self.x = matrix(rows, sizes.features, facts.gathers)
        self.between = [matrix(rows, sizes.width(1), sizes.layers > n) for n in (1, 2)]
        widest = max(sizes.width(layer) for layer in range(sizes.layers))
        self.w_ih = matrix(4 * hidden, widest, facts.converts)
        self.w_hh = matrix(4 * hidden, hidden, facts.converts)
        widths = sorted({sizes.width(layer) for layer in range(sizes.layers)})
        self.products = {width: self._product(facts, rows, width, adds=False) for width in widths}
        self.step = self._product(facts, batch, hidden, adds=True)
        self.primitives = sum(one.primitives for one in (self.step, *self.products.values()))

    def _product(self, facts: Facts, rows: int, columns: int, adds: bool) -> Product:
        """a = x·wᵀ, or a += x·wᵀ, which moves along the sequence."""
        gates = 4 * facts.sizes.hidden
        turned = TensorSpec(FLOAT32, (columns, gates), (1, columns))
        x, a = dense(FLOAT32, (rows, columns)), dense(FLOAT32, (rows, gates))
        return facts.engine.product(x, turned, a, 1, facts.threads, self.arena, adds)


class Plan(NamedTuple):
    """What phase 1 finds out, with the code for it loaded."""

    call: Call
    facts: Facts
    memory: Memory
    gather: Entry
    below: Entry  # gates whose output is a float32 matrix of ours
    top: Entry  # gates whose output is the caller's
    walk: Entry
    copies: tuple[convert.Copy | None, ...]  # that params need; None where one is used where it lies, or is a bias


class Execution:
    """What one executor owns: launches and memory objects. Runs one call at a time."""

    def __init__(self, plan: Plan):
        self._plan, sizes, threads = plan, plan.facts.sizes, plan.facts.threads
        self._counts = (ctypes.c_int64 * sizes.steps)(*[sizes.batch] * sizes.steps)
        counts = ctypes.addressof(self._counts)
        self._products = {width: product.multiplier() for width, product in plan.memory.products.items()}
        self._step = plan.memory.step.multiplier()
        self._copies = [c.work() if c else None for c in plan.copies]
        team = worth(sizes.rows * sizes.features, convert.PER_THREAD, threads)
        self._gather = Work(plan.gather, sizes.rows, 1, [0] * 11 + [sizes.batch, sizes.steps, counts], team)
        self._rows, self._bases, self._strides = ((ctypes.c_int64 * agreed.FORWARD_MOVING)() for _ in range(3))
        arguments = [0] * (agreed.FORWARD_MOVING + 3) + [ctypes.addressof(self._rows), sizes.hidden, 0, 0]
        team = worth(sizes.batch * sizes.hidden, PER_THREAD, threads)
        self._gates = {
            top: Work(e, sizes.batch, 1, arguments, team) for top, e in ((False, plan.below), (True, plan.top))
        }
        self._table = (ctypes.c_int64 * agreed.TABLE_SIZE)()
        self._table[agreed.STEPS] = sizes.steps
        tables = [ctypes.addressof(t) for t in (self._table, self._bases, self._strides)]
        self._walk = Work(plan.walk, 1, 1, [tables[0], counts, *tables[1:]], 1)

    def run(
        self,
        workspace: Array,
        input: Array,
        params: list[Array],
        hx: list[Array] | None,
        batch_sizes: Array | None,
        output: Array,
        hy: Array,
        cy: Array,
        *lists: list[Array] | None,
    ) -> None:
        scratch, sizes = _Scratch(workspace), self._plan.facts.sizes
        if batch_sizes is not None:
            self._counts[:] = batch_sizes.tolist()
        x = self._input(input, scratch.base)
        for layer in range(sizes.layers):
            for direction in range(sizes.directions):
                k = layer * sizes.directions + direction
                h, c = (scratch.matrix(at, (sizes.batch, sizes.hidden)) for at in self._states())
                h[...], c[...] = (0, 0) if hx is None else (hx[0][k], hx[1][k])
                self._one_direction(k, x, params, self._target(output, layer, direction, scratch.base), lists, scratch)
                hy[k], cy[k] = h, c
            x = scratch.base + self._plan.memory.between[layer % 2]

    def _states(self) -> tuple[int, int]:
        return self._plan.memory.h, self._plan.memory.c

    def _input(self, input: Array, base: int) -> int:
        """Where the input is a float32 matrix, step after step."""
        if not self._plan.facts.gathers:
            return address(input)
        source, place = self._time_major(input), base + self._plan.memory.x
        steps, features = [s // source.itemsize for s in source.strides], source.shape[2]
        self._gather.point(0, address(source), *steps, address(source), *steps[1:], 0, place, features, features)
        self._gather.run()
        return place

    def _target(self, output: Array, layer: int, direction: int, base: int) -> Sequences:
        """Where the states of a layer and direction go: to the caller, or to the layer above."""
        sizes = self._plan.facts.sizes
        if layer == sizes.layers - 1:
            whole = Sequences.of(self._time_major(output))
            return whole._replace(place=whole.place + direction * sizes.hidden * output.itemsize)
        width = sizes.width(1)
        place = base + self._plan.memory.between[layer % 2] + 4 * direction * sizes.hidden
        return Sequences(place, 4 * sizes.batch * width, width)

    def _one_direction(
        self, k: int, x: int, params: list[Array], out: Sequences, lists: tuple[Any, ...], scratch: _Scratch
    ) -> None:
        sizes, memory, base = self._plan.facts.sizes, self._plan.memory, scratch.base
        layer, reverse = k // sizes.directions, k % sizes.directions > 0
        each = len(params) // (sizes.layers * sizes.directions)
        w_ih, w_hh = (self._weight(params, k * each + n, base) for n in range(2))
        bias = scratch.matrix(memory.bias, (4 * sizes.hidden,))
        biases = [p.astype(np.float32, copy=False) for p in params[k * each + 2 : (k + 1) * each]]
        bias[...] = sum(biases, np.zeros((), np.float32))
        self._products[sizes.width(layer)].run(x, w_ih, base + memory.a, base)
        gates = self._gates[layer == sizes.layers - 1]
        gates.point(agreed.FORWARD_MOVING, address(bias), base + memory.h, base + memory.c)
        gates.point(agreed.FORWARD_ACTIVE + 1, int(lists[0] is not None))
        kept = [NOWHERE if one is None else Sequences.of(one[k]) for one in lists]
        self._move([Sequences(base + memory.a, 16 * sizes.batch * sizes.hidden, 0), out, *kept])
        self._step_through(reverse, gates, w_hh, base)

    def _move(self, moving: list[Sequences]) -> None:
        """Tells the walk where its nine moving tensors begin, and how far a step is."""
        for m, (place, per_step, per_sequence) in enumerate(moving):
            self._bases[m], self._strides[m] = place, per_step
            if m:
                self._rows[m - 1] = per_sequence

    def _step_through(self, reverse: bool, gates: Work, w_hh: int, base: int) -> None:
        memory, table = self._plan.memory, self._table
        begin(table, reverse, gates)
        self._step.hand_over(table, base + memory.h, w_hh, base + memory.a, base)
        go(self._walk, table, self._plan.facts.threads)

    def _weight(self, params: list[Array], n: int, base: int) -> int:
        """Where a weight is a dense float32 matrix."""
        work = self._copies[n]
        if work is None:
            return address(params[n])
        each = len(params) // (self._plan.facts.sizes.layers * self._plan.facts.sizes.directions)
        place = base + (self._plan.memory.w_hh if n % each else self._plan.memory.w_ih)
        work.point(0, address(params[n]), place)
        work.run()
        return place

    def _time_major(self, array: Array) -> Array:
        return array.swapaxes(0, 1) if self._plan.call["batchFirst"] else array


class _Scratch:
    """The workspace by address, and parts of it as float32 arrays."""

    def __init__(self, workspace: Array):
        self.base = aligned(address(workspace))
        self._bytes = workspace[self.base - address(workspace) :]

    def matrix(self, offset: int, shape: tuple[int, ...]) -> Array:
        size = 4 * int(np.prod(shape))
        return self._bytes[offset : offset + size].view(np.float32).reshape(shape)
