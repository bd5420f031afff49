"""A tile of a matrix product, written in LLVM's language: its sums stay in registers, which loops do not promise.

With 6 rows and four vectors of 16, sums take 24 of the 32 registers, a row of b four, and elements of a come and go in
one more: 10 loads for 24 multiplications with additions, where a processor does as many of the one as of the other.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from aclnn.kernels.nopython.agreed import TILE_COLUMNS, TILE_ROWS
from aclnn.kernels.nopython.loops import repeated

LANES = 16  # of a vector
HEIGHTS, WIDTHS = (1, 3, TILE_ROWS), (1, 2, TILE_COLUMNS // LANES)  # rows and vectors of tiles that have their own code
AT_ONCE = 4  # rows of b between two looks at the counter
_SMALL, _WORD, _FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)


@intrinsic
def tile(
    context: Any,
    height: Any,
    width: Any,
    depth: Any,
    a: Any,
    a_down: Any,
    a_across: Any,
    b: Any,
    c: Any,
    c_down: Any,
    add: Any,
) -> Any:
    """c[i, j] = Σ a[k, i]·b[k, j] over k < depth, or += if `add`, for i < height and j < width: at most a tile.

    Height is one of HEIGHTS, width and depth are at least 1. a[k, i] is k·a_down + i·a_across elements behind the
    first, b is a panel as wide as a tile, and the rows of c are `c_down` elements apart.
    """

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        height, width, depth, a, a_down, a_across, b, c, c_down, add = args
        done = builder.append_basic_block("tiled")
        for vectors in WIDTHS:
            with builder.if_then(builder.icmp_signed("<=", width, _WORD(vectors * LANES))):
                for rows in HEIGHTS:
                    with builder.if_then(builder.icmp_signed("==", height, _WORD(rows))):
                        starts = [builder.mul(a_across, _WORD(i)) for i in range(rows)]
                        _fetch(builder, rows, vectors, c, c_down)
                        sums = _sums(builder, vectors, depth, a, starts, a_down, b)
                        _put(builder, sums, width, c, c_down, add)
                        builder.branch(done)
                builder.branch(done)
        builder.branch(done)
        builder.position_at_end(done)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(whole, whole, whole, a, whole, whole, b, c, whole, types.boolean), code


def _sums(builder: Any, vectors: int, depth: Any, a: Any, starts: Any, a_down: Any, b: Any) -> Any:
    """Σ a[k, i]·b[k, …] as vectors, by row and vector."""
    fused = get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), "llvm.fma.v16f32")

    def step(_: Any, state: Any) -> Any:
        a_row, b_row, *sums = state
        right = [builder.load(_vector_at(builder, b_row, _WORD(v * LANES)), align=4) for v in range(vectors)]
        made = []
        for i, start in enumerate(starts):
            factor = _everywhere(builder, builder.load(builder.gep(a_row, [start])), LANES)
            made += [builder.call(fused, [factor, right[v], sums[i * vectors + v]]) for v in range(vectors)]
        return [builder.gep(a_row, [a_down]), builder.gep(b_row, [_WORD(TILE_COLUMNS)]), *made]

    state = [a, b, *[ir.Constant(_VECTOR, [0.0] * LANES)] * (len(starts) * vectors)]
    if (len(starts), vectors) == (HEIGHTS[-1], WIDTHS[-1]):  # the others are rare, and code takes time to make
        state = repeated(builder, builder.sdiv(depth, _WORD(AT_ONCE)), state, step, AT_ONCE)
        depth = builder.srem(depth, _WORD(AT_ONCE))
    _, _, *sums = repeated(builder, depth, state, step)
    return [sums[i * vectors : (i + 1) * vectors] for i in range(len(starts))]


def _fetch(builder: Any, rows: int, vectors: int, c: Any, c_down: Any) -> None:
    """Asks for the memory of a tile of c, to write there: it comes while the sums are made."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _SMALL, _SMALL, _SMALL])
    fetch = get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    to_write, into_all_caches, data = _SMALL(1), _SMALL(3), _SMALL(1)
    for i in range(rows):
        for v in range(vectors):
            at = builder.gep(c, [builder.add(builder.mul(c_down, _WORD(i)), _WORD(v * LANES))])
            builder.call(fetch, [builder.bitcast(at, byte), to_write, into_all_caches, data])


