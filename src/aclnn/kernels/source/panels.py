"""Panels: the packed second factor of indirect matmuls, [term][columns], of weights that lie anyhow."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.kernels.native.abi import FAR_WEIGHTS, NO_PLACE
from aclnn.kernels.source.arithmetic import is_strange, use_widest_vectors
from aclnn.kernels.source.calls import address_of, shifted
from aclnn.kernels.source.elements import finish_streams, floats, read, stream
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import COLUMNS, LANES, whole_vectors, words
from aclnn.kernels.source.packing import clear_beyond, pack_rows, turn
from aclnn.kernels.source.pair_vectors import LANES as PAIRS
from aclnn.kernels.source.pair_vectors import clear_seen, least_exponent, look_at_rows
from aclnn.kernels.source.pairs import LEAST_OF_WEIGHTS, put_term, put_terms, terms_in
from aclnn.kernels.source.vectors import LINE, TO_READ, fetch, move

WORTH_TURNING = 3  # terms side by side
SQUARES = LANES * COLUMNS  # elements that are turned at a time
AHEAD = 8  # terms by which their channels are fetched
LINES_AHEAD = 4  # by which the terms of a channel are


@inner
def width_of(channels: int) -> int:
    """The columns of a panel that begins where so many channels are left: whole vectors."""
    width: int = min(COLUMNS, whole_vectors(channels))
    return width


def pack_weight(
    lo: int, hi: int, weight: Any, packed: Any, outputs: int, terms: int, places: Any, strides: Any
) -> None:
    """Panels of b, [term][columns]: an item is one. Strides are those of groups and outputs in `weight`, then how many
    groups there are, and how far copies lie apart: items beyond the groups are further copies."""
    use_widest_vectors()
    for item in range(lo, hi):
        source, to, columns, channels = begin_strip(item, COLUMNS, weight, packed, outputs, terms, strides)
        pack_rows(source, strides[1], places, terms, channels, to, columns)


def pack_taps(
    lo: int,
    hi: int,
    weight: Any,
    packed: Any,
    found: Any,
    outputs: int,
    terms: int,
    places: Any,
    strides: Any,
    strip: int,
) -> None:
    """The same of channels and taps: places are those of the terms, in order, as many as the last of the strides says,
    then the rows that they become, of pairs two for every row of a panel: see source.pairs. An item is a panel, or a
    strip of so many of its columns. Far weights go past the caches: where the cores of two threads have no common one,
    to read what the other has written takes longer than memory does (up to 1.3 of a convolution's time). If that is
    asked, found[0] = 1 where an element is not finite, or too small for pairs; threads may write at once: they write
    the same."""
    use_widest_vectors()
    for item in range(lo, hi):
        source, to, columns, channels = begin_strip(item, strip, weight, packed, outputs, terms, strides)
        far = outputs * terms * strides[2] >= FAR_WEIGHTS and address_of(to) % (4 * LINE) == 0 and columns % LINE == 0
        far = far and terms_in(to) == 1
        count = strides[4]
        strange = pack_terms(source, strides[1], places, count, channels, to, columns, far)
        if (strange or is_small(to, terms, columns, min(strip, columns))) and address_of(found) != 0:
            found[0] = 1
        finish_streams()


@inner
def is_small(panel: Any, terms: int, columns: int, width: int) -> bool:
    """Whether a pair in a strip of a panel has a number that is too small for pairs."""
    if terms_in(panel) == 1:
        return False
    seen = words(8)
    clear_seen(seen)
    if width == columns:
        look_at_rows(panel, terms * columns // PAIRS, PAIRS, seen)
    else:
        for m in range(0, width, PAIRS):
            look_at_rows(shifted(panel, m), terms, columns, seen)
    small: bool = least_exponent(seen) < LEAST_OF_WEIGHTS
    return small


@inner
def begin_strip(item: int, strip: int, weight: Any, packed: Any, outputs: int, terms: int, strides: Any) -> Any:
    """Where a strip of a panel comes from and goes to, the panel's columns, and the strip's channels: what is beyond
    them is 0."""
    strips = -(-outputs // strip)
    group, channel = item // strips, item % strips * strip
    first, channels = channel // COLUMNS * COLUMNS, min(strip, outputs - channel)
    columns = width_of(outputs - first)
    copy, group = group // strides[2], group % strides[2]
    to = shifted(packed, copy * strides[3] + (group * whole_vectors(outputs) + first) * terms + channel - first)
    clear_beyond(to, terms, columns, channels, min(strip, first + columns - channel))
    return shifted(weight, group * strides[0] + channel * strides[1]), to, columns, channels


@inner
def pack_terms(
    source: Any, step: int, places: Any, count: int, channels: int, target: Any, columns: int, far: bool
) -> bool:
    """The rows of one panel, past the caches if it is `far`. Terms that lie side by side, as the taps of a channel do
    and often those of all, are turned together, all of them for some channels before the next ones: memory is read
    along. Says whether an element is not finite."""
    rows, i, strange = shifted(places, count), 0, False
    while i < count:
        together, turned, done = 1, 0, channels // LANES * LANES
        while i + together < count and places[i + together] == places[i] + together:
            together += 1
        if places[i] + whole_vectors(together) > places[count - 1] + 1 and together > LANES:
            together -= together % LANES
        if step == 1:
            together = 1
            for m in range(0, channels, LINE):
                fetch(source, places[min(i + AHEAD, count - 1)] + m, TO_READ)
            turned = channels // LINE * LINE if far else 0
            if far:
                strange |= stream_row(source, places[i], turned, target, rows[i] * columns)
            for m in range(turned, done, LANES):
                put_terms(LANES, source, places[i] + m, target, rows[i], columns, m)
        elif together >= WORTH_TURNING and places[i] + whole_vectors(together) <= places[count - 1] + 1:
            turned = done
            for m in range(0, done, COLUMNS):
                start, to, across = places[i] + m * step, shifted(target, m), min(COLUMNS, done - m)
                strange |= turn_terms(source, start, step, together, shifted(rows, i), across, to, columns, far)
        else:
            done = 0
        for r in range(i, i + together):
            for m in range(done, channels):
                put_term(read(source, places[r] + m * step), target, rows[r], columns, m)
            row = rows[r] // terms_in(target) * columns
            strange |= is_strange(shifted(target, row + turned), channels - turned)
        i += together
    return strange


@inner
def stream_row(source: Any, start: int, count: int, target: Any, to: int) -> bool:
    """Whole lines side by side, past the caches; they are looked at before. Says whether an element is not finite."""
    near = floats(COLUMNS)
    for m in range(0, count, LANES):
        move(LANES, source, start + m, near, m)
    for m in range(0, count, LINE):
        stream(target, to + m, near, m)
    strange: bool = is_strange(near, count)
    return strange


@inner
def turn_terms(
    source: Any, start: int, step: int, count: int, rows: Any, across: int, target: Any, columns: int, far: bool
) -> bool:
    """Some channels, at most those of a panel, of `count` terms side by side; what lies behind these is read as well.
    Says whether an element is not finite."""
    turned, strange = floats(SQUARES), False
    for first in range(0, count, LANES):
        for m in range(0, across, LANES):
            for row in range(m, m + LANES):
                fetch(source, start + first + LINES_AHEAD * LINE + row * step, TO_READ)
            turn(1, source, start + first + m * step, step, turned, m, across)
        height = min(LANES, count - first)
        strange |= is_strange(turned, height * across)
        if far and across % LINE == 0:
            for r in range(height):
                for m in range(0, across, LINE):
                    stream(target, rows[first + r] * columns + m, turned, r * across + m)
        else:
            for r in range(height):
                for m in range(0, across, LANES):
                    put_terms(LANES, turned, r * across + m, target, rows[first + r], columns, m)
    return strange


def pack_blocks(
    lo: int,
    hi: int,
    weight: Any,
    packed: Any,
    found: Any,
    columns: int,
    terms: int,
    places: Any,
    strides: Any,
    channels: int,
) -> None:
    """The same where the positions of a block lie side by side in a row, each with its channels; places are those of
    one after the other, below all that there are where a position has no tap."""
    use_widest_vectors()
    panels = -(-columns // COLUMNS)
    for item in range(lo, hi):
        group, first = item // panels, item % panels * COLUMNS
        width = width_of(columns - first)
        copy, group = group // strides[2], group % strides[2]
        to = shifted(packed, copy * strides[3] + (group * whole_vectors(columns) + first) * terms)
        for j in range(width):
            position, channel = (first + j) // channels, (first + j) % channels
            start = group * strides[0] + channel * strides[1]
            for term in range(terms * terms_in(to)):
                element = np.float32(0)
                if first + j < columns and places[position * terms * terms_in(to) + term] > NO_PLACE:
                    element = read(weight, start + places[position * terms * terms_in(to) + term])
                put_term(element, to, term, width, j)
        strange = is_strange(to, width * terms) or is_small(to, terms, width, width)
        if strange and address_of(found) != 0:
            found[0] = 1
