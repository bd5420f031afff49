"""Element types: numpy and ml_dtypes on one side, aclDataType numbers on the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from aclnn.base.run_once import kept

NumpyDType = np.dtype[Any]


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: there is one object per type
class DType:
    """One element type."""

    name: str
    number: int
    acl_name: str
    numpy: NumpyDType | None  # None: no array of this type can exist here (HIFLOAT8)
    packed: int = 1  # bytes of an element that numpy has no type for; 0 where several share a byte

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return by_number, (self.number,)

    @property
    def itemsize(self) -> int:
        return self.numpy.itemsize if self.numpy is not None else self.packed or 1

    @property
    def whole_bytes(self) -> int:
        """What aclDataTypeSize answers: 0 for what has no size in whole bytes."""
        return self.itemsize if self.packed else 0

    @property
    def is_complex(self) -> bool:
        return self.name.startswith("complex")

    @kept
    def unit(self) -> float:
        """The unit roundoff u: half the distance from 1 to the next number."""
        return float(self.limits.eps) / 2

    @kept
    def limits(self) -> Any:
        """What numpy's finfo says: max, tiny, smallest_subnormal …"""
        return ml_dtypes.finfo(self.numpy)  # type: ignore[no-untyped-call]

    @property
    def compute(self) -> DType:
        """The type arithmetic is done in: float32 for everything narrower."""
        return FLOAT64 if self is FLOAT64 else FLOAT32


FLOAT32 = DType("float32", 0, "FLOAT", np.dtype(np.float32))
FLOAT16 = DType("float16", 1, "FLOAT16", np.dtype(np.float16))
BFLOAT16 = DType("bfloat16", 27, "BF16", np.dtype(ml_dtypes.bfloat16))
FLOAT64 = DType("float64", 11, "DOUBLE", np.dtype(np.float64))
UINT8 = DType("uint8", 4, "UINT8", np.dtype(np.uint8))
INT32 = DType("int32", 3, "INT32", np.dtype(np.int32))
INT64 = DType("int64", 9, "INT64", np.dtype(np.int64))
HIFLOAT8 = DType("hifloat8", 34, "HIFLOAT8", None)
FLOAT8_E4M3FN = DType("float8_e4m3fn", 36, "FLOAT8_E4M3FN", np.dtype(ml_dtypes.float8_e4m3fn))

ALL = (
    FLOAT32,
    FLOAT16,
    DType("int8", 2, "INT8", np.dtype(np.int8)),
    INT32,
    UINT8,
    DType("int16", 6, "INT16", np.dtype(np.int16)),
    DType("uint16", 7, "UINT16", np.dtype(np.uint16)),
    DType("uint32", 8, "UINT32", np.dtype(np.uint32)),
    INT64,
    DType("uint64", 10, "UINT64", np.dtype(np.uint64)),
    FLOAT64,
    DType("bool", 12, "BOOL", np.dtype(np.bool_)),
    DType("complex64", 16, "COMPLEX64", np.dtype(np.complex64)),
    DType("complex128", 17, "COMPLEX128", np.dtype(np.complex128)),
    BFLOAT16,
    HIFLOAT8,
    DType("float8_e5m2", 35, "FLOAT8_E5M2", np.dtype(ml_dtypes.float8_e5m2)),
    FLOAT8_E4M3FN,
    # Names that programs use, and no operator takes.
    DType("string", 13, "STRING", None, packed=0),
    DType("int4", 29, "INT4", None, packed=0),
    DType("uint1", 30, "UINT1", None, packed=0),
    DType("complex32", 33, "COMPLEX32", None, packed=4),
    DType("float8_e8m0", 37, "FLOAT8_E8M0", None),
    DType("float6_e3m2", 38, "FLOAT6_E3M2", None, packed=0),
    DType("float6_e2m3", 39, "FLOAT6_E2M3", None, packed=0),
    DType("float4_e2m1", 40, "FLOAT4_E2M1", None, packed=0),
    DType("float4_e1m2", 41, "FLOAT4_E1M2", None, packed=0),
)

STORED = tuple(d for d in ALL if d.numpy is not None)
"""Those that arrays can have here."""

FLOATS = (FLOAT32, FLOAT16, BFLOAT16)

_BY_NUMBER = {d.number: d for d in ALL}
_BY_NAME = {d.name: d for d in ALL} | {d.acl_name.lower(): d for d in ALL}
_BY_NUMPY = {d.numpy: d for d in STORED}


def by_number(number: int) -> DType | None:
    return _BY_NUMBER.get(number)


def by_name(name: str) -> DType | None:
    """float32, FLOAT, bf16, BF16 …, in any case."""
    short = {"f32": "float32", "f16": "float16", "fp32": "float32", "fp16": "float16", "f64": "float64"}
    name = name.lower()
    return _BY_NAME.get(short.get(name, name))


def by_numpy(dtype: NumpyDType) -> DType | None:
    """The element type of a native-endian numpy dtype; None for everything that has no aclDataType."""
    return _BY_NUMPY.get(dtype) if dtype.isnative else None


def promote(dtypes: Iterable[DType]) -> DType:
    """The type a mixture is computed as: equal types keep theirs, any mixture is float32 (or float64)."""
    distinct = set(dtypes)
    if len(distinct) == 1:
        return distinct.pop()
    return FLOAT64 if FLOAT64 in distinct else FLOAT32
