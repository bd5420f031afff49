"""Products for several shifts of the rows at once, on compiled loops: the gradients of a convolution over time."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aclnn.kernels import jit
from aclnn.kernels.entry import Entry
from aclnn.kernels.nopython.agreed import TILE_COLUMNS, TILE_DEPTH, TILE_ROWS
from aclnn.kernels.threads import Work

RECTANGLE = 46, 4  # panels and slivers that one may have: what is packed and the results stay in the second cache
MOST_RECTANGLES = 6  # with more, each is packed for too often
MOST_SHIFT = 1024  # rows of b that are packed beyond those of a
MOST_THREADS = 16  # with more, a thread has too few tiles for what it packs
MOST_IDLE = 1 / 8  # of the columns: how many more those of the tiles may be
MOST_DEPTH = 4096  # rows of all taps' matrices together: what is packed of them stays in the second cache


class Tap(NamedTuple):
    """The rows of a that a product has, and how many rows further on they are than those of b."""

    start: int
    end: int
    shift: int


class Products(NamedTuple):
    """How the products are made. `work` gives each executor its own launch: arguments 0 to 3 are the addresses of a, b,
    the results and `size` bytes of workspace."""

    entry: Entry
    items: int
    chunk: int  # items of a thread
    arguments: list[int]
    threads: int
    size: int
    kept: object

    def work(self) -> Work:
        return Work(self.entry, self.items, self.chunk, self.arguments, self.threads, self.kept)


def turned(rows: int, a_columns: int, b_columns: int, taps: Sequence[Tap], threads: int) -> Products | None:
    """aᵀ·b, one product per tap; None where others are faster. Raises NoNativeCodeError."""
    panels, slivers = -(-a_columns // TILE_ROWS), -(-b_columns // TILE_COLUMNS)
    least = -(-panels // RECTANGLE[0]), -(-slivers // RECTANGLE[1])
    shifts = [tap.shift for tap in taps if tap.start < tap.end] or [0]
    apart = max(shifts) - min(shifts)
    if least[0] * least[1] > MOST_RECTANGLES or apart > MOST_SHIFT or threads > MOST_THREADS:
        return None
    grids = _grids(panels, slivers, least, threads)
    down, across, team = min(grids, key=lambda grid: _cost(a_columns, b_columns, *grid))
    height, width = _largest(a_columns, b_columns, down, across)
    packed = height * TILE_DEPTH + width * (TILE_DEPTH + apart)
    table, chunk = _table(taps), down * across // team
    sizes = [rows, a_columns, b_columns, len(taps), ctypes.addressof(table), down, across, chunk, packed]
    entry = jit.load("products.turned", "FFFFiiiiIiiii")
    return Products(entry, down * across, chunk, [0, 0, 0, 0, *sizes], team, 4 * packed * team, table)


def straight(rows: int, a_columns: int, c_columns: int, taps: Sequence[Tap], threads: int) -> Products | None:
    """a·bᵀ, the sum over the taps; None where others are faster. Raises NoNativeCodeError."""
    slivers = -(-c_columns // TILE_COLUMNS)
    idle = slivers * TILE_COLUMNS - c_columns
    if len(taps) * a_columns > MOST_DEPTH or idle > c_columns * MOST_IDLE or threads > MOST_THREADS:
        return None
    packed, table = len(taps) * a_columns * TILE_COLUMNS, _table(taps)
    sizes = [rows, a_columns, c_columns, len(taps), ctypes.addressof(table), threads, slivers, packed]
    entry = jit.load("products.straight", "FFFFiiiiIiii")
    return Products(entry, slivers * threads, slivers, [0, 0, 0, 0, *sizes], threads, 4 * packed * threads, table)


def _table(taps: Sequence[Tap]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * (3 * len(taps)))(*(number for tap in taps for number in tap))


def _grids(panels: int, slivers: int, least: tuple[int, int], threads: int) -> Iterator[tuple[int, int, int]]:
    """How many rectangles there can be, down and across, and how many threads have equally many of them."""
    for down in range(least[0], min(panels, least[0] + threads) + 1):
        for across in range(least[1], min(slivers, least[1] + threads) + 1):
            yield from ((down, across, team) for team in range(1, threads + 1) if down * across % team == 0)


def _cost(a_columns: int, b_columns: int, down: int, across: int, team: int) -> tuple[int, int]:
    """How many sums a thread makes, then how many columns it packs."""
    height, width = _largest(a_columns, b_columns, down, across)
    rounds = down * across // team
    return rounds * min(height, a_columns) * min(width, b_columns), rounds * (height + width)


def _largest(a_columns: int, b_columns: int, down: int, across: int) -> tuple[int, int]:
    """The columns of a and of b that the largest rectangle has, in whole tiles."""
    panels, slivers = -(-a_columns // TILE_ROWS), -(-b_columns // TILE_COLUMNS)
    return -(-panels // down) * TILE_ROWS, -(-slivers // across) * TILE_COLUMNS
