"""Products of matrices with many rows, on compiled loops: of several shifts of the rows at once, as the gradients of a
convolution over time are, or of two matrices with the same one, as those of an LSTM's weights are."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aclnn.kernels import jit
from aclnn.kernels.entry import Entry
from aclnn.kernels.nopython.agreed import TILE_COLUMNS, TILE_DEPTH, TILE_ROWS
from aclnn.kernels.strides import aligned
from aclnn.kernels.threads import Work

MOST_PANELS = 46  # of a that are packed together: they stay in the second cache
MOST_SLIVERS = 256  # of b that are packed together: more of them would take tens of megabytes per thread
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


def turned(
    rows: int, a_columns: int, b_columns: int, taps: Sequence[Tap], threads: int, more_columns: int = 0
) -> Products | None:
    """aᵀ·b, one product per tap; None where others are faster. Raises NoNativeCodeError.

    With `more_columns` also those of a second b with so many: arguments 4 and 5 are its address and its results'.
    """
    panels, slivers = -(-a_columns // TILE_ROWS), _slivers(b_columns) + _slivers(more_columns)
    shifts = [tap.shift for tap in taps if tap.start < tap.end] or [0]
    apart = max(shifts) - min(shifts)
    down, across = min(_grids(panels, slivers, threads), key=lambda grid: _cost(panels, slivers, *grid))
    height, width = -(-panels // down), -(-slivers // across)
    if width > MOST_SLIVERS or apart > MOST_SHIFT or threads > MOST_THREADS:
        return None
    group, depth = -(-height // -(-height // MOST_PANELS)), min(rows, TILE_DEPTH)
    of_a = aligned(4 * group * TILE_ROWS * depth) // 4  # so that the panels of b begin a cache line: up to 12 % faster
    packed, table, items = of_a + width * TILE_COLUMNS * (depth + apart), _table(taps), down * across
    sizes = [rows, a_columns, b_columns, more_columns, len(taps), ctypes.addressof(table), down, across]
    entry = jit.load("products.turned", "FFFFFFiiiiiIiiiii")
    return Products(entry, items, 1, [*[0] * 6, *sizes, group, of_a, packed], items, 4 * packed * items, table)


def straight(rows: int, a_columns: int, c_columns: int, taps: Sequence[Tap], threads: int) -> Products | None:
    """a·bᵀ, the sum over the taps; None where others are faster. Raises NoNativeCodeError."""
    slivers = _slivers(c_columns)
    idle = slivers * TILE_COLUMNS - c_columns
    if len(taps) * a_columns > MOST_DEPTH or idle > c_columns * MOST_IDLE or threads > MOST_THREADS:
        return None
    packed, table = len(taps) * a_columns * TILE_COLUMNS, _table(taps)
    sizes = [rows, a_columns, c_columns, len(taps), ctypes.addressof(table), threads, slivers, packed]
    entry = jit.load("products.straight", "FFFFiiiiIiii")
    return Products(entry, slivers * threads, slivers, [0, 0, 0, 0, *sizes], threads, 4 * packed * threads, table)


def _table(taps: Sequence[Tap]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * (3 * len(taps)))(*(number for tap in taps for number in tap))


def _grids(panels: int, slivers: int, threads: int) -> Iterator[tuple[int, int]]:
    """Into how many rectangles, down and across, the threads can divide a result."""
    for down in range(1, min(panels, threads) + 1):
        yield from ((down, across) for across in range(1, min(slivers, threads // down) + 1))


def _cost(panels: int, slivers: int, down: int, across: int) -> tuple[int, int]:
    """How many tiles the largest rectangle has, then how many columns are packed for it."""
    height, width = -(-panels // down), -(-slivers // across)
    return height * width, height * TILE_ROWS + width * TILE_COLUMNS


def _slivers(columns: int) -> int:
    return -(-columns // TILE_COLUMNS)
