"""The gradients of the convolution over time as matrix products.

Consecutive steps of all batches are consecutive rows, so every tap of the kernel is a product of two slabs of rows, and
padding takes no part: gradInput adds them up over the taps, gradWeight has one each. The taps share nearly all of their
rows, so their products are made together: see products.py. Without 512-bit vectors, and where that does not pay, oneDNN
makes them one by one, those of gradInput block of rows by block of rows.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP
from aclnn.base.taps import meetings
from aclnn.contract.call import Call
from aclnn.kernels import onednn, products, sums
from aclnn.kernels.onednn import Layout, strided
from aclnn.kernels.ports import Port, Traffic, entrance, exit_
from aclnn.kernels.products import Products, Tap
from aclnn.kernels.program import Buffer, Program, Recent, Session
from aclnn.kernels.strides import address, aligned

BLOCK = 3072  # rows of gradInput that a product has at most: the taps find them in the cache
NAMES = ("self", "input", "weight", "gradInput", "gradWeight")
_OPERANDS = ("self", "weight", "gradInput"), ("input", "self", "gradWeight")


class Problem(NamedTuple):
    """What the products depend on."""

    steps: int  # of the output
    times: int  # of the input
    batch: int
    in_channels: int
    out_channels: int
    kernel: int
    pad: int
    copied: tuple[bool, ...]  # which tensors may need a dense float32 copy in the workspace
    threads: int

    def taps(self) -> tuple[tuple[slice, slice], ...]:
        """For every tap, the steps of the output that take part, and the steps of the input they meet."""
        (found,) = meetings((self.steps,), (self.times,), (self.kernel,), (1,), (self.pad,), (1,))
        return found

    def input_products(self) -> Products | None:
        """How gradInput is made, if not by oneDNN. Raises NoNativeCodeError."""
        return self._together(products.straight, self.out_channels, self.in_channels)

    def weight_products(self) -> Products | None:
        """How gradWeight is made, if not by oneDNN. Raises NoNativeCodeError."""
        return self._together(products.turned, self.in_channels, self.out_channels)

    def _together(self, plan: Callable[..., Products | None], *columns: int) -> Products | None:
        if not onednn.library().has_avx512:
            return None
        n = self.batch
        taps = [Tap(n * i.start, n * i.stop, n * (i.start - u.start)) for u, i in self.taps()]
        return plan(n * self.times, *columns, taps, self.threads)


def block_count(times: int, batch: int) -> int:
    """Into how many pieces gradInput is divided, each of whole steps."""
    return math.ceil(times / max(1, BLOCK // batch))


class Slabs:
    """The products over slabs of the tensors."""

    def __init__(self, problem: Problem):
        self._problem = p = problem
        made = p.input_products(), p.weight_products()
        of_input, of_weight = p.times * p.batch * p.in_channels, p.kernel * p.in_channels * p.out_channels
        counts = p.steps * p.batch * p.out_channels, of_input, of_weight, of_input, of_weight
        self.uncovered: list[tuple[int, int]] = []  # steps of gradInput, first and end, that no product writes anew
        with onednn.library().limits.held_at(p.threads):
            self.program = Program(p.threads)
            copies = zip(NAMES, counts, p.copied, strict=True)
            self.offsets = {n: self.program.arena.reserve(4 * count) if on else None for n, count, on in copies}
            self.tensors = {n: self.program.tensor(_matrix(1, count)) for n, count in zip(NAMES, counts, strict=True)}
            if not made[0]:
                self._add_input()
            if not made[1]:
                self._add_weight()
            self.together = [  # what oneDNN does not make: how, of what, and where in the workspace it is packed
                (m, names, self.program.arena.reserve(m.size)) for m, names in zip(made, _OPERANDS, strict=True) if m
            ]

    def _slab(self, name: str, start: int, layout: Layout) -> Buffer:
        return self.program.part(self.tensors[name], layout, 4 * start)

    def _add_input(self) -> None:
        p = self._problem
        turned = [self._turned_weight(k) for k in range(p.kernel)]
        count = block_count(p.times, p.batch)
        for n in range(count):  # as equal as they can be: a small one would take longer than its share
            self._add_block(p.times * n // count, p.times * (n + 1) // count, turned)

    def _turned_weight(self, k: int) -> Buffer:
        """weight[k] as [out channels, in channels], packed for products with a block of rows."""
        p = self._problem
        dims, rows = (p.out_channels, p.in_channels), p.times // block_count(p.times, p.batch) * p.batch
        weight = self._slab("weight", k * dims[0] * dims[1], strided(FLOAT32, dims, (1, dims[0])))
        return self.program.packed(weight, dims, _matrix(rows, dims[0]), _matrix(rows, dims[1]))

    def _add_block(self, first: int, end: int, turned: list[Buffer]) -> None:
        """gradInput of the steps first … end − 1: a tap that meets them all writes, the others add."""
        p = self._problem
        met = [(max(first, i.start), min(end, i.stop), u.start - i.start) for u, i in p.taps()]
        order = sorted(range(p.kernel), key=lambda k: met[k][:2] != (first, end))
        covered = met[order[0]][:2] == (first, end)
        if not covered:
            self.uncovered.append((first, end))
        for k in order:
            start, stop, shift = met[k]
            if start < stop:
                rows = (stop - start) * p.batch
                a = self._rows("self", start + shift, rows, p.out_channels)
                c = self._rows("gradInput", start, rows, p.in_channels)
                self.program.multiply(a, turned[k], c, add=not covered or k != order[0])

    def _add_weight(self) -> None:
        p = self._problem
        for k, (u, i) in enumerate(p.taps()):
            rows = (u.stop - u.start) * p.batch
            c = self._slab("gradWeight", k * p.in_channels * p.out_channels, _matrix(p.in_channels, p.out_channels))
            if rows:
                turned = strided(FLOAT32, (p.in_channels, rows), (1, p.in_channels))
                a = self._slab("input", i.start * p.batch * p.in_channels, turned)
                b = self._rows("self", u.start, rows, p.out_channels)
                self.program.multiply(a, b, c)

    def _rows(self, name: str, step: int, rows: int, channels: int) -> Buffer:
        return self._slab(name, step * self._problem.batch * channels, _matrix(rows, channels))


def _matrix(rows: int, columns: int) -> Layout:
    return strided(FLOAT32, (rows, columns), (columns, 1))


recent: Recent[Slabs] = Recent(lambda slabs: len(slabs.program.steps))


class Plan:
    """How the tensors of a call get in and out, and the products in between."""

    def __init__(self, call: Call, threads: int):
        g, x, w = (call[n] for n in NAMES[:3])
        (kernel, in_channels, out_channels), (times, batch, _) = w.shape, x.shape
        problem = Problem(g.shape[0], times, batch, in_channels, out_channels, kernel, call["pad"], (), threads)
        rounding = call["cubeMathType"] if g.dtype is FLOAT32 else KEEP
        on_line = problem.weight_products() is None  # oneDNN's are much faster then
        ins = (entrance(s, FLOAT32, rounding, threads, in_order=True, on_line=on_line and s is g) for s in (g, x, w))
        outs = (exit_(call[n], FLOAT32, threads, in_order=True) for n in NAMES[3:])
        self.ports: dict[str, Port] = dict(zip(NAMES, (*ins, *outs), strict=True))
        self.problem = problem._replace(copied=tuple(bool(port.copies) for port in self.ports.values()))
        self.bias = sums.plan(g, 2, call["gradBias"], threads)

    def slabs(self) -> Slabs:
        return recent.get(self.problem, lambda: Slabs(self.problem))


class Execution:
    """What one executor needs to run: memory objects and launches."""

    def __init__(self, plan: Plan):
        self._slabs = plan.slabs()
        self._session = Session(self._slabs.program)
        self._traffic = Traffic(plan.ports, self._slabs.offsets)
        self._together = [(made.work(), names, packed) for made, names, packed in self._slabs.together]
        self._bias = plan.bias.work()
        self._unwritten = list(_unwritten(plan.problem, self._slabs.uncovered))

    def run(
        self,
        workspace: Array | None,
        grad_output: Array,
        input: Array,
        weight: Array,
        bias: Array,
        grad_input: Array,
        grad_weight: Array,
        grad_bias: Array,
    ) -> None:
        given = dict(zip(NAMES, (grad_output, input, weight, grad_input, grad_weight), strict=True))
        base = 0 if workspace is None else aligned(address(workspace))
        places = self._traffic.places(given, base)
        for name in NAMES[:3]:
            self._traffic.bring(name, given[name], places)
        for name, start, size in self._unwritten:
            ctypes.memset(places[name] + start, 0, size)
        self._session.bind(base, [(buffer, places[name]) for name, buffer in self._slabs.tensors.items()])
        self._session.run()
        for work, names, packed in self._together:
            work.point(0, *(places[name] for name in names), base + packed)
            work.run()
        for name in NAMES[3:]:
            self._traffic.take(name, given[name], places)
        self._bias.point(0, address(grad_output))
        self._bias.point(2, address(grad_bias))
        self._bias.run()


def _unwritten(p: Problem, uncovered: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """Tensor, byte and size of what must be 0 at first: every product adds to it, or there is none, as for the
    gradWeight of a tap that meets only padding."""
    per_step, per_tap = 4 * p.batch * p.in_channels, 4 * p.in_channels * p.out_channels
    for first, end in uncovered:
        yield "gradInput", first * per_step, (end - first) * per_step
    for k, (u, _) in enumerate(p.taps()):
        if u.start == u.stop:
            yield "gradWeight", k * per_tap, per_tap
