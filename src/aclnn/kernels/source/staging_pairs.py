"""Boxes of a picture of bfloat16 as pairs, with zeros as padding: of channels, or of positions that are neighbours in a
row. See source.staging, and source.pairs for what pairs are."""

from __future__ import annotations

from typing import Any

from aclnn.kernels.native.abi import (
    EVERY_POSITION,
    LAID,
    PAIRED,
    PICTURE_CHANNELS,
    PICTURE_STRIDES,
    POSITIONS,
    SEEN,
    STRIDE,
)
from aclnn.kernels.source.calls import shifted
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.pair_vectors import pair_neighbours, pair_one, pair_rows
from aclnn.kernels.source.staging import fetch_row, find_line, find_row, lines_of

FETCHED_AHEAD = 2048  # elements by which channels that lie side by side are
LATER = 2  # channels, or pairs of them, by which their rows are fetched if each has but one


def stage(lo: int, hi: int, source: Any, target: Any, table: Any, box: Any, group: int) -> None:
    """Copies what a box needs of what is lo … hi − 1 of a group's channels, or of pairs of these."""
    together = 1 if table[PAIRED] else 2
    base = (group * table[PICTURE_CHANNELS] + lo * together) * table[PICTURE_STRIDES + 1]
    channels = min((hi - lo) * together, table[PICTURE_CHANNELS] - lo * together)
    for line in range(lines_of(box, table)):
        start, to, inside = find_line(line, box, table)
        start, to = base + start, to + lo * table[LAID + 1]
        if table[PAIRED] == POSITIONS:
            pair_positions(source, start, inside, table, box, target, to, channels)
        elif table[PAIRED] == EVERY_POSITION:
            pair_every_position(source, start, inside, table, box, target, to, channels)
        else:
            pair_channels(source, start, inside, table, box, target, to, channels)


@inner
def pair_channels(
    source: Any, start: int, inside: bool, table: Any, box: Any, target: Any, to: int, channels: int
) -> None:
    """One row of every two channels, of which the last may have no partner."""
    length, first, end, place_of_first = find_row(box[7], inside, table, box)
    across, down, seen = table[PICTURE_STRIDES + 4], table[PICTURE_STRIDES + 1], shifted(box, SEEN)
    start += place_of_first
    if table[LAID + 1] == 1:
        for i in range(length):
            count, place = channels if first <= i < end else 0, to + i * table[LAID + 4]
            fetch_ahead(source, start + (i - first) * across, across, down, 1, channels)
            pair_row(source, start + (i - first) * across, down, count, target, place, -(-channels // 2), seen)
        return
    for c in range(0, channels, 2):
        there = (first, end), (first, end if c + 1 < channels else first)
        row, place = to + c // 2 * table[LAID + 1], start + c * down
        pair_two(source, place - first * across, across, down, there, target, row, length, seen)
        if across == 1:
            fetch_row(source, place + coming(table, 2), end - first)
            fetch_row(source, place + down + coming(table, 2), end - first)


@inner
def pair_every_position(
    source: Any, start: int, inside: bool, table: Any, box: Any, target: Any, to: int, channels: int
) -> None:
    """One row of every channel, where each position is paired with the one that its neighbour's terms meet in its
    place: a pair may begin anywhere. The row is one of whole pairs."""
    length, first, end, place_of_first = find_row(box[7] + box[7] % 2, inside, table, box)
    across, down, apart = table[PICTURE_STRIDES + 4], table[PICTURE_STRIDES + 1], table[STRIDE + 2]
    start, seen = start + place_of_first - first * across, shifted(box, SEEN)
    there = (first, end), (first - apart, end - apart)
    if table[LAID + 1] == 1:
        for i in range(length):
            of_all = in_line(i, there[0], channels), in_line(i, there[1], channels)
            place = to + i * table[LAID + 4]
            fetch_ahead(source, start + i * across, across, down, 1, channels)
            pair_two(source, start + i * across, down, apart * across, of_all, target, place, channels, seen)
        return
    for c in range(channels):
        row, place = to + c * table[LAID + 1], start + c * down
        pair_two(source, place, across, apart * across, there, target, row, length, seen)
        if across == 1:
            fetch_row(source, place + first + coming(table, 1), end - first)


@inner
def coming(table: Any, together: int) -> int:
    """How far behind a row the one lies that comes some time later: the next row, or if there is but one those of
    channels, of which so many come together."""
    next_row: int = table[PICTURE_STRIDES + 3]
    return next_row if next_row else LATER * together * table[PICTURE_STRIDES + 1]


@inner
def in_line(i: int, there: Any, count: int) -> Any:
    """All of so many, or none, if the i-th is not there."""
    return 0, (count if there[0] <= i < there[1] else 0)


@inner
def pair_positions(
    source: Any, start: int, inside: bool, table: Any, box: Any, target: Any, to: int, channels: int
) -> None:
    """One row of every channel where nothing but the positions of a box themselves is met: neighbours are pairs."""
    across, down, count = table[PICTURE_STRIDES + 4], table[PICTURE_STRIDES + 1], box[7] if inside else 0
    start, seen = start + box[3] * across, shifted(box, SEEN)
    if table[LAID + 1] == 1:
        for i in range(0, box[7], 2):
            of_all = (0, channels if i < count else 0), (0, channels if i + 1 < count else 0)
            place = to + i // 2 * table[LAID + 4]
            fetch_ahead(source, start + i * across, across, down, 2, channels)
            pair_two(source, start + i * across, down, across, of_all, target, place, channels, seen)
        return
    for c in range(channels):
        pair_row(source, start + c * down, across, count, target, to + c * table[LAID + 1], -(-box[7] // 2), seen)
        if across == 1:
            fetch_row(source, start + c * down + coming(table, 1), box[7])


@inner
def fetch_ahead(source: Any, start: int, across: int, down: int, positions: int, channels: int) -> None:
    """Asks for the channels of so many positions, if they lie side by side, that come some way behind one (0.96 of the
    time of gradients of weights over time)."""
    if down == 1:
        ahead = max(1, FETCHED_AHEAD // (positions * channels)) * positions
        for i in range(ahead, ahead + positions):
            fetch_row(source, start + i * across, channels)


@inner
def pair_two(
    source: Any, start: int, step: int, apart: int, there: Any, target: Any, to: int, length: int, seen: Any
) -> None:
    """A row of pairs: the first halves lie `step` apart, the second ones so far from these. The first and the end are
    given of the first halves that are there, and of the second ones; the others are 0."""
    (first, end), (second, second_end) = there
    if step == 1:
        pair_rows(source, start, apart, first, end, second, second_end, target, to, length, seen)
    else:
        for i in range(length):
            place = start + i * step
            pair_one(source, place, apart, first <= i < end, second <= i < second_end, target, to + i, seen)


@inner
def pair_row(source: Any, start: int, step: int, count: int, target: Any, to: int, length: int, seen: Any) -> None:
    """A row of pairs of neighbours, of `count` elements that lie `step` apart; zeros behind them."""
    if step == 1:
        pair_neighbours(source, start, count, target, to, length, seen)
    else:
        for i in range(length):
            place = start + 2 * i * step
            pair_one(source, place, step, 2 * i < count, 2 * i + 1 < count, target, to + i, seen)