def _put(builder: Any, sums: Any, width: Any, c: Any, c_down: Any, add: Any) -> None:
    """c = sums, or c += sums, inside of width."""
    for i, row in enumerate(sums):
        for v, vector in enumerate(row):
            to = _vector_at(builder, c, builder.add(builder.mul(c_down, _WORD(i)), _WORD(v * LANES)))
            mask = _below(builder, builder.sub(width, _WORD(v * LANES)), LANES)
            nowhere = ir.Constant(mask.type, [0] * LANES)
            known = _masked_load(builder, to, builder.select(add, mask, nowhere))
            _masked_store(builder, builder.fadd(known, vector), to, mask)


@intrinsic(prefer_literal=True)
def copy_row(context: Any, width: Any, count: Any, source: Any, start: Any, target: Any, to: Any) -> Any:
    """`width` elements, a constant: the first `count` are source's, the others 0."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, count, source, start, target, to = args
        lanes = 8 if width.literal_value <= 8 else LANES  # the shorter, the fewer cross from line to line
        for first in range(0, width.literal_value, lanes):
            mask = _below(builder, builder.sub(count, _WORD(first)), lanes)
            kept = ir.Constant(mask.type, [first + lane < width.literal_value for lane in range(lanes)])
            from_ = _vector_at(builder, source, builder.add(start, _WORD(first)), lanes)
            loaded = _masked_load(builder, from_, builder.and_(mask, kept))
            _masked_store(builder, loaded, _vector_at(builder, target, builder.add(to, _WORD(first)), lanes), kept)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(width, whole, source, whole, target, whole), code


@intrinsic
def copy_column(context: Any, count: Any, source: Any, start: Any, step: Any, target: Any, to: Any) -> Any:
    """LANES elements that lie `step` apart, side by side; if they are only `count`, the last stands for the others."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        count, source, start, step, target, to = args
        last = builder.sub(count, _WORD(1))
        vector = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(LANES):
            there = builder.select(builder.icmp_signed("<", _WORD(lane), last), _WORD(lane), last)
            element = builder.load(builder.gep(source, [builder.add(start, builder.mul(step, there))]))
            vector = builder.insert_element(vector, element, _SMALL(lane))
        builder.store(vector, _vector_at(builder, target, to), align=4)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(whole, source, whole, whole, target, whole), code


@intrinsic
def shifted(context: Any, pointer: Any, count: Any) -> Any:
    """A pointer to `count` elements further on."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), code


def _vector_at(builder: Any, pointer: Any, start: Any, lanes: int = LANES) -> Any:
    return builder.bitcast(builder.gep(pointer, [start]), ir.VectorType(_FLOAT, lanes).as_pointer())


def _everywhere(builder: Any, element: Any, lanes: int) -> Any:
    """A vector of one element."""
    none = ir.Constant(ir.VectorType(element.type, lanes), ir.Undefined)
    first = builder.insert_element(none, element, _SMALL(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(_SMALL, lanes), [0] * lanes))


def _below(builder: Any, count: Any, lanes: int) -> Any:
    """The mask of the first `count` lanes."""
    numbers = ir.Constant(ir.VectorType(_WORD, lanes), list(range(lanes)))
    return builder.icmp_signed("<", numbers, _everywhere(builder, count, lanes))


def _masked_load(builder: Any, pointer: Any, mask: Any) -> Any:
    """What the mask lets through, zeros elsewhere; memory behind the mask is not touched."""
    vector = ir.VectorType(_FLOAT, mask.type.count)
    kind = ir.FunctionType(vector, [pointer.type, _SMALL, mask.type, vector])
    load = get_or_insert_function(builder.module, kind, f"llvm.masked.load.v{vector.count}f32.p0")
    return builder.call(load, [pointer, _SMALL(4), mask, ir.Constant(vector, [0.0] * vector.count)])


def _masked_store(builder: Any, value: Any, pointer: Any, mask: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [value.type, pointer.type, _SMALL, mask.type])
    store = get_or_insert_function(builder.module, kind, f"llvm.masked.store.v{value.type.count}f32.p0")
    builder.call(store, [value, pointer, _SMALL(4), mask])
