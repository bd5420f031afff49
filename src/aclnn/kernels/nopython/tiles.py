"""A tile of a matrix product, written in LLVM's language: its sums stay in registers, which loops do not promise.

With 14 rows and two vectors of 16, sums take 28 of the 32 registers, a row of b two, and elements of a come and go in
the last: 16 loads for 28 multiplications with additions, of which a processor does no more per cycle than of loads.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from aclnn.kernels.nopython.agreed import TILE_COLUMNS, TILE_ROWS

LANES = 16  # of a vector
HEIGHTS = 4, 8, TILE_ROWS  # of tiles there is code for: one that has fewer rows takes the next
_VECTORS = range(TILE_COLUMNS // LANES)
_SMALL, _WORD = ir.IntType(32), ir.IntType(64)
_VECTOR, _MASK = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(1), LANES)
_ZEROS, _NOWHERE = ir.Constant(_VECTOR, [0.0] * LANES), ir.Constant(_MASK, [0] * LANES)


@intrinsic
def tile(context: Any, height: Any, width: Any, depth: Any, a: Any, b: Any, c: Any, c_step: Any, add: Any) -> Any:
    """c[i, j] = Σ a[k, i]·b[k, j] over k < depth, or += if `add`, for i < height and j < width: at most a tile.

    a and b are panels, height and depth are at least 1, and the rows of c are `c_step` elements apart.
    """

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        height, width, depth, a, b, c, c_step, add = args
        done = builder.append_basic_block("tiled")
        for rows in HEIGHTS:
            with builder.if_then(builder.icmp_signed("<=", height, _WORD(rows))):
                sums = _sums(builder, rows, depth, a, b)
                _put(builder, sums, height, width, c, c_step, add)
                builder.branch(done)
        builder.branch(done)
        builder.position_at_end(done)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(whole, whole, whole, a, b, c, whole, types.boolean), code


def _sums(builder: Any, rows: int, depth: Any, a: Any, b: Any) -> Any:
    """Σ a[k, i]·b[k, …] as vectors, by row and vector; leaves the builder behind the loop."""
    before, loop = builder.block, builder.append_basic_block("depth")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(_WORD)
    sums = [[builder.phi(_VECTOR) for _ in _VECTORS] for _ in range(rows)]
    a_row, b_row = builder.mul(k, _WORD(TILE_ROWS)), builder.mul(k, _WORD(TILE_COLUMNS))
    right = [builder.load(_vector_at(builder, b, b_row, v * LANES), align=4) for v in _VECTORS]
    fused = get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), "llvm.fma.v16f32")
    made = []
    for i in range(rows):
        factor = _everywhere(builder, builder.load(builder.gep(a, [builder.add(a_row, _WORD(i))])))
        made.append([builder.call(fused, [factor, right[v], sums[i][v]]) for v in _VECTORS])
    following = builder.add(k, _WORD(1))
    for phi, start, after in [(k, _WORD(0), following)] + [
        (sums[i][v], _ZEROS, made[i][v]) for i in range(rows) for v in _VECTORS
    ]:
        phi.add_incoming(start, before)
        phi.add_incoming(after, loop)
    behind = builder.append_basic_block("summed")
    builder.cbranch(builder.icmp_signed("<", following, depth), loop, behind)
    builder.position_at_end(behind)
    return made


def _put(builder: Any, sums: Any, height: Any, width: Any, c: Any, c_step: Any, add: Any) -> None:
    """c = sums, or c += sums, inside of height and width."""
    masks = [_below(builder, builder.sub(width, _WORD(v * LANES))) for v in _VECTORS]
    for i, row in enumerate(sums):
        inside = builder.icmp_signed("<", _WORD(i), height)
        for v in _VECTORS:
            to = _vector_at(builder, c, builder.mul(c_step, _WORD(i)), v * LANES)
            mask = builder.select(inside, masks[v], _NOWHERE)
            known = _masked_load(builder, to, builder.select(add, mask, _NOWHERE))
            _masked_store(builder, builder.fadd(known, row[v]), to, mask)


@intrinsic(prefer_literal=True)
def copy_row(context: Any, width: Any, count: Any, source: Any, start: Any, target: Any, to: Any) -> Any:
    """`width` elements, a constant: the first `count` are source's, the others 0."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, count, source, start, target, to = args
        for first in range(0, width.literal_value, LANES):
            mask = _below(builder, builder.sub(count, _WORD(first)))
            loaded = _masked_load(builder, _vector_at(builder, source, start, first), mask)
            kept = ir.Constant(_MASK, [first + lane < width.literal_value for lane in range(LANES)])
            _masked_store(builder, loaded, _vector_at(builder, target, to, first), kept)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(width, whole, source, whole, target, whole), code


@intrinsic
def shifted(context: Any, pointer: Any, count: Any) -> Any:
    """A pointer to `count` elements further on."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), code


def _vector_at(builder: Any, pointer: Any, start: Any, further: int) -> Any:
    return builder.bitcast(builder.gep(pointer, [builder.add(start, _WORD(further))]), _VECTOR.as_pointer())


def _everywhere(builder: Any, element: Any) -> Any:
    """A vector of one element."""
    none = ir.Constant(ir.VectorType(element.type, LANES), ir.Undefined)
    first = builder.insert_element(none, element, _SMALL(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(_SMALL, LANES), [0] * LANES))


def _below(builder: Any, count: Any) -> Any:
    """The mask of the first `count` lanes."""
    lanes = ir.Constant(ir.VectorType(_WORD, LANES), list(range(LANES)))
    return builder.icmp_signed("<", lanes, _everywhere(builder, count))


def _masked_load(builder: Any, pointer: Any, mask: Any) -> Any:
    """What the mask lets through, zeros elsewhere; memory behind the mask is not touched."""
    kind = ir.FunctionType(_VECTOR, [pointer.type, _SMALL, _MASK, _VECTOR])
    load = get_or_insert_function(builder.module, kind, "llvm.masked.load.v16f32.p0")
    return builder.call(load, [pointer, _SMALL(4), mask, _ZEROS])


def _masked_store(builder: Any, value: Any, pointer: Any, mask: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_VECTOR, pointer.type, _SMALL, _MASK])
    store = get_or_insert_function(builder.module, kind, "llvm.masked.store.v16f32.p0")
    builder.call(store, [value, pointer, _SMALL(4), mask])
