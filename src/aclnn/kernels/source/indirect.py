"""Tiles of indirect matmuls, in LLVM's language: for any width of vectors.

c[i, j] = Σ x[base_i + offset_k] · b[k, j]. The first factor is read where it lies, element by element or in strips, so
that neither strides nor the taps of a convolution need a copy of it; the second is packed, [k][columns]; a result is
dense. There are no edges here: who packs fills them, who unpacks leaves them out.

Where b is of pairs, each of its elements, and each of x, has two terms of the sum in bfloat16: see source.pairs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import ROWS
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.loops import repeated
from aclnn.kernels.source.pairs import multiplied_pairs
from aclnn.kernels.source.vectors import TO_READ, ask_for

LANES, ACROSS, FUSED, _ = jit.vectors()
COLUMNS = LANES * ACROSS
FETCHES = LANES > 8  # whether there is time for it between the terms of a tile: with AVX2 all takes 2 to 5 % longer
AT_ONCE, NARROW_AT_ONCE = 2, 8  # terms per row between two looks at the counter, also of tiles with few sums
_BIT, _SMALL, _WORD, _FLOAT = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_NOTHING = ir.Constant(_VECTOR, [0.0] * LANES)


@intrinsic(prefer_literal=True)
def multiply(
    context: Any,
    count: Any,
    panels: Any,
    columns: Any,
    depth: Any,
    chain: Any,
    x: Any,
    bases: Any,
    offsets: Any,
    b: Any,
    to_next: Any,
    c: Any,
    add: Any,
    aside: Any,
    coming: Any,
    by: Any,
) -> Any:
    """A tile of `count` rows: c = Σ over k < depth, at least 1, or c += if `add`; columns are LANES, 2·LANES … COLUMNS.

    Count and panels are constants: so many panels of b, `to_next` apart, lie side by side in c. No more than `chain`
    terms are added one by one: their sums are added up in `aside`, which has room for a tile, and the result to c,
    so that the error of a long sum of equal terms hardly grows. It is no memory of this function, which LLVM would turn
    into registers that there are none of. Unless `by` is a constant, what is `coming` is fetched, `by` elements on for
    every AT_ONCE terms.
    """
    fetches = FETCHES and not isinstance(by, types.Literal)

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        _multiply(builder, count.literal_value, panels.literal_value, fetches, *args[2:])
        return ctx.get_dummy_value()

    sizes = types.int64, types.int64, types.int64
    more = types.int64, c, types.boolean, aside, coming, by
    return types.void(count, panels, *sizes, x, bases, offsets, b, *more), code


def _multiply(
    builder: Any, count: int, panels: int, fetches: bool, columns: Any, depth: Any, chain: Any, *of: Any
) -> None:
    x, bases, offsets, b, to_next, c, add, aside, coming, by = of
    rows = [builder.gep(x, [builder.load(builder.gep(bases, [_WORD(i)]))]) for i in range(count)]
    starts = [builder.mul(to_next, _WORD(p)) for p in range(panels)]
    for across in range(1, ACROSS + 1):
        with builder.if_then(builder.icmp_signed("==", columns, _WORD(across * LANES))):
            step, groups = _step(builder, across, rows, starts), _ending_together(count * panels * across, across)
            fetched = by if fetches and across == ACROSS else None
            sums = _add_chains(builder, step, groups, depth, (chain, chain), (offsets, b, coming), fetched, aside)
            _put(builder, sums, c, add)


def _ending_together(vectors: int, across: int) -> list[list[int]]:
    """Which sums of a tile end their chains at once: those of half of its columns, or all if there are few."""
    halves = 2 if across == ACROSS else 1
    return [[i for i in range(vectors) if i % across * halves // across == half] for half in range(halves)]


def _add_chains(
    builder: Any, step: Any, groups: Any, depth: Any, chains: Any, places: Any, fetched: Any, aside: Any
) -> Any:
    """The sums of all chains, the first and the others, as vectors. `groups`, one or two, say which end theirs at once:
    the second half a chain behind the first, so that sums are put away while others go on (0.97 of the time, with
    AVX2). Only a column may decide about that: bits would else depend on where in a tile a row stands."""
    first, chain = chains
    several, sums = builder.icmp_signed(">", depth, chain), [_NOTHING] * sum(map(len, groups))
    before, loop, behind = (builder.block, *(builder.append_basic_block() for _ in range(2)))
    half = builder.mul(builder.udiv(chain, _WORD(2 * AT_ONCE)), _WORD(AT_ONCE))
    parts = [half, builder.sub(chain, half)] if len(groups) == 2 else [first, chain]
    parts = [builder.select(several, part, depth) for part in parts]
    builder.branch(loop)
    builder.position_at_end(loop)
    again, *phis = (builder.phi(kind) for kind in (_BIT, *(value.type for value in (depth, *places, *sums))))
    parts = parts if len(groups) == 2 else [builder.select(again, parts[1], parts[0])]
    ends, (left, *state) = [], list(phis)
    for group, part in zip(groups, parts, strict=True):
        count = builder.select(builder.icmp_signed("<", left, part), left, part)
        state = _chain(builder, step, state, count, fetched)
        left, following = builder.sub(left, count), builder.append_basic_block()
        ends.append((builder.block, state[3:]))
        builder.cbranch(builder.icmp_signed(">", left, _WORD(0)), following, behind)
        builder.position_at_end(following)
        _store_all(builder, _added(builder, again, [state[3 + i] for i in group], aside, group), aside, group)
        state = [_NOTHING if i - 3 in group else value for i, value in enumerate(state)]
    firsts, nexts = (_BIT(0), depth, *places, *sums), (_BIT(1), left, *state)
    for phi, first, next_ in zip((again, *phis), firsts, nexts, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(next_, builder.block)
    builder.branch(loop)
    builder.position_at_end(behind)
    of_ends = [_either(builder, [(block, made[i]) for block, made in ends]) for i in range(len(sums))]
    return _added(builder, several, of_ends, aside)


def _either(builder: Any, ways: Any) -> Any:
    """The value of the way by which a block was reached."""
    phi = builder.phi(ways[0][1].type)
    for block, value in ways:
        phi.add_incoming(value, block)
    return phi


def _chain(builder: Any, step: Any, state: Any, count: Any, fetched: Any) -> Any:
    """Places and sums after `count` terms."""
    at_once = NARROW_AT_ONCE if 2 * (len(state) - 3) <= ROWS * ACROSS else AT_ONCE  # while there are registers for that

    def fetching(i: Any, state: Any) -> Any:
        offsets, b, coming, *sums = step(i, state)
        ask_for(builder, coming, TO_READ)
        return [offsets, b, builder.gep(coming, [fetched]), *sums]

    steps = [step] * at_once if fetched is None else [fetching, *[step] * (at_once - 1)]
    state = repeated(builder, builder.udiv(count, _WORD(at_once)), state, *steps)
    return repeated(builder, builder.urem(count, _WORD(at_once)), state, step)


def _step(builder: Any, across: int, rows: Any, panels: Any) -> Any:
    """What adds the terms of one k: offsets, b, what is coming and sums before it, and after it."""

    def step(_: Any, state: Any) -> Any:
        offset_at, b_row, coming, *sums = state
        offset = builder.load(offset_at)
        places = [builder.add(start, _WORD(v * LANES)) for start in panels for v in range(across)]
        right = [builder.load(vector_at(builder, b_row, place), align=4) for place in places]
        made = []
        for i, row in enumerate(rows):
            factor = _everywhere(builder, builder.load(builder.gep(row, [offset])))
            before = sums[i * len(right) : (i + 1) * len(right)]
            made += [_multiplied(builder, factor, b, c) for b, c in zip(right, before, strict=True)]
        return [builder.gep(offset_at, [_WORD(1)]), builder.gep(b_row, [_WORD(across * LANES)]), coming, *made]

    return step


@intrinsic(prefer_literal=True)
def multiply_strips(
    context: Any,
    count: Any,
    strips: Any,
    depth: Any,
    first: Any,
    chain: Any,
    x: Any,
    starts: Any,
    offsets: Any,
    b: Any,
    columns: Any,
    c: Any,
    add: Any,
    aside: Any,
) -> Any:
    """A tile with its factors exchanged: c[m, j] = Σ b[k, m] · x[start_j + offset_k] for `count` of b's columns.
    What is read as vectors are strips of x, LANES elements side by side, 1 … ACROSS of them, which lie side by side in
    c. The `first` chain may be shorter than the others, so that sums are those of `multiply`, to the bit."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = count.literal_value
        strips_, depth_, first_, chain_, x_, starts_, offsets_, b_, columns_, c_, add_, aside_ = args[1:]
        begins = [builder.gep(x_, [builder.load(builder.gep(starts_, [_WORD(j)]))]) for j in range(ACROSS)]
        for across in range(1, ACROSS + 1):
            with builder.if_then(builder.icmp_signed("==", strips_, _WORD(across))):
                step, places = _strip_step(builder, rows, columns_, begins[:across]), (offsets_, b_, b_)
                all_of_them, lengths = [[*range(rows * across)]], (first_, chain_)
                sums = _add_chains(builder, step, all_of_them, depth_, lengths, places, None, aside_)
                _put(builder, sums, c_, add_)
        return ctx.get_dummy_value()

    whole = types.int64
    return types.void(count, *[whole] * 4, x, starts, offsets, b, whole, c, types.boolean, aside), code


