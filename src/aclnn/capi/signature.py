"""Reads a call out of the flat array of integers that the C++ library writes (capi/src/planning.cpp)."""

from __future__ import annotations

import math
import struct
import zlib
from functools import cache
from typing import Any

import numpy as np

from aclnn import ops
from aclnn.base import dtype as dtypes
from aclnn.base import format as formats
from aclnn.base.device import Device
from aclnn.base.dtype import DType
from aclnn.base.scalar import Scalar, scalar
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.contract.model import Arg, Op

_NULL = -1
_OPEN_STORAGE = -1
_BORDER = 3  # grows with what the functions of engine.py take and answer


def contracts_id() -> str:
    """Names what library and engine must share: the operator table, since a signature is read by position, and how they
    talk to each other. An installed prefix may be older than the engine."""
    table = [(op.name, [(arg.name, arg.kind, arg.out) for arg in op.args]) for op in ops.all_ops()]
    return f"{zlib.crc32(f'{_BORDER} {table}'.encode()):08x}"


def read_call(signature: bytes, device: Device) -> tuple[Op, Call]:
    """The operator and its call: the operator's number, then every argument in contract order."""
    words = _Words(signature)
    op = ops.all_ops()[words.one()]
    values = {arg.name: words.argument(arg) for arg in op.args}
    return op, Call({**values, **(op.rows.in_steps(values) if op.rows else {})}, device)


class _Words:
    """The integers, read from front to back."""

    def __init__(self, signature: bytes):
        self._words = struct.unpack(f"={len(signature) // 8}q", signature)
        self._next = 0

    def one(self) -> int:
        return self.several(1)[0]

    def several(self, count: int) -> tuple[int, ...]:
        self._next += count
        return self._words[self._next - count : self._next]

    def argument(self, arg: Arg) -> Any:
        if arg.kind == "tensor":
            return self.tensor()
        if arg.kind == "tensor_list":
            count = self.one()
            return None if count == _NULL else tuple(self.tensor() for _ in range(count))
        if arg.kind == "scalar":
            return self.scalar()
        if arg.kind in ("int_array", "bool_array"):
            count = self.one()
            values = None if count == _NULL else self.several(count)
            return tuple(map(bool, values)) if values is not None and arg.kind == "bool_array" else values
        word = self.one()
        return bool(word) if arg.kind == "bool" else _as_double(word) if arg.kind == "double" else word

    def tensor(self) -> TensorSpec | None:
        rank = self.one()
        if rank == _NULL:
            return None
        dtype, tag, offset, storage = self.several(4)
        shape, strides = self.several(rank), self.several(rank)
        known = formats.by_number(tag)
        return TensorSpec(
            _dtype(dtype),
            shape,
            strides,
            offset,
            tag if known is None else known,  # type: ignore[arg-type]  # a number no format has: refused by its rule
            None if storage == _OPEN_STORAGE else storage,
        )

    def scalar(self) -> Scalar | None:
        number = self.one()
        if number == _NULL:
            return None
        dtype = _dtype(number)
        bits = struct.pack("=2q", *self.several(2))[: dtype.itemsize]
        if dtype.numpy is None:  # its rule refuses it by its dtype, whatever the value
            return scalar(math.nan, dtype)
        return scalar(np.frombuffer(bits, dtype.numpy)[0], dtype)


@cache
def _dtype(number: int) -> DType:
    """The dtype of a number; one of its own, which every rule refuses, for a number that no dtype has."""
    return dtypes.by_number(number) or DType(f"undefined ({number})", number, "UNDEFINED", None)


def _as_double(word: int) -> float:
    value: float = struct.unpack("=d", struct.pack("=q", word))[0]
    return value
