"""The matrix products of an LSTM layer on tiles of our own."""

from __future__ import annotations

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import TensorSpec, dense
from aclnn.kernels import matrix
from aclnn.kernels.lstm_products import Engine, Table
from aclnn.kernels.nopython import agreed
from aclnn.kernels.program import Arena
from aclnn.kernels.threads import worth

PER_THREAD = 100_000  # multiplications that pay for waking a thread


class Product:
    primitives = 0

    def __init__(
        self,
        a: TensorSpec,
        b: TensorSpec,
        c: TensorSpec,
        moves: int,
        threads: int,
        arena: Arena,
        adds: bool = False,
    ):
        team = worth(a.size * b.shape[1], PER_THREAD, threads)
        self._product = matrix.Product(a, b, c, team, arena, adds)

    def multiplier(self) -> Multiplier:
        return Multiplier(self._product)


class Multiplier:
    def __init__(self, product: matrix.Product):
        self._tiles = product.multiplier()

    def run(self, a: int, b: int, c: int, workspace: int) -> None:
        self._tiles.pack(b, workspace)
        self._tiles.aim(a, c, workspace)
        self._tiles.work.run()

    def hand_over(self, table: Table, a: int, b: int, c: int, workspace: int) -> None:
        self._tiles.pack(b, workspace)
        self._tiles.aim(a, c, workspace)
        work = self._tiles.work
        table[agreed.PRIMITIVE], table[agreed.PRODUCT_THREADS] = 0, work.arm()
        table[agreed.PRODUCT], table[agreed.PRODUCT_BLOCK] = work.entry.address, work.address


class WeightSums:
    primitives = 0

    def __init__(self, grad: TensorSpec, x: TensorSpec, h: TensorSpec, threads: int, arena: Arena):
        self._sums = [
            matrix.RowSums(grad, right, dense(FLOAT32, (grad.shape[1], right.shape[1])), threads, arena)
            for right in (x, h)
        ]

    def adder(self) -> Adder:
        return Adder(self._sums)


class Adder:
    def __init__(self, sums: list[matrix.RowSums]):
        self._of_x, self._of_h = (one.adder() for one in sums)

    def run(self, grad: int, x: int, h: int, dw_ih: int, dw_hh: int, workspace: int) -> None:
        self._of_x.run(grad, x, dw_ih, workspace)
        self._of_h.run(grad, h, dw_hh, workspace)


TILES = Engine("tiles", Product, WeightSums, any_address=True, spreads=True)
