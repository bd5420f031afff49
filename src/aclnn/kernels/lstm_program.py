"""The matrix products of an LSTM layer.

Those of a step and dx are oneDNN's. Weights are packed before they are multiplied, once for all steps and for all rows
of dx: of 30 sizes measured (float32, AVX-512) hardly one was slower for it, and steps of 768 units and more were up to
twice as fast. The gradients of the weights are sums over all rows of the sequence: products.turned makes both in one go
and takes a tenth less time than oneDNN (14 sizes). Where that has no vectors, oneDNN multiplies the states as they lie.
"""

from __future__ import annotations

from aclnn.base.dtype import FLOAT32
from aclnn.kernels import jit, onednn, products
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
    """dx = grad·w_ih, dw_ih = gradᵀ·x and dw_hh = gradᵀ·h_prev over the whole sequence; T·B rows, `width` features.

    If `tiles` make the gradients of the weights, they pack at the offset `packed` of the workspace.
    """

    def __init__(self, rows: int, width: int, hidden: int, add: bool, threads: int, arena: Arena):
        gates, whole, library = 4 * hidden, [products.Tap(0, rows, 0)], onednn.library()
        self.tiles = products.turned(rows, gates, width, whole, threads, hidden) if library.has_avx512 else None
        with library.limits.held_at(threads):
            program = self.program = Program(threads, arena)

            def matrix(rows: int, columns: int) -> Buffer:
                return program.tensor(strided(FLOAT32, (rows, columns), (columns, 1)))

            self.tensors = {"grad": matrix(rows, gates), "w_ih": matrix(gates, width), "dx": matrix(rows, width)}
            grad, w_ih, dx = self.tensors.values()
            program.multiply(grad, program.packed(w_ih, (gates, width), grad.layout, dx.layout), dx, add)
            if self.tiles is not None:
                self.packed = arena.reserve(self.tiles.size)
                arena.release(self.packed, self.tiles.size)  # other layers' products may have it, at another time
                return
            turned = program.part(grad, strided(FLOAT32, (gates, rows), (1, gates)))
            for right, out, columns in (("x", "dw_ih", width), ("h_prev", "dw_hh", hidden)):
                self.tensors[right], self.tensors[out] = matrix(rows, columns), matrix(gates, columns)
                program.multiply(turned, self.tensors[right], self.tensors[out])
