"""Rows of bfloat16 as rows of pairs, in LLVM's language: nothing beyond a row is read or written.

Who brings them also sees how small they are: `seen` is memory for a vector, of the least there were, see source.pairs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from aclnn.kernels.source.loops import repeated

LANES = 16  # of the vectors that processors have which multiply pairs
_HALF, _SMALL, _WORD = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_PAIRS, _HALVES = ir.VectorType(_SMALL, LANES), ir.VectorType(_HALF, 2 * LANES)
_SIXTEEN = ir.Constant(_PAIRS, [16] * LANES)


@intrinsic
def pair_rows(
    context: Any,
    source: Any,
    start: Any,
    apart: Any,
    first: Any,
    end: Any,
    second: Any,
    second_end: Any,
    target: Any,
    to: Any,
    length: Any,
    seen: Any,
) -> Any:
    """A row of so many pairs, from target[to] on: those from `first` to below `end` have a first half, the i-th of them
    at start + i, those from `second` to below its end another one, so far `apart` from there. The others are 0."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        source_, start_, apart_, first_, end_, second_, second_end_, target_, to_, length_, seen_ = args

        def pairs(i: Any) -> Any:
            there = b.add(start_, i)
            one = _load_part(b, source_, there, _lanes_between(b, i, first_, end_))
            other = _load_part(b, source_, b.add(there, apart_), _lanes_between(b, i, second_, second_end_))
            return b.or_(b.zext(one, _PAIRS), b.shl(b.zext(other, _PAIRS), _SIXTEEN))

        _make_row(b, pairs, target_, to_, length_, seen_)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(source, *[whole] * 6, target, whole, whole, seen), code


@intrinsic
def pair_neighbours(
    context: Any, source: Any, start: Any, count: Any, target: Any, to: Any, length: Any, seen: Any
) -> Any:
    """The same of pairs of neighbours: of `count` elements from source[start] on."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        source_, start_, count_, target_, to_, length_, seen_ = args
        words = b.bitcast(b.gep(source_, [start_]), _SMALL.as_pointer())
        whole, last = b.sdiv(count_, _WORD(2)), b.sdiv(b.add(count_, _WORD(1)), _WORD(2))
        odd_one = b.add(b.add(start_, count_), _WORD(-1))

        def pairs(i: Any) -> Any:
            both = _load_part(b, words, i, _lanes_between(b, i, _WORD(0), whole))
            alone = _load_part(b, source_, b.sub(odd_one, b.sub(whole, i)), _lanes_between(b, i, whole, last))
            return b.or_(both, b.zext(alone, _PAIRS))

        _make_row(b, pairs, target_, to_, length_, seen_)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(source, whole, whole, target, whole, whole, seen), code


def _make_row(b: Any, pairs: Any, target: Any, to: Any, length: Any, seen: Any) -> None:
    def step(vector: Any, state: Any) -> Any:
        i = b.mul(vector, _WORD(LANES))
        made = pairs(i)
        _store_part(b, made, target, b.add(to, i), _lanes_between(b, i, i, length))
        return [_least(b, state[0], made)]

    memory = b.bitcast(seen, _HALVES.as_pointer())
    vectors = b.sdiv(b.add(length, _WORD(LANES - 1)), _WORD(LANES))
    (least,) = repeated(b, vectors, [b.load(memory, align=8)], step)
    b.store(least, memory, align=8)


@intrinsic
def pair_one(
    context: Any, source: Any, start: Any, apart: Any, has_first: Any, has_second: Any, target: Any, to: Any, seen: Any
) -> Any:
    """A pair of an element and of one so far apart, if there is such a first half and such a second one."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        source_, start_, apart_, first_, second_, target_, to_, seen_ = args
        there, made = (start_, b.add(start_, apart_)), []
        for has, place in zip((first_, second_), there, strict=True):
            before = b.block
            with b.if_then(has):
                half = b.zext(b.load(b.gep(source_, [place])), _SMALL)
                loaded = b.block
            made.append(phi := b.phi(_SMALL))
            phi.add_incoming(_SMALL(0), before)
            phi.add_incoming(half, loaded)
        pair = b.or_(made[0], b.shl(made[1], _SMALL(16)))
        b.store(pair, b.gep(target_, [to_]))
        two = ir.VectorType(_HALF, 2)
        memory = b.bitcast(seen_, two.as_pointer())
        b.store(_least(b, b.load(memory), pair), memory)
        return ctx.get_dummy_value()

    whole, yes = types.int64, types.boolean
    return types.void(source, whole, whole, yes, yes, target, whole, seen), code