def _strip_step(builder: Any, rows: int, columns: Any, begins: Any) -> Any:
    """What adds the terms of one k, as _step does."""

    def step(_: Any, state: Any) -> Any:
        offset_at, b_row, coming, *sums = state
        offset = builder.load(offset_at)
        right = [builder.load(vector_at(builder, begin, offset), align=4) for begin in begins]
        factors = [_everywhere(builder, builder.load(builder.gep(b_row, [_WORD(m)]))) for m in range(rows)]
        pairs = [(factor, vector) for factor in factors for vector in right]
        made = [_multiplied(builder, *pair, before) for pair, before in zip(pairs, sums, strict=True)]
        return [builder.gep(offset_at, [_WORD(1)]), builder.gep(b_row, [columns]), coming, *made]

    return step


def _multiplied(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c. Without an instruction for both at once, asking for one rounding would call a function per element."""
    if (a.type, b.type) != (_VECTOR, _VECTOR):
        return multiplied_pairs(builder, a, b, c)
    if not FUSED:
        return builder.fadd(builder.fmul(a, b), c)
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32"), [a, b, c])


def _added(builder: Any, wanted: Any, vectors: Any, memory: Any, places: Any = None) -> Any:
    """The vectors, or their sums with those in memory if that is wanted; they have these places there, or the first."""
    before = builder.block
    with builder.if_then(wanted):
        sums = [
            builder.fadd(builder.load(vector_at(builder, memory, _WORD(i * LANES)), align=4), vector)
            for i, vector in zip(places or range(len(vectors)), vectors, strict=True)
        ]
        there = builder.block
    merged = []
    for vector, total in zip(vectors, sums, strict=True):
        phi = builder.phi(_VECTOR)
        phi.add_incoming(vector, before)
        phi.add_incoming(total, there)
        merged.append(phi)
    return merged


def _store_all(builder: Any, vectors: Any, memory: Any, places: Any = None) -> None:
    for i, vector in zip(places or range(len(vectors)), vectors, strict=True):
        builder.store(vector, vector_at(builder, memory, _WORD(i * LANES)), align=4)


def _put(builder: Any, sums: Any, c: Any, add: Any) -> None:
    """c = sums, or c += sums; never −0, so that bits do not depend on which sums of zeros are left out."""
    _store_all(builder, _added(builder, add, [builder.fadd(vector, _NOTHING) for vector in sums], c), c)


@inner
def half_of(chain: int) -> int:
    """How long the first chain of the columns is that end theirs before the others."""
    return chain // (2 * AT_ONCE) * AT_ONCE


@inner
def whole_vectors(channels: int) -> int:
    """As many columns as so many channels take."""
    return -(-channels // LANES) * LANES


@intrinsic(prefer_literal=True)
def words(context: Any, count: Any) -> Any:
    """`count` int64 on the stack; count is a constant."""

    def code(ctx: Any, builder: Any, sig: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            return builder.alloca(_WORD, size=_WORD(count.literal_value))

    return types.CPointer(types.int64)(count), code


def vector_at(builder: Any, pointer: Any, start: Any) -> Any:
    """Where LANES elements begin, as a vector."""
    there = builder.gep(pointer, [start])
    return builder.bitcast(there, ir.VectorType(pointer.type.pointee, LANES).as_pointer())


def _everywhere(builder: Any, element: Any) -> Any:
    """A vector of one element."""
    none = ir.Constant(ir.VectorType(element.type, LANES), ir.Undefined)
    first = builder.insert_element(none, element, _SMALL(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(_SMALL, LANES), [0] * LANES))
