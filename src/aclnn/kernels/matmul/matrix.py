"""Matmuls on tiles, the steps of an LSTM that are made of them, and sums over rows: how they are launched.

What a launch takes of the workspace for itself serves others before and after.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from aclnn.base.tensor import TensorSpec
from aclnn.kernels.matmul.tiles import chain, columns, even_chain, packed_columns, panels_of, put_of
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import BLOCK_ROWS, DEPTH, ROWS
from aclnn.kernels.native.threads import worth
from aclnn.kernels.shared.launch import Launch, Room
from aclnn.kernels.shared.workspace import in_lines

PACKED_PER_THREAD = 32768  # elements to pack that pay for waking a thread
PER_THREAD = 100_000  # multiplications that do
# How many sequences of an LSTM a thread must have for itself, for up to so many weights: each thread reads all of
# them in every step, past its own cache where they are many (16 sequences, 512 features: 0.87 to 0.91 of the time if
# threads share the units instead; 8 sequences, 256 features: 0.78).
ROWS_APART = ((1 << 17, 4), (1 << 18, 8), (1 << 21, 32), (math.inf, 64))
SUMS_TOGETHER = 65536  # elements of a step that gates are given at once: long rows, of which the next is guessed


class Packed:
    """A matrix as panels in the workspace: `kinds` of them side by side, each packed for itself."""

    def __init__(self, b: TensorSpec, room: Room, kinds: int = 1):
        (self.depth, width), (per_row, per_column) = b.shape, b.strides
        self.kinds, self.units = kinds, width // kinds
        elements = self._elements = kinds * packed_columns(self.units) * self.depth
        self.place, put = room.arena.reserve(4 * elements), room.numbers.put
        places = put(range(0, per_row * self.depth, per_row) if per_row else [0] * self.depth)
        tables = self.units, self.depth, places, put([self.units * per_column, per_column, kinds, 0])
        letters, items = jit.POINTER[b.dtype] + "FiiII", kinds * panels_of(self.units)
        team = worth(elements, PACKED_PER_THREAD, room.threads)
        self.launch = Launch("panels.pack_weight", letters, items, ("b", self.place), tables, team)

    def release(self, room: Room) -> None:
        """Gives its place to what is planned from now on."""
        room.arena.release(self.place, 4 * self._elements)


def matmul(a: TensorSpec, b: Packed, room: Room, adds: bool = False) -> Launch:
    """c = a·b, or c += a·b, of float32; operands a and c, which is dense. A time loop may do fewer rows."""
    rows, team = a.shape[0], worth(a.size * b.units, PER_THREAD, room.threads)
    per_lot = in_lines((min(rows, BLOCK_ROWS) + 2 * ROWS) * columns())
    operands = "a", "c", b.place, _scratch(room, per_lot * team)
    tables = room.numbers.put(range(b.depth)), a.strides[0], rows, b.depth, b.units, chain(b.depth), team, per_lot
    return Launch("matrix.matmul", "FFFFIiiiiiiii", team, operands, (*tables, adds), team)


class StepLaunch(NamedTuple):
    """How a step of an LSTM is launched: `apart` lots of sequences at once, or all of them on the launch's threads."""

    launch: Launch
    apart: int


def step(a: TensorSpec, b: Packed, room: Room, may_part: bool, x_by: Packed | None = None) -> StepLaunch:
    """A step of an LSTM whose sequences are the rows of a, and of its input x if that is multiplied here: see
    source.matrix. Who launches it says the last two arguments, the entry of the gates and the address of a block of
    theirs. Lots of sequences that go through all steps on a thread of their own need not wait for each other after
    each, but there must be enough in a lot."""
    batch, team = a.shape[0], worth(a.size * b.units * b.kinds, PER_THREAD, room.threads)
    x_place, x_depth = (None, 0) if x_by is None else (x_by.place, x_by.depth)
    weights = (b.depth + x_depth) * b.units * b.kinds
    least = next(rows for most, rows in ROWS_APART if weights <= most)
    apart = team if may_part and batch >= least * team else 1
    within = team if apart == 1 else 1
    rows = -(-batch // apart) + ROWS
    panels = max(1, min(-(-panels_of(b.units) // within), SUMS_TOGETHER // (b.kinds * rows * columns())))
    together = panels * columns()
    per_lot = in_lines(b.kinds * rows * min(together, packed_columns(b.units)) + ROWS * columns())
    operands = "a", None, None, b.place, _scratch(room, per_lot * team), "x", x_place
    rows_of = np.minimum(np.arange(batch + ROWS), batch - 1)
    put, longest = room.numbers.put, max(b.depth, x_depth)
    bases = put(a.strides[0] * rows_of), put(range(longest)), put(x_depth * rows_of) if x_by is not None else 0
    length = even_chain(b.depth + x_depth, DEPTH) if x_by is not None else chain(b.depth)
    sizes = batch, b.depth, x_depth, b.units, b.kinds, length, within, per_lot, together
    return StepLaunch(
        Launch("matrix.step", "FiiFFFFIIIiiiiiiiiiiI", within, operands, (*bases, *sizes, 0, 0), within), apart
    )


def row_sums(a: TensorSpec, widths: tuple[int, int], results: tuple[TensorSpec, TensorSpec], room: Room) -> Launch:
    """aᵀ·b and aᵀ·more, where b and more are dense and so wide; operands a, b, more, c and c_more."""
    (rows, width), put = a.shape, room.numbers.put
    tiles, wide = -(-width // ROWS), sum(map(packed_columns, widths))
    lots = min(tiles, worth(a.size * sum(widths), PER_THREAD, room.threads))
    per_lot = in_lines((-(-tiles // lots) * ROWS + wide) * DEPTH + 2 * ROWS * columns())
    kept = tiles * ROWS * wide if rows > DEPTH else 0
    made = _scratch(room, kept + per_lot * lots)
    scratch = made + 4 * kept
    numbers = [min(i, width - 1) for i in range(tiles * ROWS)]
    for pitch in (a.strides[0], *widths, ROWS):
        numbers += [pitch * i for i in range(DEPTH)]
    puts = [number for c in results for number in (*put_of(c.dtype), *c.strides)]
    operands = "a", "b", "more", made, scratch, "c", "c_more"
    sizes = rows, a.strides[0], lots, per_lot, chain(rows), width, *widths
    tables = put([*numbers, *range(ROWS)]), put(puts), put(sizes)
    return Launch("matrix.row_sums", "FFFFFiiIII", lots, operands, tables, lots)


def _scratch(room: Room, elements: int) -> int:
    place = room.arena.reserve(4 * elements)
    room.arena.release(place, 4 * elements)
    return place
