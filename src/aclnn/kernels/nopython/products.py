"""Products of matrices with many rows, for several shifts of the rows against each other, or several matrices, at once.

A product is made of tiles that live in registers, at most TILE_ROWS × TILE_COLUMNS. What a tile would not read from end
to end is packed first, into panels as wide as a tile. All products use the same panels, or add to the same tile while
it is in the cache, and that is what a product after the other cannot have.
"""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

from aclnn.kernels.nopython.agreed import TILE_COLUMNS, TILE_DEPTH, TILE_ROWS
from aclnn.kernels.nopython.arithmetic import use_widest_vectors
from aclnn.kernels.nopython.tiles import HEIGHTS, LANES, copy_column, copy_row, shifted, tile

TOGETHER = 16  # rows that go into one panel before the next has its turn
NEVER = 2**62  # a row that no matrix has


def turned(
    lo: int,
    hi: int,
    a: Any,
    b: Any,
    c: Any,
    packed: Any,
    b_more: Any,
    c_more: Any,
    a_rows: int,
    a_columns: int,
    b_columns: int,
    more_columns: int,
    taps: int,
    table: Any,
    down: int,
    across: int,
    group: int,
    per_group: int,
    per_item: int,
) -> None:
    """c[tap] = Σ a[r]ᵀ·b[r − shift], for every tap over the rows it has: see `meeting`. c_more is the same of b_more.

    Items are rectangles of c and c_more, side by side, `down` × `across`; each has `per_item` elements of `packed`, the
    first `per_group` for a. TILE_DEPTH rows at a time, an item packs what it needs of b, and of a the panels that it
    needs in groups: a group stays in the cache while slivers of b and tiles of c come and go.
    """
    use_widest_vectors()
    panels, slivers, more = -(-a_columns // TILE_ROWS), -(-b_columns // TILE_COLUMNS), -(-more_columns // TILE_COLUMNS)
    for item in range(lo, hi):
        p, q = item // across, item % across
        top, bottom = panels * p // down, panels * (p + 1) // down
        left, right = (slivers + more) * q // across, (slivers + more) * (q + 1) // across
        sides = (
            (b, c, b_columns, min(left, slivers), min(right, slivers)),
            (b_more, c_more, more_columns, max(left - slivers, 0), max(right - slivers, 0)),
        )
        a_packed = shifted(packed, item * per_item)
        b_packed = shifted(a_packed, per_group)
        for start in range(0, a_rows, TILE_DEPTH):
            end = min(a_rows, start + TILE_DEPTH)
            b_start, b_end = met(table, taps, start, end)
            beside = (sides[0][4] - sides[0][3]) * (b_end - b_start) * TILE_COLUMNS
            for side in range(2):
                matrix, _, columns, first, last = sides[side]
                pack_b(matrix, columns, b_start, b_end, first, last, shifted(b_packed, side * beside))
            for panel in range(top, bottom, group):
                below = min(bottom, panel + group)
                pack_a(a, a_columns, start, end, panel, below, a_packed)
                for side in range(2):
                    _, to, columns, first, last = sides[side]
                    rectangle, block = (panel, below, first, last), (start, end, b_start, b_end)
                    right_hand = shifted(b_packed, side * beside)
                    add_block(a_packed, right_hand, to, rectangle, block, a_columns, columns, taps, table)


@register_jitable
def add_block(
    a_packed: Any,
    b_packed: Any,
    c: Any,
    rectangle: Any,
    block: Any,
    a_columns: int,
    b_columns: int,
    taps: int,
    table: Any,
) -> None:
    """What the packed rows bring to a rectangle of every product: panels top … bottom − 1, slivers left … right − 1."""
    use_widest_vectors()
    (top, bottom, left, right), (start, end, b_start, b_end) = rectangle, block
    for sliver in range(left, right):
        b_panel = shifted(b_packed, (sliver - left) * (b_end - b_start) * TILE_COLUMNS)
        width = min(TILE_COLUMNS, b_columns - sliver * TILE_COLUMNS)
        for tap in range(taps):
            first, last, shift = meeting(table, tap, start, end)
            if first < last:
                a_rest = shifted(a_packed, (first - start) * TILE_ROWS)
                b_rest = shifted(b_panel, (first - shift - b_start) * TILE_COLUMNS)
                begun, to = first > table[3 * tap], shifted(c, tap * a_columns * b_columns + sliver * TILE_COLUMNS)
                for panel in range(top, bottom):
                    a_panel = shifted(a_rest, (panel - top) * (end - start) * TILE_ROWS)
                    row, below = panel * TILE_ROWS, min(a_columns, (panel + 1) * TILE_ROWS)
                    while row < below:
                        height, a_first = tallest(below - row), shifted(a_panel, row - panel * TILE_ROWS)
                        c_row = shifted(to, row * b_columns)
                        tile(height, width, last - first, a_first, TILE_ROWS, 1, b_rest, c_row, b_columns, begun)
                        row += height


def straight(
    lo: int,
    hi: int,
    a: Any,
    b: Any,
    c: Any,
    packed: Any,
    c_rows: int,
    a_columns: int,
    c_columns: int,
    taps: int,
    table: Any,
    parts: int,
    chunk: int,
    per_thread: int,
) -> None:
    """c[r] = Σ a[r − shift]·b[tap]ᵀ, over the taps that have row r: see `meeting`.

    Items are slivers of c, the columns of a tile, in `parts` of the rows each. What they need of b is packed; a is read
    where it lies. A thread has `chunk` items, or a multiple, and `per_thread` elements of `packed` for itself.
    """
    use_widest_vectors()
    b_packed = shifted(packed, lo // chunk * per_thread)
    for item in range(lo, hi):
        sliver, part = item // parts, item % parts
        left = sliver * TILE_COLUMNS
        width = min(TILE_COLUMNS, c_columns - left)
        if part == 0 or item == lo:
            pack_turned(b, c_columns, a_columns, taps, left, width, b_packed)
        row, end = c_rows * part // parts, c_rows * (part + 1) // parts
        while row < end:
            height, to = tallest(min(end - row, same_taps(table, taps, row))), shifted(c, row * c_columns + left)
            put_tile(a, b_packed, to, row, height, width, a_columns, c_columns, taps, table)
            row += height


@register_jitable
def put_tile(
    a: Any,
    b_packed: Any,
    c: Any,
    row: int,
    height: int,
    width: int,
    a_columns: int,
    c_columns: int,
    taps: int,
    table: Any,
) -> None:
    """A tile of c, from this row on: the sum over the taps that have its rows, 0 if there is none."""
    use_widest_vectors()
    begun = False
    for tap in range(taps):
        first, last, shift = meeting(table, tap, row, row + 1)
        if first < last:
            a_rows, b_panel = shifted(a, (row - shift) * a_columns), shifted(b_packed, tap * a_columns * TILE_COLUMNS)
            tile(height, width, a_columns, a_rows, 1, a_columns, b_panel, c, c_columns, begun)
            begun = True
    if not begun:
        for i in range(height):
            for j in range(width):
                c[i * c_columns + j] = 0


@register_jitable
def tallest(rows: int) -> int:
    """How many of these rows a tile has."""
    height = 1
    for known in HEIGHTS:
        if known <= rows:
            height = known
    return height


@register_jitable
def same_taps(table: Any, taps: int, row: int) -> int:
    """How many rows from this one on have the same taps."""
    count = NEVER
    for tap in range(taps):
        for bound in (table[3 * tap], table[3 * tap + 1]):
            if bound > row:
                count = min(count, bound - row)
    return count


@register_jitable
def pack_turned(b: Any, columns: int, depth: int, taps: int, left: int, width: int, target: Any) -> None:
    """Of every tap's matrix, `columns` × `depth`, the `width` rows from `left` on as columns of a panel."""
    for tap in range(taps):
        for j in range(0, width, LANES):
            source, to = (tap * columns + left + j) * depth, tap * depth * TILE_COLUMNS + j
            for k in range(depth):
                copy_column(width - j, b, source + k, depth, target, to + k * TILE_COLUMNS)


@register_jitable
def meeting(table: Any, tap: int, start: int, end: int) -> Any:
    """Which of a's rows start … end − 1 a tap has, first and end, and its shift: row r of a meets row r − shift of b.

    The table has three numbers per tap: its first row of a, the end of its rows, and the shift.
    """
    return max(start, table[3 * tap]), min(end, table[3 * tap + 1]), table[3 * tap + 2]


@register_jitable
def met(table: Any, taps: int, start: int, end: int) -> Any:
    """The rows of b, first and end, that the taps bring together with a's rows start … end − 1."""
    b_start, b_end = NEVER, 0
    for tap in range(taps):
        first, last, shift = meeting(table, tap, start, end)
        if first < last:
            b_start, b_end = min(b_start, first - shift), max(b_end, last - shift)
    return b_start, b_end


def _packing(width: int) -> Any:
    @register_jitable
    def pack(source: Any, columns: int, start: int, end: int, first: int, last: int, target: Any) -> None:
        """The panels first … last − 1 of the rows start … end − 1, each `width` columns wide; zeros where none are."""
        use_widest_vectors()
        for row in range(start, end, TOGETHER):
            for panel in range(first, last):
                to, left = (panel - first) * (end - start) - start, panel * width
                for r in range(row, min(end, row + TOGETHER)):
                    copy_row(width, columns - left, source, r * columns + left, target, (to + r) * width)

    return pack


pack_a, pack_b = _packing(TILE_ROWS), _packing(TILE_COLUMNS)
