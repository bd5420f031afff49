"""Short loops over rows, written in LLVM's language: vectors as wide as this processor's, sums that stay in registers.

`fmuladd` is one fma where the processor has it, and a multiplication and a sum elsewhere: `fma` would be a call of the
C library there.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from aclnn.kernels.native import isa
from aclnn.kernels.native.memory import LINE as LINE_BYTES
from aclnn.kernels.source.elements import narrowed, read, widened, write
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.loops import repeated

_FEATURES = isa.target(llvm.get_host_cpu_name(), llvm.get_host_cpu_features())[1].split(",")
LANES = 16 if "+avx512f" in _FEATURES else 8 if "+avx" in _FEATURES else 4
CHUNK = 8 * LANES  # columns that `convolve` does together: with eight sums, none waits for another
MOST_TAPS = 9  # that `correlate` does together: with as many sums, g and an x, a processor of 16 registers is full
MOST_SUMS = 12 * LANES  # what `correlate` makes at most, of all its taps
_FLOAT, _SMALL, _WORD = ir.FloatType(), ir.IntType(32), ir.IntType(64)


@inner
def copy_rows(source: Any, start: int, down: int, target: Any, to: int, to_down: int, rows: int, count: int) -> None:
    """Rows of `count` elements that lie side by side, from any dtype to any: whole vectors, the last may overlap."""
    if count >= 16:
        last = count - 16
        for _ in range(rows):
            for i in range(0, last, 16):
                move(16, source, start + i, target, to + i)
            move(16, source, start + last, target, to + last)
            start, to = start + down, to + to_down
    elif count >= 8:
        last = count - 8
        for _ in range(rows):
            move(8, source, start, target, to)
            move(8, source, start + last, target, to + last)
            start, to = start + down, to + to_down
    elif count >= 4:
        last = count - 4
        for _ in range(rows):
            move(4, source, start, target, to)
            move(4, source, start + last, target, to + last)
            start, to = start + down, to + to_down
    else:
        for _ in range(rows):
            for i in range(count):
                write(target, to + i, read(source, start + i))
            start, to = start + down, to + to_down


@inner
def copy_every_second(
    source: Any, start: int, down: int, target: Any, to: int, to_down: int, rows: int, count: int
) -> None:
    """Rows of every second element. A vector also reads the element behind its last: that one goes by itself."""
    last = count - 1
    for _ in range(rows):
        if last >= 8:
            for i in range(0, last - 8, 8):
                move_even(source, start + 2 * i, target, to + i)
            move_even(source, start + 2 * (last - 8), target, to + last - 8)
            write(target, to + last, read(source, start + 2 * last))
        else:
            for i in range(count):
                write(target, to + i, read(source, start + 2 * i))
        start, to = start + down, to + to_down


@intrinsic
def move_even(context: Any, source: Any, start: Any, target: Any, to: Any) -> Any:
    """Eight elements, the first, third … of sixteen."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        source_, start_, target_, to_ = args
        all_ = _load(b, source_, start_, 16)
        even = b.shuffle_vector(all_, all_, ir.Constant(ir.VectorType(_SMALL, 8), list(range(0, 16, 2))))
        wide = widened(b, even, source.dtype, 8)
        _store(b, narrowed(b, wide, target.dtype, 8), target_, to_)
        return ctx.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), code


@intrinsic(prefer_literal=True)
def move(context: Any, width: Any, source: Any, start: Any, target: Any, to: Any) -> Any:
    """`width` elements, a constant."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        lanes = width.literal_value
        _, source_, start_, target_, to_ = args
        wide = widened(b, _load(b, source_, start_, lanes), source.dtype, lanes)
        _store(b, narrowed(b, wide, target.dtype, lanes), target_, to_)
        return ctx.get_dummy_value()

    return types.void(width, source, types.int64, target, types.int64), code


LINE = LINE_BYTES // 4  # elements of a cache line, of the widest dtype
TO_READ, TO_WRITE, TO_READ_LATER = range(3)


@intrinsic(prefer_literal=True)
def fetch(context: Any, pointer: Any, index: Any, purpose: Any) -> Any:
    """Asks for the memory of pointer[index] … while something else is done. The purpose is a constant: TO_READ,
    TO_WRITE, or TO_READ_LATER, for which the second cache is near enough."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        ask_for(b, b.gep(args[0], [args[1]]), purpose.literal_value)
        return ctx.get_dummy_value()

    return types.void(pointer, types.int64, purpose), code


