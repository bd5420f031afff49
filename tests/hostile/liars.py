"""Values that are not what they seem: what a careless or hostile program may hand to an operator."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import aclnn


class EveryAttributeRaises:
    def __getattr__(self, name: str) -> Any:
        if name == "__name__":  # pytest asks
            raise AttributeError
        raise ValueError(f"no {name}\nand a second line")


class IndexRaises:
    def __index__(self) -> int:
        raise ZeroDivisionError("in __index__")


class IndexHasNoMemory:
    def __index__(self) -> int:
        raise MemoryError


class IterationRaises:
    def __iter__(self) -> Iterator[int]:
        raise OSError("in __iter__")


class Endless:
    def __iter__(self) -> Iterator[int]:
        return itertools.count(1)


class LengthLies(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 10**9


class FloatRaises(float):
    def __float__(self) -> float:
        raise KeyError("in __float__")


class ArrayRaises:
    def __array__(self, *args: Any, **more: Any) -> Any:
        raise RuntimeError("in __array__")


class DlpackRaises:
    def __dlpack__(self, *args: Any, **more: Any) -> Any:
        raise RuntimeError("in __dlpack__")

    def __dlpack_device__(self) -> Any:
        raise RuntimeError("in __dlpack_device__")


class DlpackAndArrayRaise(DlpackRaises, ArrayRaises):
    pass


class ArrayLies(DlpackRaises):
    def __array__(self, *args: Any, **more: Any) -> Any:
        return [1, 2]


class DlpackLies:
    def __dlpack__(self, *args: Any, **more: Any) -> Any:
        return "a capsule"

    def __dlpack_device__(self) -> Any:
        return 1, 0


class ClassRaises:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("in __class__")


class RankRaises:
    @property
    def ndim(self) -> int:
        raise RuntimeError("in ndim")


class SaysItIsOne:
    ndim = 0


HUGE_NUMBERS = (10**400, -(10**400), 2**63, -(2**63) - 1, 2**31, 2**7, float("nan"), float("inf"), 1e308)

LIARS: tuple[Any, ...] = (
    *(kind() for kind in (EveryAttributeRaises, IndexRaises, IndexHasNoMemory, IterationRaises, Endless)),
    *(kind() for kind in (ArrayRaises, DlpackRaises, DlpackAndArrayRaise, ArrayLies, DlpackLies, ClassRaises)),
    *(RankRaises(), SaysItIsOne(), LengthLies([1, 2]), FloatRaises(1.0)),
    *HUGE_NUMBERS,
    *(True, 1.5, None, "1", "", b"1", 1j, object(), type, len, Ellipsis, slice(None), range(3)),
    *([], [[1]], [[]], [None], {}, {1: 2}, set(), memoryview(b"abc")),
    *(np.float16(1), np.complex64(1), np.datetime64("2020"), np.array(1), np.array(1.5), np.array("a")),
    *(np.array(None), np.ma.masked, np.zeros((1,) * 9, np.float32), np.zeros(2, ">f4"), np.zeros(2, [("a", "f4")])),
    *(np.array([1, None], object), np.zeros(2, "M8[s]"), np.zeros(2, "U3"), np.zeros(4, np.longdouble)),
)


def name_of(value: Any) -> str:
    """Never asks the value itself."""
    return str(value) if type(value) in (int, float, str) and len(str(value)) < 30 else type(value).__name__


def answer(use: Callable[[], object]) -> aclnn.AclnnError | None:
    """What a call was refused with; None if it was served. Anything else it raises is a fault."""
    try:
        use()
    except aclnn.AclnnError as error:
        return error
    return None
