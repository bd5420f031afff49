"""Products aᵀ·b for several shifts of the rows at once, on compiled loops: gradWeight of a convolution over time."""

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


def plan(rows: int, a_columns: int, b_columns: int, taps: Sequence[Tap], threads: int) -> Products | None:
    """One product per tap; None where others are faster. Raises NoNativeCodeError."""
    panels, slivers = -(-a_columns // TILE_ROWS), -(-b_columns // TILE_COLUMNS)
    least = -(-panels // RECTANGLE[0]), -(-slivers // RECTANGLE[1])
    shifts = [tap.shift for tap in taps if tap.start < tap.end] or [0]
    apart = max(shifts) - min(shifts)
    if least[0] * least[1] > MOST_RECTANGLES or apart > MOST_SHIFT or threads > MOST_THREADS:
        return None
    down, across, team = min(_grids(panels, slivers, least, threads), key=lambda grid: _cost(panels, slivers, *grid))
    height, width = -(-panels // down) * TILE_ROWS, -(-slivers // across) * TILE_COLUMNS
    packed = height * TILE_DEPTH + width * (TILE_DEPTH + apart)
    table = (ctypes.c_int64 * (3 * len(taps)))(*(number for tap in taps for number in tap))
    chunk = down * across // team
    sizes = [rows, a_columns, b_columns, len(taps), ctypes.addressof(table), down, across, chunk, packed]
    entry = jit.load("products.turned", "FFFFiiiiIiiii")
    return Products(entry, down * across, chunk, [0, 0, 0, 0, *sizes], team, 4 * packed * team, table)


def _grids(panels: int, slivers: int, least: tuple[int, int], threads: int) -> Iterator[tuple[int, int, int]]:
    """How many rectangles there can be, down and across, and how many threads have equally many of them."""
    for down in range(least[0], min(panels, least[0] + threads) + 1):
        for across in range(least[1], min(slivers, least[1] + threads) + 1):
            yield from ((down, across, team) for team in range(1, threads + 1) if down * across % team == 0)


def _cost(panels: int, slivers: int, down: int, across: int, team: int) -> tuple[int, int]:
    """How many tiles a thread computes, then how many columns it packs."""
    height, width, rounds = -(-panels // down), -(-slivers // across), down * across // team
    return rounds * height * width, rounds * (height * TILE_ROWS + width * TILE_COLUMNS)