def ask_for(b: Any, place: Any, purpose: int) -> None:
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _SMALL, _SMALL, _SMALL])
    writes, later = (int(purpose == wanted) for wanted in (TO_WRITE, TO_READ_LATER))
    ask = get_or_insert_function(b.module, kind, "llvm.prefetch.p0")
    b.call(ask, [b.bitcast(place, byte), _SMALL(writes), _SMALL(3 - later), _SMALL(1)])


@intrinsic
def convolve(
    context: Any, taps: Any, x: Any, offsets: Any, weights: Any, first: Any, before: Any, out: Any, at: Any
) -> Any:
    """out[at + j] = (before if first else out[at + j]) + Σ weights[t]·x[at + offsets[t] + j], for j < CHUNK."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        taps, x, offsets, weights, first, before, out, at = args

        def step(t: Any, sums: Any) -> Any:
            row = _load(b, x, b.add(at, b.load(b.gep(offsets, [t]))), CHUNK)
            return [_multiply_add(b, _everywhere(b, b.load(b.gep(weights, [t])), CHUNK), row, sums[0])]

        (sums,) = repeated(b, taps, [_zeros(CHUNK)], step)
        known = b.select(first, _everywhere(b, before, CHUNK), _load(b, out, at, CHUNK))
        _store(b, b.fadd(known, sums), out, at)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(whole, x, offsets, weights, types.boolean, types.float32, out, whole), code


@inner
def sums_per_tap(taps: int) -> int:
    """How many sums `correlate` makes for each of so many taps: the fewer, the more, so that none waits for another."""
    if taps <= 3:
        return 4 * LANES
    return 2 * LANES if taps <= 6 else LANES


@intrinsic
def correlate(context: Any, taps: Any, steps: Any, g: Any, x: Any, offsets: Any, at: Any, sums: Any) -> Any:
    """sums[t·n + j] += Σ g[at + i·n + j]·x[at + offsets[t] + i·n + j] over i < steps, with n = sums_per_tap(taps)."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        done = b.append_basic_block("correlated")
        for count in range(1, MOST_TAPS + 1):
            with b.if_then(b.icmp_signed("==", args[0], _WORD(count))):
                _correlate(b, count, *args[1:])
                b.branch(done)
        b.branch(done)
        b.position_at_end(done)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(whole, whole, g, x, offsets, whole, sums), code


def _correlate(b: Any, taps: int, steps: Any, g: Any, x: Any, offsets: Any, at: Any, sums: Any) -> None:
    lanes: int = sums_per_tap(taps)
    g_row = b.gep(g, [at])
    rows = [b.gep(x, [b.add(at, b.load(b.gep(offsets, [_WORD(t)])))]) for t in range(taps)]

    def step(i: Any, sums: Any) -> Any:
        start = b.mul(i, _WORD(lanes))
        factor = _load(b, g_row, start, lanes)
        return [_multiply_add(b, factor, _load(b, row, start, lanes), s) for row, s in zip(rows, sums, strict=True)]

    for t, made in enumerate(repeated(b, steps, [_zeros(lanes)] * taps, step)):
        place = _WORD(t * lanes)
        _store(b, b.fadd(_load(b, sums, place, lanes), made), sums, place)


def _multiply_add(b: Any, x: Any, y: Any, z: Any) -> Any:
    name = f"llvm.fmuladd.v{x.type.count}f32"
    return b.call(get_or_insert_function(b.module, ir.FunctionType(x.type, [x.type] * 3), name), [x, y, z])


def _load(b: Any, pointer: Any, start: Any, lanes: int) -> Any:
    """Elements that need not begin a line."""
    element = pointer.type.pointee
    there = b.bitcast(b.gep(pointer, [start]), ir.VectorType(element, lanes).as_pointer())
    return b.load(there, align=2 if isinstance(element, ir.IntType) else 4)


def _store(b: Any, value: Any, pointer: Any, start: Any) -> None:
    there = b.bitcast(b.gep(pointer, [start]), value.type.as_pointer())
    b.store(value, there, align=2 if isinstance(value.type.element, ir.IntType) else 4)


def _zeros(lanes: int) -> Any:
    return ir.Constant(ir.VectorType(_FLOAT, lanes), [0.0] * lanes)


def _everywhere(b: Any, element: Any, lanes: int) -> Any:
    """A vector of one element."""
    none = ir.Constant(ir.VectorType(element.type, lanes), ir.Undefined)
    first = b.insert_element(none, element, _SMALL(0))
    return b.shuffle_vector(first, none, ir.Constant(ir.VectorType(_SMALL, lanes), [0] * lanes))