@intrinsic
def look_at_rows(context: Any, memory: Any, rows: Any, apart: Any, seen: Any) -> Any:
    """Sees the first LANES pairs of so many rows, which lie so far apart."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        memory_, rows_, apart_, seen_ = args
        place = b.bitcast(seen_, _HALVES.as_pointer())

        def step(row: Any, state: Any) -> Any:
            there = b.bitcast(b.gep(memory_, [b.mul(row, apart_)]), _PAIRS.as_pointer())
            return [_least(b, state[0], b.load(there, align=4))]

        (least,) = repeated(b, rows_, [b.load(place, align=8)], step)
        b.store(least, place, align=8)
        return ctx.get_dummy_value()

    return types.void(memory, types.int64, types.int64, seen), code


@intrinsic
def clear_seen(context: Any, seen: Any) -> Any:
    """Nothing was seen yet."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        nothing = ir.Constant(_HALVES, [0xFFFF] * 2 * LANES)
        b.store(nothing, b.bitcast(args[0], _HALVES.as_pointer()), align=8)
        return ctx.get_dummy_value()

    return types.void(seen), code


@intrinsic
def least_exponent(context: Any, seen: Any) -> Any:
    """That of the least number that was seen and is not 0, as bfloat16 has it; of a subnormal one, below all."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(_HALF, [_HALVES])
        reduce = get_or_insert_function(b.module, kind, f"llvm.vector.reduce.umin.v{2 * LANES}i16")
        least = b.call(reduce, [b.load(b.bitcast(args[0], _HALVES.as_pointer()), align=8)])
        exponent = b.lshr(b.add(b.zext(least, _WORD), _WORD(1)), _WORD(7))
        return b.select(b.icmp_unsigned("==", exponent, _WORD(0)), _WORD(-1024), exponent)

    return types.int64(seen), code


def _least(b: Any, before: Any, pairs: Any) -> Any:
    """The least of what was there before and of the halves of pairs, as numbers without their signs, each less 1: what
    is 0 is the largest."""
    kind = before.type
    sizes = b.and_(b.bitcast(pairs, kind), ir.Constant(kind, [0x7FFF] * kind.count))
    less = b.add(sizes, ir.Constant(kind, [0xFFFF] * kind.count))
    return b.select(b.icmp_unsigned("<", less, before), less, before)


def _lanes_between(b: Any, i: Any, first: Any, end: Any) -> Any:
    """Which lanes of those that begin with the i-th are between two numbers."""
    count = b.select(b.icmp_signed(">", end, first), b.sub(end, first), _WORD(0))
    lowest, counts = (_everywhere(b, b.trunc(number, _SMALL)) for number in (b.sub(i, first), count))
    lanes = ir.Constant(_PAIRS, list(range(LANES)))
    return b.icmp_unsigned("<", b.add(lanes, lowest), counts)


def _load_part(b: Any, memory: Any, start: Any, mask: Any) -> Any:
    kind = ir.VectorType(memory.type.pointee, LANES)
    place = b.bitcast(b.gep(memory, [start]), kind.as_pointer())
    of = ir.FunctionType(kind, [place.type, _SMALL, mask.type, kind])
    load = get_or_insert_function(b.module, of, f"llvm.masked.load.v{LANES}i{kind.element.width}.p0")
    return b.call(load, [place, _SMALL(2), mask, ir.Constant(kind, None)])


def _store_part(b: Any, pairs: Any, memory: Any, to: Any, mask: Any) -> None:
    place = b.bitcast(b.gep(memory, [to]), _PAIRS.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [_PAIRS, place.type, _SMALL, mask.type])
    store = get_or_insert_function(b.module, kind, f"llvm.masked.store.v{LANES}i32.p0")
    b.call(store, [pairs, place, _SMALL(4), mask])


def _everywhere(b: Any, number: Any) -> Any:
    none = ir.Constant(_PAIRS, ir.Undefined)
    lanes = ir.Constant(_PAIRS, [0] * LANES)
    return b.shuffle_vector(b.insert_element(none, number, _SMALL(0)), none, lanes)
