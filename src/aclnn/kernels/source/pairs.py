"""Pairs of bfloat16: two terms of a sum in one word, the first in its lower half.

A processor with instructions for bfloat16 multiplies a vector of words by another one, and adds both products of each
to a float32, as fast as it multiplies floats. A picture then has half as many channels, or positions, of words instead
of floats, and all that is done with places of floats is done with places of words. Pairs are known by pointers to
uint32; where a term has no partner, that one is 0.

Such instructions take subnormal numbers for 0, and what they make too. Of factors from 2^-A and 2^-B on, with 7 bits
behind the point each, all products are multiples of 2^-(A + B + 14), and so are their sums, whatever is rounded: where
that is 2^-126, nothing they make is subnormal. So who brings factors looks at them, and where one is too small the run
is made again of floats.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from aclnn.kernels.source.elements import narrowed, widened

PAIR = types.uint32
# The least exponents, as bfloat16 has them, of what is multiplied: the sum of both, for products from 2^-112 on; or of
# each, where one is not known when the other is met: 2^-42 of weights, 2^-70 of pictures.
LEAST_OF_PRODUCTS, LEAST_OF_WEIGHTS = 142, 85
LEAST_OF_PICTURES = LEAST_OF_PRODUCTS - LEAST_OF_WEIGHTS
_SMALL, _WORD = ir.IntType(32), ir.IntType(64)


class _BFloat16(ir.types._BaseFloatType):  # type: ignore[misc]  # llvmlite has no name for it
    intrinsic_name = "bf16"

    def __str__(self) -> str:
        return "bfloat"


_BFloat16._create_instance()


def multiplied_pairs(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a₀·b₀ + (a₁·b₁ + c), each product added with one rounding. Subnormal numbers count as zero."""
    pairs = ir.VectorType(_BFloat16(), 2 * c.type.count)
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * c.type.count}"
    dot = get_or_insert_function(builder.module, ir.FunctionType(c.type, [c.type, pairs, pairs]), name)
    return builder.call(dot, [c, builder.bitcast(a, pairs), builder.bitcast(b, pairs)])


@intrinsic
def terms_in(context: Any, pointer: Any) -> Any:
    """How many terms of a sum an element has, a constant: two if it is a pair."""
    terms = 2 if pointer.dtype == PAIR else 1
    return types.int64(pointer), lambda ctx, b, sig, args: _WORD(terms)


@intrinsic(prefer_literal=True)
def put_terms(context: Any, width: Any, source: Any, start: Any, target: Any, row: Any, columns: Any, at: Any) -> Any:
    """`width` floats, a constant, from the column `at` of a packed panel's row on. Of a panel of pairs, even rows are
    the first halves of its rows, and have to be there before odd ones, the others, are added."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        lanes = width.literal_value
        _, source_, start_, target_, row_, columns_, at_ = args
        value = widened(b, _load(b, source_, start_, lanes), source.dtype, lanes)
        _put_term(b, value, target, target_, row_, columns_, at_, lanes)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(width, source, whole, target, whole, whole, whole), code


@intrinsic
def put_term(context: Any, value: Any, target: Any, row: Any, columns: Any, at: Any) -> Any:
    """The same of one."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        value_, target_, row_, columns_, at_ = args
        _put_term(b, value_, target, target_, row_, columns_, at_, 0)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(types.float32, target, whole, whole, whole), code


def _put_term(b: Any, value: Any, kind: Any, target: Any, row: Any, columns: Any, at: Any, lanes: int) -> None:
    if kind.dtype != PAIR:
        _put(b, narrowed(b, value, kind.dtype, lanes), target, b.add(b.mul(row, columns), at))
        return
    place = b.add(b.mul(b.ashr(row, _WORD(1)), columns), at)
    bits = b.bitcast(value, ir.VectorType(_SMALL, lanes) if lanes else _SMALL)
    is_first = b.icmp_signed("==", b.and_(row, _WORD(1)), _WORD(0))
    there = _load(b, target, place, lanes)
    _put(b, b.select(is_first, b.lshr(bits, _sixteen(lanes)), b.or_(there, bits)), target, place)


@intrinsic
def as_floats(context: Any, pointer: Any) -> Any:
    """The same memory as float32."""
    return types.CPointer(types.float32)(pointer), lambda ctx, b, sig, args: b.bitcast(
        args[0], ir.FloatType().as_pointer()
    )


def _load(b: Any, memory: Any, start: Any, lanes: int) -> Any:
    """One element, or a vector of so many, which need not begin a line."""
    place = b.gep(memory, [start])
    if not lanes:
        return b.load(place)
    return b.load(b.bitcast(place, ir.VectorType(memory.type.pointee, lanes).as_pointer()), align=2)


def _put(b: Any, value: Any, memory: Any, at: Any) -> None:
    b.store(value, b.bitcast(b.gep(memory, [at]), value.type.as_pointer()), align=2)


def _sixteen(lanes: int) -> Any:
    return ir.Constant(ir.VectorType(_SMALL, lanes), [16] * lanes) if lanes else _SMALL(16)
