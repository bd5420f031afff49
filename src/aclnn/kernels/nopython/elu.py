"""ELU, backward and forward, element by element. The formulas are those of ops/elu.py, in float32.

Backward, `product` is alpha·scale where x is the forward's result, inputScale·alpha·scale where it is its input.
Forward, it is alpha·scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from aclnn.kernels.nopython.agreed import ELU_FALLING, ELU_OF_RESULT
from aclnn.kernels.nopython.arithmetic import exp, exp_of_negative, expm1, use_widest_vectors
from aclnn.kernels.nopython.half import TILE, address_of, finish_streams, read, stream, tile_of, write
from aclnn.kernels.nopython.walk import row_start


def backward(lo: int, hi: int, g: Any, x: Any, out: Any, scale: Any, input_scale: Any, product: Any, kind: int) -> None:
    """All three dense and alike."""
    _row(hi - lo, (out, lo, 1), (g, lo, 1), (x, lo, 1), (scale, input_scale, product, kind))


def backward_streamed(
    lo: int, hi: int, g: Any, x: Any, out: Any, width: int, scale: Any, input_scale: Any, product: Any, kind: int
) -> None:
    """The same for outputs beyond the caches: whole lines are written without being read first (10 % faster)."""
    how = (scale, input_scale, product, kind)
    tile, line = tile_of(out), 64 // width
    i = lo + min(-(address_of(out) // width + lo) % line, hi - lo)
    _row(i - lo, (out, lo, 1), (g, lo, 1), (x, lo, 1), how)
    while i + TILE <= hi:
        _row(TILE, (tile, 0, 1), (g, i, 1), (x, i, 1), how)
        for j in range(0, TILE, line):
            stream(out, i + j, tile, j)
        i += TILE
    _row(hi - i, (out, i, 1), (g, i, 1), (x, i, 1), how)
    finish_streams()


def backward_strided(
    lo: int,
    hi: int,
    g: Any,
    x: Any,
    out: Any,
    rank: int,
    sizes: Any,
    steps: Any,
    scale: Any,
    input_scale: Any,
    product: Any,
    kind: int,
) -> None:
    """Any strides. Items are rows; sizes[rank] and steps[3][rank] describe out, g and x, the row itself last."""
    how = (scale, input_scale, product, kind)
    last = rank - 1
    length, out_step, g_step, x_step = sizes[last], steps[last], steps[rank + last], steps[2 * rank + last]
    for row in range(lo, hi):
        at_out = row_start(row, rank, sizes, steps, 0)
        at_g = row_start(row, rank, sizes, steps, rank)
        at_x = row_start(row, rank, sizes, steps, 2 * rank)
        if out_step == 1 and g_step == 1 and x_step == 1:
            _row(length, (out, at_out, 1), (g, at_g, 1), (x, at_x, 1), how)
        else:
            _row(length, (out, at_out, out_step), (g, at_g, g_step), (x, at_x, x_step), how)


@register_jitable(forceinline=True)
def _row(length: int, out: Any, g: Any, x: Any, how: Any) -> None:
    """`length` elements; out, g and x are (pointer, first index, step). One loop per kind: LLVM would not always take
    the question out of a common one, and then all kinds are computed for every element."""
    if how[3] == ELU_OF_RESULT:
        _row_of_result(length, out, g, x, how)
    elif how[3] == ELU_FALLING:
        _row_falling(length, out, g, x, how)
    else:
        _row_of_input(length, out, g, x, how)


def _row_with(slope: Any) -> Any:
    @register_jitable(forceinline=True)
    def row(length: int, out: Any, g: Any, x: Any, how: Any) -> None:
        use_widest_vectors()
        scale, input_scale, product, _ = how
        for i in range(length):
            g_i, x_i = read(g[0], g[1] + i * g[2]), read(x[0], x[1] + i * x[2])
            factor = scale if x_i > np.float32(0) else slope(x_i, input_scale, product)
            write(out[0], out[1] + i * out[2], g_i * factor)

    return row


@register_jitable(forceinline=True)
def _slope_of_result(x: Any, input_scale: Any, product: Any) -> Any:
    return input_scale * (x + product)


@register_jitable(forceinline=True)
def _slope_falling(x: Any, input_scale: Any, product: Any) -> Any:
    return product * exp_of_negative(x * input_scale)


@register_jitable(forceinline=True)
def _slope_of_input(x: Any, input_scale: Any, product: Any) -> Any:
    return product * exp(x * input_scale)


_row_of_result, _row_falling, _row_of_input = map(_row_with, (_slope_of_result, _slope_falling, _slope_of_input))


def forward(lo: int, hi: int, x: Any, out: Any, scale: Any, input_scale: Any, product: Any) -> None:
    """Both dense and alike."""
    _forward_row(hi - lo, (out, lo, 1), (x, lo, 1), (scale, input_scale, product))


def forward_strided(
    lo: int, hi: int, x: Any, out: Any, rank: int, sizes: Any, steps: Any, scale: Any, input_scale: Any, product: Any
) -> None:
    """Any strides. Items are rows; sizes[rank] and steps[2][rank] describe out and x, the row itself last."""
    how = (scale, input_scale, product)
    last = rank - 1
    length, out_step, x_step = sizes[last], steps[last], steps[rank + last]
    for row in range(lo, hi):
        at_out, at_x = row_start(row, rank, sizes, steps, 0), row_start(row, rank, sizes, steps, rank)
        if out_step == 1 and x_step == 1:
            _forward_row(length, (out, at_out, 1), (x, at_x, 1), how)
        else:
            _forward_row(length, (out, at_out, out_step), (x, at_x, x_step), how)


@register_jitable(forceinline=True)
def _forward_row(length: int, out: Any, x: Any, how: Any) -> None:
    """`length` elements; out and x are (pointer, first index, step)."""
    use_widest_vectors()
    scale, input_scale, product = how
    for i in range(length):
        x_i = read(x[0], x[1] + i * x[2])
        y_i = scale * x_i if x_i > np.float32(0) else product * expm1(x_i * input_scale)
        write(out[0], out[1] + i * out[2], y_i)
