"""Going over views of any strides: by rows, a row being a first element and a step, or by blocks of some rows."""

from __future__ import annotations

from typing import Any

from aclnn.kernels.source.helpers import inner


@inner
def row_start(row: int, rank: int, sizes: Any, strides: Any, first: int) -> int:
    """Where a row begins: sizes[rank] of the whole, the row itself last, strides[first …] of the view in question."""
    start = 0
    for d in range(rank - 2, -1, -1):
        start += (row % sizes[d]) * strides[first + d]
        row //= sizes[d]
    return start


@inner
def block_at(item: int, rank: int, sizes: Any) -> Any:
    """A block of the last two axes: where on the others it is, then first row, rows, first column, columns. Behind
    sizes[rank] stand the most rows and columns that a block has."""
    most_rows, most_columns = sizes[rank], sizes[rank + 1]
    across, down = -(-sizes[rank - 1] // most_columns), -(-sizes[rank - 2] // most_rows)
    row, column = item // across % down * most_rows, item % across * most_columns
    rows, columns = min(most_rows, sizes[rank - 2] - row), min(most_columns, sizes[rank - 1] - column)
    return item // (across * down), row, rows, column, columns


@inner
def block_start(block: Any, rank: int, sizes: Any, strides: Any, first: int) -> int:
    """Where a block begins in a view, whose strides are strides[first …]."""
    outer, row, _, column, _ = block
    start = row * strides[first + rank - 2] + column * strides[first + rank - 1]
    for d in range(rank - 3, -1, -1):
        start += (outer % sizes[d]) * strides[first + d]
        outer //= sizes[d]
    return int(start)


@inner
def lies_dense(block: Any, down: int, across: int) -> bool:
    """Whether the elements of a block lie side by side in a view with these strides."""
    return across == 1 and (block[2] == 1 or down == block[4])


@inner
def gathered(tile: Any, view: Any, block: Any, rank: int, sizes: Any, strides: Any, first: int) -> Any:
    """The elements of a block side by side, as (pointer, index): where they are, if they lie so, else in a tile.

    They are copied as they are: `read` and `write` promise that what one reads the other does not write.
    """
    start = block_start(block, rank, sizes, strides, first)
    rows, columns = block[2], block[4]
    down, across = strides[first + rank - 2], strides[first + rank - 1]
    if lies_dense(block, down, across):
        return view, start
    for r in range(rows):
        lay(tile, r * columns, view, start + r * down, across, columns)
    return tile, 0


@inner
def lay(tile: Any, first: int, view: Any, start: int, step: int, count: int) -> None:
    """Elements of a row side by side into a tile. Loops of their own where they are copied many at a time."""
    if step == 0:
        value = view[start]
        for i in range(count):
            tile[first + i] = value
    elif step == 1:
        for i in range(count):
            tile[first + i] = view[start + i]
    else:
        for i in range(count):
            tile[first + i] = view[start + i * step]


@inner
def laid(tile: Any, first: int, view: Any, start: int, step: int, count: int) -> Any:
    """Elements of a row side by side, as (pointer, index): where they are, if they lie so, else in a tile."""
    if step == 1:
        return view, start
    lay(tile, first, view, start, step, count)
    return tile, first


@inner
def landing(tile: Any, view: Any, block: Any, rank: int, sizes: Any, strides: Any) -> Any:
    """Where to write the elements of a block of the first view side by side, and whether that is where they belong."""
    if lies_dense(block, strides[rank - 2], strides[rank - 1]):
        return (view, block_start(block, rank, sizes, strides, 0)), True
    return (tile, 0), False


@inner
def scatter(tile: Any, view: Any, block: Any, rank: int, sizes: Any, strides: Any) -> None:
    """The elements of a tile to where a block of the first view lies."""
    start, rows, columns = block_start(block, rank, sizes, strides, 0), block[2], block[4]
    down, across = strides[rank - 2], strides[rank - 1]
    for r in range(rows):
        for c in range(columns):
            view[start + r * down + c * across] = tile[r * columns + c]
