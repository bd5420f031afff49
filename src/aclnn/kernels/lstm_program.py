"""The matrix products of an LSTM layer as oneDNN primitives."""

from __future__ import annotations

from aclnn.base.dtype import FLOAT32
from aclnn.kernels import jit, onednn
from aclnn.kernels.nopython.agreed import PRODUCT_TILE
from aclnn.kernels.onednn import DST, SRC, WEIGHTS, any_layout, matmul, strided
from aclnn.kernels.program import Arena, Buffer, Program, Session
from aclnn.kernels.threads import Work, worth


class Step:
    """dh = grad[B, 4H]·w_hh[4H, H], once per step: w_hh is packed before the walk, the walk executes the product."""

    def __init__(self, batch: int, hidden: int, threads: int, arena: Arena):
        self.one_row = jit.load("lstm.row_product", "FFFii") if batch == 1 else None
        self.rows, self.columns, self.threads = 4 * hidden, hidden, threads
        if self.one_row is not None:
            return
        with onednn.library().limits.held_at(threads):
            program = Program(threads, arena)
            self.grad = program.tensor(strided(FLOAT32, (batch, 4 * hidden), (4 * hidden, 1)))
            self.weight = program.tensor(strided(FLOAT32, (4 * hidden, hidden), (hidden, 1)))
            self.dh = program.tensor(strided(FLOAT32, (batch, hidden), (hidden, 1)))
            product = matmul(self.grad.layout, any_layout(FLOAT32, (4 * hidden, hidden)), self.dh.layout)
            packed = program.laid_out(self.weight, product.layout(WEIGHTS))
            program.execute(product, {SRC: self.grad, WEIGHTS: packed, DST: self.dh})
        self.program = program

    def session(self) -> Session | Work:
        """What one executor needs of it."""
        if self.one_row is None:
            return Session(self.program)
        blocks = -(-self.columns // PRODUCT_TILE)
        arguments = [0, 0, 0, self.rows, self.columns]
        return Work(self.one_row, blocks, 1, arguments, worth(self.rows * self.columns, 65536, self.threads))


class Products:
    """dx = grad·w_ih, dw_ih = gradᵀ·x and dw_hh = gradᵀ·h_prev over the whole sequence; T·B rows, `width` features."""

    def __init__(self, rows: int, width: int, hidden: int, add: bool, threads: int, arena: Arena):
        gates = 4 * hidden
        with onednn.library().limits.held_at(threads):
            program = self.program = Program(threads, arena)

            def matrix(rows: int, columns: int) -> Buffer:
                return program.tensor(strided(FLOAT32, (rows, columns), (columns, 1)))

            self.grad, self.x, self.h_prev = matrix(rows, gates), matrix(rows, width), matrix(rows, hidden)
            self.turned = program.tensor(strided(FLOAT32, (gates, rows), (1, gates)))
            self.w_ih, self.dx = matrix(gates, width), matrix(rows, width)
            self.dw_ih, self.dw_hh = matrix(gates, width), matrix(gates, hidden)
            self._multiply(self.grad, self.w_ih, (gates, width), self.dx, add)
            self._multiply(self.turned, self.x, (rows, width), self.dw_ih)
            self._multiply(self.turned, self.h_prev, (rows, hidden), self.dw_hh)

    def _multiply(self, a: Buffer, b: Buffer, dims: tuple[int, int], c: Buffer, add: bool = False) -> None:
        program = self.program
        product = matmul(a.layout, any_layout(FLOAT32, dims), c.layout, add)
        packed = program.laid_out(b, product.layout(WEIGHTS))
        program.execute(product, {SRC: a, WEIGHTS: packed, DST: c})
        program.release(packed)
