"""What an LSTM asks of whoever multiplies matrices for it: tiles of our own, or oneDNN."""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Protocol

from aclnn.base.tensor import TensorSpec
from aclnn.kernels.program import Arena

Table = ctypes.Array[ctypes.c_int64]


class Multiplier(Protocol):
    """One executor's launches of a product. Places are addresses; a workspace begins a cache line."""

    def run(self, a: int, b: int, c: int, workspace: int) -> None: ...

    def hand_over(self, table: Table, a: int, b: int, c: int, workspace: int) -> None:
        """Prepares b, and tells a walk how to execute the rest at every step (nopython.agreed)."""


class Product(Protocol):
    """c = a·b, or c += a·b, of float32 matrices; b is packed into the workspace first, c or a may move then."""

    primitives: int  # objects of oneDNN that it is made of

    def multiplier(self) -> Multiplier: ...


class Adder(Protocol):
    """One executor's launches of the gradients of the weights."""

    def run(self, grad: int, x: int, h: int, dw_ih: int, dw_hh: int, workspace: int) -> None: ...


class WeightSums(Protocol):
    """dw_ih = gradᵀ·x and dw_hh = gradᵀ·h over all rows of a sequence."""

    primitives: int

    def adder(self) -> Adder: ...


class Engine(NamedTuple):
    """Who multiplies."""

    name: str
    product: MakesProduct
    weight_sums: MakesSums
    any_address: bool  # matrices need not begin a cache line to be read fast
    spreads: bool  # the rows of grad, often a power of two, are laid a line more apart


class MakesProduct(Protocol):
    def __call__(
        self,
        a: TensorSpec,
        b: TensorSpec,
        c: TensorSpec,
        moves: int,
        threads: int,
        arena: Arena,
        adds: bool = False,
    ) -> Product:
        """Where it is part of a walk, argument 0 or 1, a or c, moves."""


class MakesSums(Protocol):
    def __call__(self, grad: TensorSpec, x: TensorSpec, h: TensorSpec, threads: int, arena: Arena) -> WeightSums: ...
