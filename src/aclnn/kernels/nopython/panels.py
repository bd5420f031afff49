"""Tiles of matrix products and the panels they read, in LLVM's language: for any width of vectors.

A tile has TALL or LOW rows and COLUMNS columns. Both factors are packed, a as [k][rows] and b as [k][columns], and a
result is dense, so that there are no edges here: who packs fills them with anything, who unpacks leaves them out.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, register_jitable

from aclnn.kernels import jit
from aclnn.kernels.nopython.agreed import LOW, TALL

inner = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For helpers that Python never calls: they compile in nine tenths of the time."""

LANES, ACROSS, FUSED = jit.vectors()
COLUMNS = LANES * ACROSS
AT_ONCE = 4  # rows of b between two looks at the counter
_SMALL, _WORD, _FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_NOTHING = ir.Constant(_VECTOR, [0.0] * LANES)


@intrinsic
def multiply(context: Any, rows: Any, depth: Any, chain: Any, a: Any, b: Any, c: Any, add: Any) -> Any:
    """c[i, j] = Σ a[k, i]·b[k, j] over k < depth, at least 1, or += if `add`; rows is TALL or LOW.

    No more than `chain` products are added one by one: their sums are added up beside them, and the result to c, so
    that the error of a long sum of equal terms hardly grows.
    """

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows, depth, chain, a, b, c, add = args
        with builder.goto_entry_block():
            aside = builder.alloca(_VECTOR, size=_WORD(TALL * ACROSS))
            aside.align = 64
        for height in (TALL, LOW):
            with builder.if_then(builder.icmp_signed("==", rows, _WORD(height))):
                for i in range(height * ACROSS):
                    builder.store(_NOTHING, builder.gep(aside, [_WORD(i)]))
                _add_chains(builder, height, depth, chain, a, b, aside)
                _put(builder, height, aside, c, add)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(whole, whole, whole, a, b, c, types.boolean), code


def _add_chains(builder: Any, height: int, depth: Any, chain: Any, a: Any, b: Any, aside: Any) -> None:
    """aside += the sums of all chains, one after the other."""
    before, loop, behind = builder.block, *(builder.append_basic_block(name) for name in ("chain", "chained"))
    builder.branch(loop)
    builder.position_at_end(loop)
    left, a_now, b_now = (builder.phi(value.type) for value in (depth, a, b))
    count = builder.select(builder.icmp_signed("<", left, chain), left, chain)
    a_next, b_next, *sums = _chain(builder, height, count, a_now, b_now)
    for i, vector in enumerate(sums):
        place = builder.gep(aside, [_WORD(i)])
        builder.store(builder.fadd(builder.load(place, align=4 * LANES), vector), place, align=4 * LANES)
    rest = builder.sub(left, count)
    for phi, first, following in ((left, depth, rest), (a_now, a, a_next), (b_now, b, b_next)):
        phi.add_incoming(first, before)
        phi.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed(">", rest, _WORD(0)), loop, behind)
    builder.position_at_end(behind)


def _chain(builder: Any, height: int, count: Any, a: Any, b: Any) -> Any:
    """Where a and b go on behind `count` rows, and the sums over these as vectors."""

    def step(state: Any) -> Any:
        a_row, b_row, *sums = state
        right = [builder.load(_vector_at(builder, b_row, _WORD(v * LANES)), align=4) for v in range(ACROSS)]
        made = []
        for i in range(height):
            factor = _everywhere(builder, builder.load(builder.gep(a_row, [_WORD(i)])))
            made += [_multiplied(builder, factor, right[v], sums[i * ACROSS + v]) for v in range(ACROSS)]
        return [builder.gep(a_row, [_WORD(height)]), builder.gep(b_row, [_WORD(COLUMNS)]), *made]

    state = [a, b, *[_NOTHING] * (height * ACROSS)]
    state = _repeated(builder, builder.sdiv(count, _WORD(AT_ONCE)), state, [step] * AT_ONCE)
    return _repeated(builder, builder.srem(count, _WORD(AT_ONCE)), state, [step])


