"""The matrix products of an LSTM layer as oneDNN primitives.

Weights are packed before they are multiplied, once for all steps and for all rows of dx: of 30 sizes measured (float32,
AVX-512) hardly one was slower for it, and steps of 768 units and more were up to twice as fast. The states, as many as
there are rows, are multiplied as they lie: packing them cost what it saved.
"""

from __future__ import annotations

from aclnn.base.dtype import FLOAT32
from aclnn.kernels import jit, onednn
from aclnn.kernels.nopython.agreed import PRODUCT_TILE
from aclnn.kernels.onednn import strided
from aclnn.kernels.program import Arena, Buffer, Program, Session
from aclnn.kernels.threads import Work, worth


class Step:
    """dh = grad[B, 4H]·w_hh[4H, H], once per step, executed by the walk; a product of one row is our own."""

    def __init__(self, batch: int, hidden: int, threads: int, arena: Arena):
        self.one_row = jit.load("lstm.row_product", "FFFii") if batch == 1 else None
        self.rows, self.columns, self.threads = 4 * hidden, hidden, threads
        if self.one_row is not None:
            return
        with onednn.library().limits.held_at(threads):
            program = self.program = Program(threads, arena)
            self.grad = program.tensor(strided(FLOAT32, (batch, 4 * hidden), (4 * hidden, 1)))
            self.weight = program.tensor(strided(FLOAT32, (4 * hidden, hidden), (hidden, 1)))
            self.dh = program.tensor(strided(FLOAT32, (batch, hidden), (hidden, 1)))
            packed = program.packed(self.weight, (4 * hidden, hidden), self.grad.layout, self.dh.layout)
            program.multiply(self.grad, packed, self.dh)

    def session(self) -> Session | Work:
        """What one executor needs of it."""
        if self.one_row is None:
            return Session(self.program)
        tiles = -(-self.columns // PRODUCT_TILE)
        arguments = [0, 0, 0, self.rows, self.columns]
        return Work(self.one_row, tiles, 1, arguments, worth(self.rows * self.columns, 65536, self.threads))


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
            packed = program.packed(self.w_ih, (gates, width), self.grad.layout, self.dx.layout)
            program.multiply(self.grad, packed, self.dx, add)
            program.multiply(self.turned, self.x, self.dw_ih)
            program.multiply(self.turned, self.h_prev, self.dw_hh)
