"""Calling functions by address: other kernels, libgomp."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.native.abi import HOW_MANY, WHO
from aclnn.kernels.source.helpers import inner

_WORD, _SMALL = ir.IntType(64), ir.IntType(32)


@intrinsic
def call_entry(context: Any, function: Any, block: Any) -> Any:
    """function(block)"""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_WORD])
        b.call(b.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return ctx.get_dummy_value()

    return types.void(types.int64, types.int64), code


@intrinsic
def call_function(context: Any, function: Any, one: Any, other: Any) -> Any:
    """function(one, other), both words, of which it may take fewer: a word."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.call(b.inttoptr(args[0], ir.FunctionType(_WORD, [_WORD, _WORD]).as_pointer()), args[1:])

    return types.int64(*[types.int64] * 3), code


@intrinsic
def call_parallel(context: Any, function: Any, entry: Any, block: Any, threads: Any) -> Any:
    """GOMP_parallel(entry, block, threads, 0)"""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_WORD, _WORD, _SMALL, _SMALL])
        given = [args[1], args[2], b.trunc(args[3], _SMALL), _SMALL(0)]
        b.call(b.inttoptr(args[0], kind.as_pointer()), given)
        return ctx.get_dummy_value()

    return types.void(*[types.int64] * 4), code


@inner
def launch(parallel: int, entry: int, block: int, threads: int) -> None:
    """Runs a kernel on `threads` threads: on this one alone if it is one. Its block says the same."""
    if threads == 1:
        call_entry(entry, block)
    else:
        call_parallel(parallel, entry, block, threads)


@intrinsic
def pointer(context: Any, address: Any) -> Any:
    """The int64 numbers at an address."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.inttoptr(args[0], _WORD.as_pointer())

    return types.CPointer(types.int64)(types.int64), code


@inner
def begin_block(block: Any, items: int) -> None:
    """A block for this thread alone; the arguments are yet to come."""
    block[0] = block[1] = items
    block[WHO] = block[HOW_MANY] = 0


@intrinsic
def address_of(context: Any, pointer: Any) -> Any:
    """Where a pointer leads."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.ptrtoint(args[0], _WORD)

    return types.int64(pointer), code


@intrinsic
def pointer_like(context: Any, other: Any, address: Any) -> Any:
    """The elements at an address, which are as those of another pointer."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.inttoptr(args[1], args[0].type)

    return other(other, types.int64), code


@intrinsic
def shifted(context: Any, pointer: Any, count: Any) -> Any:
    """A pointer to `count` elements further on."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), code
