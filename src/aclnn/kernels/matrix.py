"""Products of matrices on tiles: convolutions with one tap, whose positions are the rows. Matrices lie in any way."""

from __future__ import annotations

from aclnn.base.tensor import TensorSpec
from aclnn.kernels.convolution_boxes import in_lines
from aclnn.kernels.convolution_tiles import FOUND, DataPlan, Launch, Numbers, Room, Shape, chain, panels_of
from aclnn.kernels.convolution_tiles import columns as panel_columns
from aclnn.kernels.convolution_tiles_weight import WeightPlan
from aclnn.kernels.nopython.agreed import PANELS_TOGETHER, ROWS
from aclnn.kernels.onednn import Window
from aclnn.kernels.program import Arena
from aclnn.kernels.threads import Work

FEW_ROWS = 512  # whose sums of a panel stay near
ONE_TAP = Window((1,), (1,), (0,), (0,))


class Product:
    """c = a·b, or c += a·b; b is packed first. What it takes of the workspace serves others before and after."""

    def __init__(self, a: TensorSpec, b: TensorSpec, c: TensorSpec, threads: int, arena: Arena, adds: bool = False):
        self._numbers = Numbers()
        shape = Shape(_picture(a), _picture(c), _kernel(b), ONE_TAP, 1)
        plan = DataPlan(shape, False, ("a", "b", "c", None), Room(arena, self._numbers, threads), adds)
        (self._packing,), (self._launch,) = plan.packing, plan.launches
        (place, elements), rows = plan.packed[0], a.shape[0]
        if rows <= FEW_ROWS and a.strides[1] == 1 and c.is_contiguous:
            self._launch = _few_rows(a, c, place, threads, arena, self._numbers, adds)
        arena.release(place, 4 * elements)

    def multiplier(self) -> Multiplier:
        """What one executor needs of it."""
        return Multiplier(self._packing, self._launch, self._numbers)


def _few_rows(
    a: TensorSpec, c: TensorSpec, packed: int, threads: int, arena: Arena, numbers: Numbers, adds: bool
) -> Launch:
    """With tiles of fewer rows, and no boxes to be found; the threads share the columns."""
    (rows, depth), columns = a.shape, c.shape[1]
    lots = min(threads, panels_of(columns))
    per_lot = in_lines((max(rows, PANELS_TOGETHER) + 2 * ROWS) * panel_columns())
    scratch = arena.reserve(4 * per_lot * lots)
    arena.release(scratch, 4 * per_lot * lots)
    bases = [a.strides[0] * min(i, rows - 1) for i in range(rows + ROWS)]
    tables = numbers.put(bases), numbers.put(range(depth)), rows, depth, columns, chain(depth), lots, per_lot, adds
    return Launch("few_rows.product", "FFFFIIiiiiiii", lots, ("a", "c", packed, scratch), tables, lots)


class Multiplier:
    """A product's launches. Its work has the places of a and of c as its arguments 0 and 1."""

    def __init__(self, packing: Launch, launch: Launch, keep: object):
        self._packing, self._launch = packing, launch
        self._pack, self.work = packing.work(keep), launch.work(keep)

    def pack(self, b: int, workspace: int) -> None:
        self._packing.aim(self._pack, {"b": b}, workspace)
        self._pack.run()

    def aim(self, a: int, c: int, workspace: int) -> None:
        self._launch.aim(self.work, {"a": a, "c": c}, workspace)


class RowSums:
    """c[m, n] = Σ a[row, m]·b[row, n] over all rows."""

    def __init__(self, a: TensorSpec, b: TensorSpec, c: TensorSpec, threads: int, arena: Arena):
        self._numbers = Numbers()
        shape = Shape(_picture(a), _picture(b), _kernel(c), ONE_TAP, 1)
        self._launches = WeightPlan(shape, ("a", "b", "c"), Room(arena, self._numbers, threads)).launches

    def adder(self) -> Adder:
        """What one executor needs of it."""
        return Adder(self._launches, self._numbers)


class Adder:
    """The launches of sums over rows."""

    def __init__(self, launches: list[Launch], keep: object):
        self._launches: list[tuple[Launch, Work]] = [(launch, launch.work(keep)) for launch in launches]

    def run(self, a: int, b: int, c: int, workspace: int) -> None:
        places = {"a": a, "b": b, "c": c, FOUND: 0}  # nothing is looked for: there is no padding
        for launch, work in self._launches:
            launch.aim(work, places, workspace)
            work.run()


def _picture(matrix: TensorSpec) -> TensorSpec:
    (rows, columns), (per_row, per_column) = matrix.shape, matrix.strides
    return matrix._replace(shape=(1, columns, rows), strides=(0, per_column, per_row))


def _kernel(matrix: TensorSpec) -> TensorSpec:
    (rows, columns), (per_row, per_column) = matrix.shape, matrix.strides
    return matrix._replace(shape=(columns, rows, 1), strides=(per_column, per_row, 1))
