"""LSTM forwards: how its tensors lie, and phase 2, from the bottom layer up, along each direction."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.lstm.time_loop import Entries, Sequences, Sizes, Walk
from aclnn.kernels.matmul import matrix
from aclnn.kernels.matmul.matrix import Aimed
from aclnn.kernels.native import abi, jit
from aclnn.kernels.native.memory import address, aligned
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.shared import convert
from aclnn.kernels.shared.arena import Arena
from aclnn.kernels.shared.launch import Launch, Numbers, Room

NOWHERE = Sequences(0, 0, 0)
ROWS_AHEAD = 256  # of the input that are multiplied before steps take them: the products are still near then


def sizes_of(call: Call) -> Sizes:
    steps, batch, features = call["input"].shape
    if call["batchFirst"]:
        steps, batch = batch, steps
    directions = 2 if call["bidirectional"] else 1
    return Sizes(steps, batch, features, call["params"][1].shape[1], call["numLayers"], directions)


class Plan:
    """What phase 1 finds out: where everything lies in the workspace, and what is launched, loaded."""

    def __init__(self, call: Call, threads: int):
        sizes, dtype = sizes_of(call), call["input"].dtype
        self.call, self.sizes, self.threads, letter = call, sizes, threads, jit.POINTER[dtype]
        in_place = dtype is FLOAT32 and not call["batchFirst"] and call["input"].is_contiguous
        self.gathers = not in_place or call["batchSizes"] is not None
        self.gather = jit.load("lstm.gather", f"{letter}iii{letter}iiiFiiiiI")
        top, below = (jit.load("lstm_forward.gates", f"FiiiiiiF{out}{letter * 7}FFFFIii") for out in (letter, "F"))
        self.entries = Entries(top, below, jit.load("lstm_forward.walk", "IIII"))
        self.ahead = min(sizes.steps, max(1, ROWS_AHEAD // sizes.batch))
        self.arena, self.numbers = Arena(), Numbers()

        def matrix(rows: int, columns: int, wanted: bool = True) -> int:
            return self.arena.reserve(4 * rows * columns) if wanted else -1

        self.a, self.bias = matrix(self.ahead * sizes.batch, 4 * sizes.hidden), matrix(1, 4 * sizes.hidden)
        self.h, self.c = matrix(2 * sizes.batch, sizes.hidden), matrix(sizes.batch, sizes.hidden)
        self.x = matrix(sizes.rows, sizes.features, self.gathers)
        self.between = [matrix(sizes.rows, sizes.width(1), sizes.layers > n) for n in (1, 2)]
        self._plan_products()

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


class Execution:
    """What one executor owns: launches and tables. Runs one call at a time."""

    def __init__(self, plan: Plan):
        self._plan, sizes = plan, plan.sizes
        self._counts = (ctypes.c_int64 * sizes.steps)(*[sizes.batch] * sizes.steps)
        counts = ctypes.addressof(self._counts)
        self._walks = [Walk(plan.entries, step, plan.numbers, sizes.steps, counts) for step, _ in plan.launches]
        self._products = [Aimed(product, plan.numbers) for _, product in plan.launches]
        self._packing = [[Aimed(launch, plan.numbers) for launch in two] for two in plan.packing]
        team = worth(sizes.rows * sizes.features, convert.PER_THREAD, plan.threads)
        self._gather = Work(plan.gather, sizes.rows, 1, [0] * 11 + [sizes.batch, sizes.steps, counts], team)

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
        scratch, sizes = _Scratch(workspace), self._plan.sizes
        if batch_sizes is not None:
            self._counts[:] = batch_sizes.tolist()
        x, shape = self._input(input, scratch.base), (sizes.batch, sizes.hidden)
        last = self._plan.h + 4 * sizes.batch * sizes.hidden * (sizes.steps % 2)  # where the walk leaves the states
        for layer in range(sizes.layers):
            for direction in range(sizes.directions):
                k = layer * sizes.directions + direction
                h, c = (scratch.matrix(at, shape) for at in (self._plan.h, self._plan.c))
                h[...], c[...] = (0, 0) if hx is None else (hx[0][k], hx[1][k])
                out = self._target(output, layer, direction, scratch.base)
                self._one_direction(k, x, params, out, lists, scratch)
                hy[k], cy[k] = scratch.matrix(last, shape), c
            x = scratch.base + self._plan.between[layer % 2]

    def _input(self, input: Array, base: int) -> int:
        """Where the input is a float32 matrix, step after step."""
        if not self._plan.gathers:
            return address(input)
        source, place = self._time_major(input), base + self._plan.x
        steps, features = [s // source.itemsize for s in source.strides], source.shape[2]
        self._gather.point(0, address(source), *steps, address(source), *steps[1:], 0, place, features, features)
        self._gather.run()
        return place

    def _target(self, output: Array, layer: int, direction: int, base: int) -> Sequences:
        """Where the states of a layer and direction go: to the caller, or to the layer above."""
        sizes = self._plan.sizes
        if layer == sizes.layers - 1:
            whole = Sequences.of(self._time_major(output))
            return whole._replace(place=whole.place + direction * sizes.hidden * output.itemsize)
        width = sizes.width(1)
        place = base + self._plan.between[layer % 2] + 4 * direction * sizes.hidden
        return Sequences(place, 4 * sizes.batch * width, width)

    def _one_direction(
        self, k: int, x: int, params: list[Array], out: Sequences, lists: tuple[Any, ...], scratch: _Scratch
    ) -> None:
        sizes, plan, base = self._plan.sizes, self._plan, scratch.base
        top = k // sizes.directions == sizes.layers - 1
        each = len(params) // (sizes.layers * sizes.directions)
        for packing, weight in zip(self._packing[k], params[k * each :], strict=False):
            packing.run({"b": address(weight)}, base)
        bias = scratch.matrix(plan.bias, (4 * sizes.hidden,))
        bias[...] = 0
        for one in params[k * each + 2 : (k + 1) * each]:
            bias += one
        walk, h = self._walks[k], base + plan.h
        kept = [NOWHERE if one is None else Sequences.of(one[k]) for one in lists]
        a = Sequences(base + plan.a, 16 * sizes.batch * sizes.hidden, 0)
        walk.move([a, out, *kept, Sequences(x, 0, 0)], [m.per_sequence for m in (out, *kept)])
        keeps = int(lists[0] is not None)
        walk.gates(top, abi.H_AFTER + 1, base + plan.c, address(bias), walk.rows, sizes.hidden, keeps)
        self._hand_over(k, base)
        walk.run(k % sizes.directions > 0, top, h, base)

    def _hand_over(self, k: int, base: int) -> None:
        """Tells a walk of the states, and of the product with the input of some steps."""
        sizes, plan, table, product = self._plan.sizes, self._plan, self._walks[k].table, self._products[k]
        product.aim({"a": 0, "c": base + plan.a}, base)
        table[abi.STATE], table[abi.STATE_SIZE] = base + plan.h, 4 * sizes.batch * sizes.hidden
        table[abi.PRODUCT], table[abi.PRODUCT_BLOCK] = product.work.entry.address, product.work.address
        table[abi.PRODUCT_THREADS], table[abi.PRODUCT_STEPS] = product.work.arm(), plan.ahead
        table[abi.FEATURES] = 4 * sizes.batch * sizes.width(k // sizes.directions)

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
