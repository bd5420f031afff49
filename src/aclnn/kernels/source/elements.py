"""Elements of memory: read as float32 whatever they are, written rounded to what they are.

float16 is known by pointers to int16, bfloat16 by pointers to uint16, so that one kernel source serves all three.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import TILE
from aclnn.kernels.native.memory import LINE

_ELEMENT = {types.float32: ir.FloatType(), types.int16: ir.IntType(16), types.uint16: ir.IntType(16)}
_SINGLE, _WORD = ir.FloatType(), ir.IntType(32)
_BY_INSTRUCTION = jit.converts_half()


@intrinsic
def read(context: Any, pointer: Any, index: Any) -> Any:
    """pointer[index] as float32; a pair as it is. What is read so must not be written by the same loop, except at the
    same index."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        loaded = b.load(b.gep(args[0], [args[1]]))
        loaded.set_metadata("alias.scope", _inputs(b.module))
        return widened(b, loaded, pointer.dtype)

    made = pointer.dtype if pointer.dtype == types.uint32 else types.float32
    return made(pointer, types.int64), code


@intrinsic
def write(context: Any, pointer: Any, index: Any, value: Any) -> Any:
    """pointer[index] = value, rounded to nearest even."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        stored = b.store(narrowed(b, args[2], pointer.dtype), b.gep(args[0], [args[1]]))
        stored.set_metadata("noalias", _inputs(b.module))
        return ctx.get_dummy_value()

    return types.void(pointer, types.int64, types.float32), code


def _inputs(module: Any) -> Any:
    """The alias scope of all that is read: without it LLVM guards every loop, and in-place calls run unvectorised.

    In-place is right all the same: the only store to an element needs the load of that element first.
    """
    domain = module.add_metadata(["aclnn"])
    return module.add_metadata([module.add_metadata(["aclnn inputs", domain])])


def widened(b: Any, value: Any, dtype: Any, lanes: int = 0) -> Any:
    """One element as float32, or a vector of so many."""
    if dtype == types.int16:
        if not _BY_INSTRUCTION:
            return _from_half(b, value, lanes)
        return b.fpext(b.bitcast(value, _kind(ir.HalfType(), lanes)), _kind(_SINGLE, lanes))
    if dtype == types.uint16:
        return b.bitcast(b.shl(b.zext(value, _kind(_WORD, lanes)), _all(16, lanes)), _kind(_SINGLE, lanes))
    return value


def narrowed(b: Any, value: Any, dtype: Any, lanes: int = 0) -> Any:
    """A float32 rounded to an element, or a vector of so many."""
    if dtype == types.int16:
        if not _BY_INSTRUCTION:
            return _to_half(b, value, lanes)
        return b.bitcast(b.fptrunc(value, _kind(ir.HalfType(), lanes)), _kind(ir.IntType(16), lanes))
    if dtype == types.uint16:
        bits = b.bitcast(value, _kind(_WORD, lanes))
        odd = b.and_(b.lshr(bits, _all(16, lanes)), _all(1, lanes))
        rounded = b.lshr(b.add(bits, b.add(_all(0x7FFF, lanes), odd)), _all(16, lanes))
        rounded = b.select(b.fcmp_unordered("uno", value, value), _all(0x7FC0, lanes), rounded)
        return b.trunc(rounded, _kind(ir.IntType(16), lanes))
    return value


def _from_half(b: Any, half: Any, lanes: int) -> Any:
    """float16 as float32 in plain arithmetic: moved into place, a number is 2^112 times too small, subnormal or not."""
    wide = b.zext(half, _kind(_WORD, lanes))
    size = b.shl(b.and_(wide, _all(0x7FFF, lanes)), _all(13, lanes))
    scale = b.bitcast(_all(0x77800000, lanes), _kind(_SINGLE, lanes))
    scaled = b.bitcast(b.fmul(b.bitcast(size, _kind(_SINGLE, lanes)), scale), size.type)
    special = b.icmp_unsigned(">=", size, _all(0x0F800000, lanes))  # Inf and NaN keep the largest exponent
    made = b.select(special, b.or_(size, _all(0x7F800000, lanes)), scaled)
    sign = b.shl(b.and_(wide, _all(0x8000, lanes)), _all(16, lanes))
    return b.bitcast(b.or_(made, sign), _kind(_SINGLE, lanes))


def _to_half(b: Any, value: Any, lanes: int) -> Any:
    """float32 rounded to float16 in plain arithmetic, to nearest even, the bits an instruction would give."""
    bits = b.bitcast(value, _kind(_WORD, lanes))
    size = b.and_(bits, _all(0x7FFFFFFF, lanes))
    odd = b.and_(b.lshr(size, _all(13, lanes)), _all(1, lanes))
    rebiased = b.add(b.add(size, _all(0xFFF - (112 << 23), lanes)), odd)
    normal = b.lshr(rebiased, _all(13, lanes))
    # Added to 1/2, what is below 2^-14 is rounded to a multiple of 2^-24, the least subnormal: their count is left.
    one_half = _all(0x3F000000, lanes)
    lifted = b.fadd(b.bitcast(size, _kind(_SINGLE, lanes)), b.bitcast(one_half, _kind(_SINGLE, lanes)))
    subnormal = b.sub(b.bitcast(lifted, size.type), one_half)
    made = b.select(b.icmp_unsigned("<", size, _all(0x38800000, lanes)), subnormal, normal)
    made = b.select(b.icmp_unsigned(">=", size, _all(0x477FF000, lanes)), _all(0x7C00, lanes), made)
    payload = b.and_(b.lshr(size, _all(13, lanes)), _all(0x1FF, lanes))
    not_a_number = b.or_(payload, _all(0x7E00, lanes))
    made = b.select(b.icmp_unsigned(">", size, _all(0x7F800000, lanes)), not_a_number, made)
    sign = b.and_(b.lshr(bits, _all(16, lanes)), _all(0x8000, lanes))
    return b.trunc(b.or_(made, sign), _kind(ir.IntType(16), lanes))


def _kind(element: Any, lanes: int) -> Any:
    return ir.VectorType(element, lanes) if lanes else element


def _all(number: int, lanes: int) -> Any:
    return ir.Constant(_kind(_WORD, lanes), [number] * lanes) if lanes else _WORD(number)


@intrinsic(prefer_literal=True)
def floats(context: Any, count: Any) -> Any:
    """`count` float32 elements on the stack; count is a constant."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        with b.goto_entry_block():
            made = b.alloca(_SINGLE, size=_WORD(count.literal_value))
            made.align = LINE
        return made

    return types.CPointer(types.float32)(count), code


