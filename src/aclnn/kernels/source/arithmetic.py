"""float32 functions that LLVM vectorises, right at NaN, ±Inf and the subnormals, the same in vectors and remainders.

No fast-math: a multiplication and a sum become one fma only where the source says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from aclnn.kernels.native import jit
from aclnn.kernels.source.helpers import inner

f32 = np.float32
FUSED = jit.vectors().fused
NOT_FINITE = np.int32(0x7F800000)  # the exponent of NaN and Inf


@intrinsic
def use_widest_vectors(context: Any) -> Any:
    """512-bit vectors for the loops of the function this stands in (25–30 % faster where they exist).

    A loop is vectorised where LLVM has put it: of a helper that becomes part of others, these must say so.
    """

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        set.add(b.function.attributes, '"prefer-vector-width"="512"')  # llvmlite's own add() takes names it knows
        return ctx.get_dummy_value()

    return types.void(), code


@intrinsic
def lie_apart(context: Any) -> Any:
    """Promises that nothing which the kernel this stands in writes is met by another of its pointers: its loops need
    not look, row after row, whether any two of them overlap."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        for argument in b.function.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        return ctx.get_dummy_value()

    return types.void(), code


@intrinsic
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding. Without the instruction it would be a call of the C library for every element: float64
    holds a·b exactly, and its own rounding of the sum is 2²⁹ times finer."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        if FUSED:
            return b.fma(*args)
        x, y, z = (b.fpext(value, ir.DoubleType()) for value in args)
        return b.fptrunc(b.fadd(b.fmul(x, y), z), ir.FloatType())

    return types.float32(types.float32, types.float32, types.float32), code


@intrinsic
def bits_of(context: Any, value: Any) -> Any:
    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), code


@intrinsic
def float_of(context: Any, bits: Any) -> Any:
    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        return b.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), code


@intrinsic
def exponent_of(context: Any, value: Any) -> Any:
    """The bits of a float32 that are NOT_FINITE if it is not; of a pair of bfloat16, those of the larger one."""
    number = ir.IntType(32)

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        bits = args[0] if value == types.uint32 else b.bitcast(args[0], number)
        upper = b.and_(bits, number(int(NOT_FINITE)))
        if value != types.uint32:
            return upper
        lower = b.and_(b.shl(bits, number(16)), number(int(NOT_FINITE)))
        return b.select(b.icmp_signed(">", lower, upper), lower, upper)

    return types.int32(value), code


@inner
def is_strange(elements: Any, count: int) -> bool:
    """Whether one of them is not finite."""
    worst = np.int32(0)
    for i in range(count):
        worst = max(worst, exponent_of(elements[i]))
    strange: bool = worst == NOT_FINITE
    return strange


@inner
def exp(x: Any) -> Any:
    """e^x within 1.2 units in the last place, down into the subnormals; exp(−inf) = 0, exp(inf) = inf, NaN stays.

    x = n·ln2 + r with |r| ≤ ln2/2; adding 1.5·2²³ rounds to an integer and leaves it in the low bits, so that no
    conversion sees NaN. 2^n is applied in two halves, which neither overflows nor loses a subnormal early.
    """
    p, one_half, other_half = _reduced(x)
    power = _power_of_two(one_half)
    return fma(p, power, power) * _power_of_two(other_half)


@inner
def exp_of_negative(x: Any) -> Any:
    """e^x as above where x ≤ 0 or NaN, in two thirds of the steps; of other x it makes no sense."""
    return large_exp_of_negative(x) * f32(2.0**-65)


@inner
def large_exp_of_negative(x: Any) -> Any:
    """The same times 2^65. The low bits of `shifted` are n + 65 + 127: moved up they are 2^(n+65), no subnormal, and 0
    at −133, where n is −192."""
    x = f32(-133.0) if x < f32(-133.0) else x
    shifted = fma(x, f32(1.44269504), f32(12582912.0 + 192.0))
    p = _reduced_exp(x, shifted - f32(12582912.0 + 192.0))
    power = float_of(np.int32(bits_of(shifted) << np.int32(23)))
    return fma(p, power, power)


@inner
def expm1(x: Any) -> Any:
    """e^x − 1 within 2 units in the last place, also where x is tiny; −0 stays, expm1(−inf) = −1, NaN stays.

    2^n·(p + 1) − 1 as (2^a·p + (2^a − 2^−b))·2^b with a + b = n, which is exact where it cancels.
    """
    p, a, b = _reduced(x)
    scaled = fma(p, _power_of_two(a), _power_of_two(a) - _power_of_two(np.int32(-b)))
    return x if x == f32(0.0) else scaled * _power_of_two(b)