def _multiplied(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c. Without an instruction for both at once, asking for one rounding would call a function per element."""
    if not FUSED:
        return builder.fadd(builder.fmul(a, b), c)
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32"), [a, b, c])


def _repeated(builder: Any, count: Any, state: Any, steps: Any) -> Any:
    """The state after the steps were done `count` times one after the other; leaves the builder behind the loop."""
    before, loop, behind = builder.block, *(builder.append_basic_block(name) for name in ("depth", "summed"))
    builder.cbranch(builder.icmp_signed(">", count, _WORD(0)), loop, behind)
    builder.position_at_end(loop)
    turn, *now = (builder.phi(value.type) for value in (count, *state))
    after = now
    for step in steps:
        after = step(after)
    following = builder.add(turn, _WORD(1))
    for phi, first, next_ in zip((turn, *now), (_WORD(0), *state), (following, *after), strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(next_, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, behind)
    builder.position_at_end(behind)
    ends = [builder.phi(value.type) for value in state]
    for phi, first, last in zip(ends, state, after, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(last, loop)
    return ends


def _put(builder: Any, height: int, aside: Any, c: Any, add: Any) -> None:
    """c = aside, or c += aside."""
    for adds in (True, False):
        with builder.if_then(add if adds else builder.not_(add)):
            for i in range(height * ACROSS):
                vector = builder.load(builder.gep(aside, [_WORD(i)]), align=4 * LANES)
                to = _vector_at(builder, c, _WORD(i * LANES))
                builder.store(builder.fadd(builder.load(to, align=4), vector) if adds else vector, to, align=4)


@intrinsic
def copy_runs(
    context: Any,
    source: Any,
    places: Any,
    rows: Any,
    firsts: Any,
    seconds: Any,
    splits: Any,
    whole: Any,
    target: Any,
) -> Any:
    """A panel of b from rows of neighbours. Row k begins at places[k]; vector v of it has, up to lane splits[v], what
    is at firsts[v], then what is at seconds[v]: both are read from end to end. `whole`: no vector has two parts."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, places, rows, firsts, seconds, splits, whole, target = args
        lists = [
            [builder.load(builder.gep(numbers, [_WORD(v)])) for v in range(ACROSS)]
            for numbers in (firsts, seconds, splits)
        ]
        lanes = ir.Constant(ir.VectorType(_WORD, LANES), list(range(LANES)))
        masks = [builder.icmp_signed("<", lanes, _everywhere(builder, split)) for split in lists[2]]

        def step(blends: bool) -> Any:
            def copy(state: Any) -> Any:
                place, to = state
                row = builder.gep(source, [builder.load(place)])
                for v in range(ACROSS):
                    vector = builder.load(_vector_at(builder, row, lists[0][v]), align=4)
                    if blends:
                        other = builder.load(_vector_at(builder, row, lists[1][v]), align=4)
                        vector = builder.select(masks[v], vector, other)
                    builder.store(vector, _vector_at(builder, to, _WORD(v * LANES)), align=4)
                return [builder.gep(place, [_WORD(1)]), builder.gep(to, [_WORD(COLUMNS)])]

            return copy

        with builder.if_else(whole) as (then, otherwise):
            with then:
                _repeated(builder, rows, [places, target], [step(False)])
            with otherwise:
                _repeated(builder, rows, [places, target], [step(True)])
        return ctx.get_dummy_value()

    return types.void(source, places, types.int64, firsts, seconds, splits, types.boolean, target), code


@intrinsic
def turn(context: Any, source: Any, starts: Any, shift: Any, target: Any, to: Any, pitch: Any) -> Any:
    """LANES columns of LANES elements each, at starts[j] + shift, as LANES rows that lie `pitch` apart."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, starts, shift, target, to, pitch = args
        columns = []
        for j in range(LANES):
            start = builder.add(builder.load(builder.gep(starts, [_WORD(j)])), shift)
            columns.append(builder.load(_vector_at(builder, source, start), align=4))
        for i, row in enumerate(_transposed(builder, columns)):
            builder.store(row, _vector_at(builder, target, builder.add(to, builder.mul(pitch, _WORD(i)))), align=4)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(source, starts, whole, target, whole, whole), code


def _transposed(builder: Any, rows: Any) -> Any:
    """A square of vectors, turned: pairs that lie `distance` apart exchange their halves, at every distance."""
    distance = 1
    while distance < LANES:
        one = [lane if not lane & distance else lane - distance + LANES for lane in range(LANES)]
        other = [lane + distance if not lane & distance else lane + LANES for lane in range(LANES)]
        made = list(rows)
        for i in range(LANES):
            if not i & distance:
                made[i], made[i + distance] = (
                    builder.shuffle_vector(
                        rows[i], rows[i + distance], ir.Constant(ir.VectorType(_SMALL, LANES), which)
                    )
                    for which in (one, other)
                )
        rows, distance = made, 2 * distance
    return rows


@intrinsic(prefer_literal=True)
def words(context: Any, count: Any) -> Any:
    """`count` int64 on the stack; count is a constant."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            return builder.alloca(_WORD, size=_WORD(count.literal_value))

    return types.CPointer(types.int64)(count), code


def _vector_at(builder: Any, pointer: Any, start: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [start]), _VECTOR.as_pointer())


def _everywhere(builder: Any, element: Any) -> Any:
    """A vector of one element."""
    none = ir.Constant(ir.VectorType(element.type, LANES), ir.Undefined)
    first = builder.insert_element(none, element, _SMALL(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(_SMALL, LANES), [0] * LANES))
