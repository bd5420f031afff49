"""Panels: the packed second factor of indirect matmuls, [term][columns], of weights that lie anyhow."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import NO_PLACE
from aclnn.kernels.source.arithmetic import use_widest_vectors
from aclnn.kernels.source.calls import shifted
from aclnn.kernels.source.elements import floats, read
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import COLUMNS, LANES, pack_rows, turn, whole_vectors
from aclnn.kernels.source.vectors import move

WORTH_TURNING, TURNED = 3, 8 * LANES  # terms side by side, at least and at most
SQUARE = LANES * LANES


@inner
def width_of(channels: int) -> int:
    """The columns of a panel that begins where so many channels are left: whole vectors."""
    width: int = min(COLUMNS, whole_vectors(channels))
    return width


def pack_weight(
    lo: int, hi: int, weight: Any, packed: Any, outputs: int, terms: int, places: Any, strides: Any
) -> None:
    """Panels of b, [term][columns]: an item is one. Strides are those of groups and outputs in `weight`."""
    use_widest_vectors()
    for item in range(lo, hi):
        source, to, columns, channels = begin_panel(item, weight, packed, outputs, terms, strides)
        pack_rows(source, strides[1], places, terms, channels, to, columns)


def pack_taps(lo: int, hi: int, weight: Any, packed: Any, outputs: int, terms: int, places: Any, strides: Any) -> None:
    """The same of channels and taps: places are those of the terms, in order, then the rows that they become."""
    use_widest_vectors()
    for item in range(lo, hi):
        source, to, columns, channels = begin_panel(item, weight, packed, outputs, terms, strides)
        pack_terms(source, strides[1], places, terms, channels, to, columns)


@inner
def begin_panel(item: int, weight: Any, packed: Any, outputs: int, terms: int, strides: Any) -> Any:
    """Where a panel comes from and goes to, its columns, and its channels: what is beyond them is 0."""
    panels = -(-outputs // COLUMNS)
    group, channel = item // panels, item % panels * COLUMNS
    columns, channels = width_of(outputs - channel), min(COLUMNS, outputs - channel)
    to = shifted(packed, (group * whole_vectors(outputs) + channel) * terms)
    if channels < columns:
        for i in range(terms * columns):
            to[i] = 0
    return shifted(weight, group * strides[0] + channel * strides[1]), to, columns, channels


@inner
def pack_terms(source: Any, step: int, places: Any, count: int, channels: int, target: Any, columns: int) -> None:
    """The rows of one panel. Terms that lie side by side, as the taps of a channel do and often those of all, are
    turned together, many of them for some channels before the next ones: memory is read along."""
    rows, i = shifted(places, count), 0
    while i < count:
        together, done = 1, channels // LANES * LANES
        while together < TURNED and i + together < count and places[i + together] == places[i] + together:
            together += 1
        if places[i] + whole_vectors(together) > places[count - 1] + 1 and together > LANES:
            together -= together % LANES
        if step == 1:
            together = 1
            for m in range(0, done, LANES):
                move(LANES, source, places[i] + m, target, rows[i] * columns + m)
        elif together >= WORTH_TURNING and places[i] + whole_vectors(together) <= places[count - 1] + 1:
            for m in range(0, done, LANES):
                turn_terms(source, places[i] + m * step, step, together, shifted(rows, i), shifted(target, m), columns)
        else:
            done = 0
        for r in range(i, i + together):
            for m in range(done, channels):
                target[rows[r] * columns + m] = read(source, places[r] + m * step)
        i += together


@inner
def turn_terms(source: Any, start: int, step: int, count: int, rows: Any, target: Any, columns: int) -> None:
    """LANES channels of `count` terms side by side; what lies behind these is read as well."""
    square = floats(SQUARE)
    for first in range(0, count, LANES):
        turn(1, source, start + first, step, square, 0, LANES)
        for r in range(min(LANES, count - first)):
            move(LANES, square, r * LANES, target, rows[first + r] * columns)


def pack_blocks(
    lo: int, hi: int, weight: Any, packed: Any, columns: int, terms: int, places: Any, strides: Any, channels: int
) -> None:
    """The same where the positions of a block lie side by side in a row, each with its channels; places are those of
    one after the other, below all that there are where a position has no tap."""
    use_widest_vectors()
    panels = -(-columns // COLUMNS)
    for item in range(lo, hi):
        group, first = item // panels, item % panels * COLUMNS
        width = width_of(columns - first)
        to = shifted(packed, (group * whole_vectors(columns) + first) * terms)
        for j in range(width):
            position, channel = (first + j) // channels, (first + j) % channels
            start = group * strides[0] + channel * strides[1]
            for term in range(terms):
                element = np.float32(0)
                if first + j < columns and places[position * terms + term] > NO_PLACE:
                    element = read(weight, start + places[position * terms + term])
                to[term * width + j] = element
