"""Rows of bfloat16 as vectors of pairs, in LLVM's language: nothing beyond a row is read or written."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

LANES = 16  # of the vectors that processors have which multiply pairs
_SMALL, _WORD, _PAIRS = ir.IntType(32), ir.IntType(64), ir.VectorType(ir.IntType(32), LANES)
_SIXTEEN = ir.Constant(_PAIRS, [16] * LANES)


@intrinsic
def pair_lanes(
    context: Any,
    source: Any,
    start: Any,
    apart: Any,
    i: Any,
    first: Any,
    end: Any,
    second: Any,
    second_end: Any,
    target: Any,
    to: Any,
    length: Any,
) -> Any:
    """Pairs i … i + LANES − 1 of a row of so many: those from `first` to below `end` have a first half, which lies at
    start + i …, those from `second` to below its end another one, so far `apart`. Nothing else is read or written."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        source_, start_, apart_, i_, first_, end_, second_, second_end_, target_, to_, length_ = args
        there = b.add(start_, i_)
        one = _load_part(b, source_, there, _lanes_between(b, i_, first_, end_))
        other = _load_part(b, source_, b.add(there, apart_), _lanes_between(b, i_, second_, second_end_))
        pair = b.or_(b.zext(one, _PAIRS), b.shl(b.zext(other, _PAIRS), _SIXTEEN))
        _store_part(b, pair, target_, b.add(to_, i_), _lanes_between(b, i_, i_, length_))
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(source, *[whole] * 7, target, whole, whole), code


@intrinsic
def pair_neighbours(
    context: Any, source: Any, start: Any, i: Any, count: Any, target: Any, to: Any, length: Any
) -> Any:
    """The same of pairs of neighbours: of a row of `count` elements from source[start] on."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        source_, start_, i_, count_, target_, to_, length_ = args
        whole = b.sdiv(count_, _WORD(2))
        place = b.gep(b.bitcast(b.gep(source_, [start_]), _SMALL.as_pointer()), [i_])
        pairs = _load_part(b, place, _WORD(0), _lanes_between(b, i_, _WORD(0), whole))
        last = _lanes_between(b, i_, whole, b.sdiv(b.add(count_, _WORD(1)), _WORD(2)))
        odd = _load_part(b, source_, b.sub(b.add(b.add(start_, count_), _WORD(-1)), b.sub(whole, i_)), last)
        _store_part(b, b.or_(pairs, b.zext(odd, _PAIRS)), target_, b.add(to_, i_), _lanes_between(b, i_, i_, length_))
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(source, whole, whole, whole, target, whole, whole), code


@intrinsic
def pair_one(
    context: Any, source: Any, start: Any, apart: Any, has_first: Any, has_second: Any, target: Any, to: Any
) -> Any:
    """A pair of an element and of one so far apart, if there is such a first half and such a second one."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        source_, start_, apart_, first_, second_, target_, to_ = args
        there, made = (start_, b.add(start_, apart_)), []
        for has, place in zip((first_, second_), there, strict=True):
            before = b.block
            with b.if_then(has):
                half = b.zext(b.load(b.gep(source_, [place])), _SMALL)
                loaded = b.block
            made.append(phi := b.phi(_SMALL))
            phi.add_incoming(_SMALL(0), before)
            phi.add_incoming(half, loaded)
        b.store(b.or_(made[0], b.shl(made[1], _SMALL(16))), b.gep(target_, [to_]))
        return ctx.get_dummy_value()

    whole, yes = types.int64, types.boolean
    return types.void(source, whole, whole, yes, yes, target, whole), code


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