@inner
def tanh(x: Any) -> Any:
    """tanh within 0.65 units in the last place; −0 stays, NaN stays.

    −t ÷ (t + 2) with t = e^(−2|x|) − 1, which keeps the digits of small x. What rounding takes from t and from t + 2 is
    carried along, and so is what the quotient lacks: a remainder takes an fma.
    """
    t, t_rest = _expm1_of_negative(f32(-2.0) * abs(x))
    below = t + f32(2.0)
    below_rest = (f32(2.0) - below) + t + t_rest
    inverse = f32(1.0) / below
    quotient = -t * inverse
    lacking = -fma(quotient, below, t) - fma(quotient, below_rest, t_rest)
    made = _with_sign(fma(lacking, inverse, quotient), x)
    return x if abs(x) < f32(2.0**-12) else made  # there t has no digits left, and tanh is x


@inner
def _expm1_of_negative(x: Any) -> Any:
    """e^x − 1 where x ≤ 0 or NaN, and what rounding took from it. The low bits of `shifted` are n + 127: moved up they
    are 2^n."""
    x = f32(-40.0) if x < f32(-40.0) else x
    shifted = fma(x, f32(1.44269504), f32(12582912.0 + 127.0))
    n = shifted - f32(12582912.0 + 127.0)
    power = float_of(np.int32(bits_of(shifted) << np.int32(23)))
    exact, correction = fma(n, f32(-0.693147182), x), n * f32(1.90465432e-09)
    r = exact + correction
    square = r * r
    cube, half, beyond = square * r, f32(0.5) * square, _exp_beyond_square(r)
    curved = fma(cube, beyond, half)
    sum_ = f32(1.0) + r
    lost = ((f32(1.0) - sum_) + r) + ((exact - r) + correction) + f32(0.5) * fma(r, r, -square)
    u = sum_ + curved
    u_rest = ((sum_ - u) + curved) + (fma(cube, beyond, half - curved) + lost)
    made = fma(u, power, f32(-1.0))
    return made, fma(u, power, f32(-1.0) - made) + u_rest * power


@inner
def sigmoid(x: Any) -> Any:
    """1 ÷ (1 + e^−x) within 3 units in the last place; 0 and 1 at the ends."""
    e = exp_of_negative(-abs(x))
    return (f32(1.0) if x >= f32(0.0) else e) / (f32(1.0) + e)


@inner
def _reduced(x: Any) -> Any:
    """e^r − 1 for x = n·ln2 + r, and n in two halves."""
    x = f32(-104.0) if x < f32(-104.0) else x
    x = f32(89.0) if x > f32(89.0) else x
    shifted = fma(x, f32(1.44269504), f32(12582912.0))
    exponent = np.int32(bits_of(shifted) - np.int32(0x4B400000))
    half = np.int32(exponent >> np.int32(1))
    return _reduced_exp(x, shifted - f32(12582912.0)), half, np.int32(exponent - half)


@inner
def _reduced_exp(x: Any, n: Any) -> Any:
    """e^r − 1 for r = x − n·ln2."""
    r = fma(n, f32(1.90465432e-09), fma(n, f32(-0.693147182), x))
    square = r * r
    high = fma(f32(1.98756912e-4), r, f32(1.39819994e-3))
    middle = fma(f32(8.33345205e-3), r, f32(4.16657962e-2))
    low = fma(f32(0.166666657), r, f32(0.5))
    return fma(fma(fma(high, square, middle), square, low), square, r)


@inner
def _exp_beyond_square(r: Any) -> Any:
    """(e^r − 1 − r − r²/2) ÷ r³."""
    high = fma(f32(1.98756912e-4), r, f32(1.39819994e-3))
    return fma(fma(fma(high, r, f32(8.33345205e-3)), r, f32(4.16657962e-2)), r, f32(0.166666657))


@inner
def _with_sign(size: Any, x: Any) -> Any:
    sign = np.int32(-0x80000000)
    return float_of(np.int32((bits_of(size) & ~sign) | (bits_of(x) & sign)))


@inner
def _power_of_two(k: Any) -> Any:
    return float_of(np.int32((k + np.int32(127)) << np.int32(23)))
