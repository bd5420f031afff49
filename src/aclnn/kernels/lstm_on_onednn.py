"""The matrix products of an LSTM layer on oneDNN.

Weights are packed before they are multiplied, once for all steps and for all rows of dx: of 30 sizes measured (float32,
AVX-512) hardly one was slower for it, and steps of 768 units and more were up to twice as fast. The gradients of the
weights are sums over all rows of the sequence: products.turned makes both in one go and takes a tenth less time than
oneDNN (14 sizes). Where that has no vectors, oneDNN multiplies the states as they lie.
"""

from __future__ import annotations

import ctypes

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import TensorSpec, dense
from aclnn.kernels import onednn, products
from aclnn.kernels.lstm_products import Engine, Table
from aclnn.kernels.nopython import agreed
from aclnn.kernels.onednn import strided
from aclnn.kernels.program import Arena, Buffer, Program, Session


def _matrix(program: Program, spec: TensorSpec) -> Buffer:
    return program.tensor(strided(FLOAT32, spec.shape, spec.strides))


class Product:
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
        with onednn.library().limits.held_at(threads):
            program = self.program = Program(threads, arena)
            self.matrices = [_matrix(program, spec) for spec in (a, b, c)]
            left, right, out = self.matrices
            program.multiply(left, program.packed(right, (b.shape[0], b.shape[1]), left.layout, out.layout), out, adds)
        self.moving, self.primitives = self.matrices[2 * moves], len(program.steps)

    def multiplier(self) -> Multiplier:
        return Multiplier(self)


class Multiplier:
    def __init__(self, product: Product):
        self._product, self._session = product, Session(product.program)

    def run(self, a: int, b: int, c: int, workspace: int) -> None:
        self._session.bind(workspace, list(zip(self._product.matrices, (a, b, c), strict=True)))
        self._session.run()

    def hand_over(self, table: Table, a: int, b: int, c: int, workspace: int) -> None:
        session, lib = self._session, onednn.library()
        session.bind(workspace, list(zip(self._product.matrices, (a, b, c), strict=True)))
        session.forget(self._product.moving)
        session.run(but_the_last=True)
        primitive, arguments = session.steps[-1]
        table[agreed.SET_HANDLE] = lib.address("memory_set_data_handle")
        table[agreed.EXECUTE] = lib.address("primitive_execute")
        table[agreed.PRIMITIVE], table[agreed.STREAM] = primitive.handle, session.stream
        table[agreed.ARGUMENTS], table[agreed.ARGUMENT_COUNT] = ctypes.addressof(arguments), len(arguments)
        table[agreed.MOVING_MEMORY] = session.memory[self._product.moving.number]


class WeightSums:
    def __init__(self, grad: TensorSpec, x: TensorSpec, h: TensorSpec, threads: int, arena: Arena):
        (rows, gates), width, hidden = grad.shape, x.shape[1], h.shape[1]
        library = onednn.library()
        whole = [products.Tap(0, rows, 0)]
        self.tiles = products.turned(rows, gates, width, whole, threads, hidden) if library.has_avx512 else None
        self.primitives = 0
        if self.tiles is not None:
            self.packed = arena.reserve(self.tiles.size)
            arena.release(self.packed, self.tiles.size)  # other layers' products may have it, at another time
            return
        with library.limits.held_at(threads):
            program = self.program = Program(threads, arena)
            left = _matrix(program, grad)
            turned = program.part(left, strided(FLOAT32, (gates, rows), (1, gates)))
            rights = [_matrix(program, right) for right in (x, h)]
            outs = [_matrix(program, dense(FLOAT32, (gates, n))) for n in (width, hidden)]
            self.matrices = [left, *rights, *outs]
            for right, out in zip(rights, outs, strict=True):
                program.multiply(turned, right, out)
        self.primitives = len(program.steps)

    def adder(self) -> Adder:
        return Adder(self)


class Adder:
    def __init__(self, sums: WeightSums):
        self._sums = sums
        self._tiles = None if sums.tiles is None else sums.tiles.work()
        self._session = Session(sums.program) if sums.tiles is None else None

    def run(self, grad: int, x: int, h: int, dw_ih: int, dw_hh: int, workspace: int) -> None:
        if self._session is not None:
            places = (grad, x, h, dw_ih, dw_hh)
            self._session.bind(workspace, list(zip(self._sums.matrices, places, strict=True)))
            self._session.run()
        elif self._tiles is not None:
            self._tiles.point(0, grad, x, dw_ih, workspace + self._sums.packed, h, dw_hh)
            self._tiles.run()


def engine() -> Engine:
    """Raises OneDnnError."""
    return Engine("onednn", Product, WeightSums, any_address=onednn.library().has_avx512, spreads=False)
