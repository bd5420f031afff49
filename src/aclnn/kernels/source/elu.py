"""ELU, backward and forward, element by element. The formulas are those of ops/elu.py, in float32.

Backward, `scaled_alpha` is alpha·scale where x is the forward's result, inputScale·alpha·scale where it is its input.
Forward, it is alpha·scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import ELU_FALLING, ELU_OF_RESULT, TILE
from aclnn.kernels.source.arithmetic import exp, expm1, large_exp_of_negative, use_widest_vectors
from aclnn.kernels.source.calls import address_of
from aclnn.kernels.source.elements import finish_streams, read, stream, tile_of, write
from aclnn.kernels.source.helpers import inlined
from aclnn.kernels.source.strides import block_at, gathered, landing, scatter


def backward(
    lo: int, hi: int, g: Any, x: Any, out: Any, scale: Any, input_scale: Any, scaled_alpha: Any, kind: int
) -> None:
    """All three dense and alike."""
    use_widest_vectors()
    _row(hi - lo, (out, lo), (g, lo), (x, lo), (scale, input_scale, scaled_alpha, kind))


def backward_streamed(
    lo: int, hi: int, g: Any, x: Any, out: Any, width: int, scale: Any, input_scale: Any, scaled_alpha: Any, kind: int
) -> None:
    """The same for outputs beyond the caches: whole lines are written without being read first (10 % faster)."""
    use_widest_vectors()
    how = (scale, input_scale, scaled_alpha, kind)
    tile, line = tile_of(out), 64 // width
    i = lo + min(-(address_of(out) // width + lo) % line, hi - lo)
    _row(i - lo, (out, lo), (g, lo), (x, lo), how)
    while i + TILE <= hi:
        _row(TILE, (tile, 0), (g, i), (x, i), how)
        for j in range(0, TILE, line):
            stream(out, i + j, tile, j)
        i += TILE
    _row(hi - i, (out, i), (g, i), (x, i), how)
    finish_streams()


def backward_strided(
    lo: int,
    hi: int,
    g: Any,
    x: Any,
    out: Any,
    rank: int,
    sizes: Any,
    strides: Any,
    scale: Any,
    input_scale: Any,
    scaled_alpha: Any,
    kind: int,
) -> None:
    """Any strides. Items are blocks; sizes[rank + 2] and strides[3][rank], those of out, g and x, are what strides.py
    asks for. What does not lie side by side is copied: a loop over strides would compute one element at a time."""
    use_widest_vectors()
    how = (scale, input_scale, scaled_alpha, kind)
    g_tile, x_tile, tile = tile_of(g), tile_of(x), tile_of(out)
    for item in range(lo, hi):
        block = block_at(item, rank, sizes)
        of_g = gathered(g_tile, g, block, rank, sizes, strides, rank)
        of_x = gathered(x_tile, x, block, rank, sizes, strides, 2 * rank)
        to, is_there = landing(tile, out, block, rank, sizes, strides)
        _row(block[2] * block[4], to, of_g, of_x, how)
        if not is_there:
            scatter(tile, out, block, rank, sizes, strides)


@inlined
def _row(length: int, out: Any, g: Any, x: Any, how: Any) -> None:
    """`length` elements; out, g and x are (pointer, first index). One loop per kind: LLVM would not always take
    the question out of a common one, and then all kinds are computed for every element."""
    if how[3] == ELU_OF_RESULT:
        _row_of_result(length, out, g, x, how)
    elif how[3] == ELU_FALLING:
        _row_falling(length, out, g, x, how)
    else:
        _row_of_input(length, out, g, x, how)


def _row_with(slope: Any) -> Any:
    @inlined
    def row(length: int, out: Any, g: Any, x: Any, how: Any) -> None:
        scale, input_scale, scaled_alpha, _ = how
        for i in range(length):
            g_i, x_i = read(g[0], g[1] + i), read(x[0], x[1] + i)
            factor = scale if x_i > np.float32(0) else slope(x_i, input_scale, scaled_alpha)
            write(out[0], out[1] + i, g_i * factor)

    return row


@inlined
def _slope_of_result(x: Any, input_scale: Any, scaled_alpha: Any) -> Any:
    return input_scale * (x + scaled_alpha)


@inlined
def _slope_falling(x: Any, input_scale: Any, scaled_alpha: Any) -> Any:
    """The first product is one for all elements: 0.9 of the time."""
    return (scaled_alpha * np.float32(2.0**-65)) * large_exp_of_negative(x * input_scale)


@inlined
def _slope_of_input(x: Any, input_scale: Any, scaled_alpha: Any) -> Any:
    return scaled_alpha * exp(x * input_scale)


_row_of_result, _row_falling, _row_of_input = map(_row_with, (_slope_of_result, _slope_falling, _slope_of_input))


def forward(lo: int, hi: int, x: Any, out: Any, scale: Any, input_scale: Any, scaled_alpha: Any) -> None:
    """Both dense and alike."""
    use_widest_vectors()
    _forward_row(hi - lo, (out, lo), (x, lo), (scale, input_scale, scaled_alpha))


def forward_strided(
    lo: int,
    hi: int,
    x: Any,
    out: Any,
    rank: int,
    sizes: Any,
    strides: Any,
    scale: Any,
    input_scale: Any,
    scaled_alpha: Any,
) -> None:
    """Any strides, as backward_strided has them: sizes[rank + 2] and strides[2][rank], those of out and x."""
    use_widest_vectors()
    how = (scale, input_scale, scaled_alpha)
    x_tile, tile = tile_of(x), tile_of(out)
    for item in range(lo, hi):
        block = block_at(item, rank, sizes)
        of_x = gathered(x_tile, x, block, rank, sizes, strides, rank)
        to, is_there = landing(tile, out, block, rank, sizes, strides)
        _forward_row(block[2] * block[4], to, of_x, how)
        if not is_there:
            scatter(tile, out, block, rank, sizes, strides)


@inlined
def _forward_row(length: int, out: Any, x: Any, how: Any) -> None:
    """`length` elements; out and x are (pointer, first index)."""
    scale, input_scale, scaled_alpha = how
    for i in range(length):
        x_i = read(x[0], x[1] + i)
        y_i = scale * x_i if x_i > np.float32(0) else scaled_alpha * expm1(x_i * input_scale)
        write(out[0], out[1] + i, y_i)