@intrinsic
def tile_of(context: Any, like: Any) -> Any:
    """TILE elements on the stack, of the type `like` points to."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        with b.goto_entry_block():
            made = b.alloca(_ELEMENT[like.dtype], size=_WORD(TILE))
            made.align = LINE
        return made

    return like(like), code


@intrinsic
def stream(context: Any, out: Any, index: Any, source: Any, place: Any) -> Any:
    """Sends near elements, rounded to what they become, past the caches to a line that out[index] begins."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        to, at, near, place = args
        lanes = LINE // (2 if out.dtype != types.float32 else 4)
        loaded = b.load(b.bitcast(b.gep(near, [place]), _kind(_ELEMENT[source.dtype], lanes).as_pointer()), align=2)
        line = loaded if out == source else narrowed(b, widened(b, loaded, source.dtype, lanes), out.dtype, lanes)
        stored = b.store(line, b.bitcast(b.gep(to, [at]), line.type.as_pointer()), align=LINE)
        stored.set_metadata("nontemporal", b.module.add_metadata([_WORD(1)]))
        return ctx.get_dummy_value()

    return types.void(out, types.int64, source, types.int64), code


@intrinsic
def finish_streams(context: Any) -> Any:
    """Makes streamed lines visible to other threads."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        b.fence("seq_cst")
        return ctx.get_dummy_value()

    return types.void(), code
