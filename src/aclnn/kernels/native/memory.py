"""Where arrays lie in memory, and what buffers of ours are aligned to."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable

import numpy as np

from aclnn.base.geometry import Array


def _address_by_interface(array: Array) -> int:
    where: int = array.__array_interface__["data"][0]
    return where


DATA = object.__basicsize__
"""The byte of an array object where the address of its first element stands, if LAYOUT_IS_KNOWN."""
_word_at = ctypes.c_size_t.from_address


def _address_by_layout(array: Array) -> int:
    """The same a microsecond sooner: in numpy's binary interface it is the first field of an array object."""
    return _word_at(id(array) + DATA).value


def _layout_is_known() -> bool:
    sample = np.empty(1)
    cpython = sys.implementation.name == "cpython"  # elsewhere id() is no address
    return cpython and _address_by_layout(sample) == _address_by_interface(sample)


LAYOUT_IS_KNOWN = _layout_is_known()
address = _address_by_layout if LAYOUT_IS_KNOWN else _address_by_interface
"""Where an array's first element lies."""


def addresses(arrays: Iterable[Array]) -> tuple[int, ...]:
    """Where some arrays lie."""
    if not LAYOUT_IS_KNOWN:
        return (*map(address, arrays),)
    found = []
    for array in arrays:  # as above, without a call for each
        found.append(_word_at(id(array) + DATA).value)
    return (*found,)


def function_address(function: object) -> int:
    """Where a function of a library that ctypes has loaded begins."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


LINE = 64  # bytes of a cache line, and of the widest vectors: what buffers of ours are aligned to


def aligned(address: int) -> int:
    """The first line at or after an address."""
    return -(-address // LINE) * LINE
