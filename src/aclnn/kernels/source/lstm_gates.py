"""The gates of one step of an LSTM, backwards and forwards. The formulas are those of ops/lstm.py and lstm_forward.py.

What a step of source.matrix has summed up is theirs as long as it is near. All is one item.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import KEEPS_FAR, KINDS
from aclnn.kernels.source.arithmetic import fma, lie_apart, sigmoid, tanh, use_widest_vectors
from aclnn.kernels.source.calls import address_of
from aclnn.kernels.source.elements import finish_streams, floats, read, stream, write
from aclnn.kernels.source.helpers import inlined
from aclnn.kernels.source.indirect import COLUMNS
from aclnn.kernels.source.panels import width_of
from aclnn.kernels.source.vectors import LINE

ONE, ZERO = np.float32(1), np.float32(0)
KEPT = 7  # lists
CANDIDATE = 2  # the gate that is no sigmoid
IN_LINES = COLUMNS % LINE == 0  # whether a panel's columns fill lines: without AVX2 they are half of one


def backward(
    lo: int,
    hi: int,
    sums: Any,
    together: int,
    first: int,
    last: int,
    unit: int,
    units: int,
    summed: int,
    active: int,
    known: int,
    i: Any,
    f: Any,
    g: Any,
    o: Any,
    tanhc: Any,
    c_before: Any,
    dy: Any,
    of_i: Any,
    of_f: Any,
    of_g: Any,
    of_o: Any,
    strides: Any,
    c_first: Any,
    dh: Any,
    dc: Any,
    hidden: int,
    pitch: int,
) -> None:
    """One step of some units of the sequences first … last − 1: the gradients of their gates, and dc becomes that of
    the step before.

    `summed`: the step done before made their dh, panels of `together` rows; else it is the given one. Sequences below
    `active` take part; below `known` the cell state started from c_before, else from c_first. A sequence that takes no
    part any more leaves its dh. `strides` has the distances from one sequence to the next, of the seven and of c_first;
    `pitch` is that of the gradients. At the end of the loop `active` is below 0: what was summed is left, no more.
    """
    use_widest_vectors()
    lie_apart()
    for b in range(first, last):
        for channel in range(0, units, COLUMNS):
            width, k = width_of(units - channel), unit + channel
            count, made = min(width, units - channel), channel * together + (b - first) * width
            row, to = b * hidden + k, b * pitch + k
            if b < active:
                incoming, at_in = (sums, made) if summed else (dh, row)
                start, at_c = (c_before, b * strides[5] + k) if b < known else (c_first, b * strides[7] + k)
                at = (b * strides[0] + k, b * strides[1] + k, b * strides[2] + k, b * strides[3] + k)
                at_t, at_y = b * strides[4] + k, b * strides[6] + k
                for j in range(count):
                    i_, f_, g_ = read(i, at[0] + j), read(f, at[1] + j), read(g, at[2] + j)
                    o_, t = read(o, at[3] + j), read(tanhc, at_t + j)
                    dh_ = read(dy, at_y + j) + read(incoming, at_in + j)
                    dct = fma(dh_, o_ * ((ONE - t) * (ONE + t)), read(dc, row + j))
                    write(of_i, to + j, dct * (g_ * i_ * (ONE - i_)))
                    write(of_f, to + j, dct * (read(start, at_c + j) * f_ * (ONE - f_)))
                    write(of_g, to + j, dct * (i_ * ((ONE - g_) * (ONE + g_))))
                    write(of_o, to + j, dh_ * (t * o_ * (ONE - o_)))
                    write(dc, row + j, dct * f_)
            else:
                if active >= 0:
                    for j in range(count):
                        write(of_i, to + j, ZERO)
                        write(of_f, to + j, ZERO)
                        write(of_g, to + j, ZERO)
                        write(of_o, to + j, ZERO)
                if summed:
                    for j in range(count):
                        write(dh, row + j, read(sums, made + j))


def forward(
    lo: int,
    hi: int,
    sums: Any,
    together: int,
    first: int,
    last: int,
    unit: int,
    units: int,
    summed: int,
    active: int,
    known: int,
    a: Any,
    out: Any,
    i: Any,
    g: Any,
    f: Any,
    o: Any,
    h_kept: Any,
    c_kept: Any,
    tanhc: Any,
    h_before: Any,
    h: Any,
    strides: Any,
    c: Any,
    bias: Any,
    hidden: int,
    a_pitch: int,
    keeps: int,
) -> None:
    """One step of some units of the sequences first … last − 1, if they are `summed`; else they take no part, and keep
    their state: h and c become those of this step, and go to `out` and to the lists. The rows of a are added to the
    sums; all are one if its pitch is 0.

    `strides` has the distances from one sequence to the next, of out and of the seven lists, which are there if it
    `keeps` them: past the caches, line by line, if these are too small for them (with AVX2, and others at the memory,
    0.9 of the time).
    """
    use_widest_vectors()
    lie_apart()
    lists, tanhs = (i, g, f, o, h_kept, c_kept, tanhc), floats(COLUMNS)
    sources, in_lines = (sums, sums, sums, sums, h, c, tanhs), IN_LINES and keeps == KEEPS_FAR and unit % LINE == 0
    for n in range(KEPT):
        in_lines = in_lines and address_of(lists[n]) % (4 * LINE) == 0 and strides[1 + n] % LINE == 0
    for b in range(first, last):
        for channel in range(0, units, COLUMNS):
            width, k = width_of(units - channel), unit + channel
            count, apart, made = (
                min(width, units - channel),
                together * width,
                4 * channel * together + (b - first) * width,
            )
            row, to = b * hidden + k, b * strides[0] + k
            if summed:
                _open(sums, made, apart, a, b * a_pitch + k, bias, k, hidden, count)
                _renew(sums, made, apart, c, row, tanhs, h, out, to, count)
            else:
                _copy(h_before, row, h, row, count)
                _clear(out, to, count)
            places = (made, made + 2 * apart, made + apart, made + 3 * apart, row, row, 0)
            for n in range(KEPT if keeps else 0):
                there = b * strides[1 + n] + k
                if not summed:
                    _clear(lists[n], there, count)
                elif in_lines and count == COLUMNS:
                    for line in range(0, COLUMNS, LINE):
                        stream(lists[n], there + line, sources[n], places[n] + line)
                else:
                    _copy(sources[n], places[n], lists[n], there, count)
    if keeps == KEEPS_FAR:
        finish_streams()


@inlined
def _open(sums: Any, made: int, apart: int, a: Any, at_a: int, bias: Any, unit: int, hidden: int, count: int) -> None:
    """The gates of some units, where their sums were. One after the other: together they take more registers than AVX2
    has (0.9 of the time)."""
    for kind in range(KINDS):
        at, beside = made + kind * apart, kind * hidden
        if kind == CANDIDATE:
            for j in range(count):
                write(sums, at + j, tanh(_summed(sums, at + j, a, at_a + beside + j, bias, unit + beside + j)))
        else:
            for j in range(count):
                write(sums, at + j, sigmoid(_summed(sums, at + j, a, at_a + beside + j, bias, unit + beside + j)))


@inlined
def _summed(sums: Any, at: int, a: Any, at_a: int, bias: Any, unit: int) -> Any:
    return read(sums, at) + read(a, at_a) + read(bias, unit)


@inlined
def _renew(
    sums: Any, made: int, apart: int, c: Any, row: int, tanhs: Any, h: Any, out: Any, to: int, count: int
) -> None:
    """The states that gates make of the ones before."""
    for j in range(count):
        i, f, g = read(sums, made + j), read(sums, made + apart + j), read(sums, made + 2 * apart + j)
        write(c, row + j, fma(f, read(c, row + j), i * g))
    for j in range(count):
        t = tanh(read(c, row + j))
        h_new = read(sums, made + 3 * apart + j) * t
        write(tanhs, j, t)
        write(h, row + j, h_new)
        write(out, to + j, h_new)


@inlined
def _copy(source: Any, start: int, target: Any, to: int, count: int) -> None:
    for j in range(count):
        write(target, to + j, read(source, start + j))


@inlined
def _clear(target: Any, to: int, count: int) -> None:
    for j in range(count):
        write(target, to + j, ZERO)
