"""A tensor: storage seen through shape, strides, offset and format."""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import DType, NumpyDType
from aclnn.base.format import Format, by_name
from aclnn.base.geometry import Array, contiguous_strides, reach
from aclnn.base.status import invalid, reason


class TensorSpec(NamedTuple):
    """What can be said of a tensor without looking at memory. Strides and offset count elements."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    format: Format = Format.UNDEFINED
    storage: int | None = None  # elements the storage holds; None: whoever made the view vouches for it

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    @property
    def is_contiguous(self) -> bool:
        return self.is_empty or all(
            n == 1 or s == c for n, s, c in zip(self.shape, self.strides, contiguous_strides(self.shape), strict=True)
        )

    def lies_like(self, other: TensorSpec) -> bool:
        """Whether dtype, shape and strides are the same, strides where they matter."""
        agree = all(n <= 1 or s == t for n, s, t in zip(self.shape, self.strides, other.strides, strict=False))
        return self.dtype is other.dtype and self.shape == other.shape and (agree or self.is_empty)

    def extent(self) -> tuple[int, int]:
        """The first and the last storage element that the (non-empty) view touches."""
        low, high = reach(self.shape, self.strides)
        return self.offset + low, self.offset + high

    @property
    def inside_storage(self) -> bool:
        if self.storage is None or self.is_empty:
            return True
        low, high = self.extent()
        return low >= 0 and high < self.storage


def dense(dtype: DType, shape: Sequence[int], format: Format = Format.UNDEFINED) -> TensorSpec:
    """The spec of a contiguous tensor that fills its storage."""
    shape = tuple(shape)
    return TensorSpec(dtype, shape, contiguous_strides(shape), 0, format, math.prod(shape))


class _Memory:
    """What numpy needs to see raw memory as an array; keeps the owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface: dict[str, Any], owner: object):
        self.__array_interface__ = interface
        self.owner = owner


_MOST_BYTES = 2**63 - 1  # of any array: numpy counts in 64 bits, also where an axis is empty
_WILD_STRIDE = 2**58


def _byte_strides(spec: TensorSpec) -> tuple[int, ...]:
    """The stride of an axis of one element leads nowhere, and none does of an empty tensor; a wild one would not fit
    into 64 bits."""
    wanted, is_empty = zip(spec.shape, spec.strides, strict=True), spec.is_empty
    return tuple(0 if (n == 1 or is_empty) and abs(s) > _WILD_STRIDE else s * spec.dtype.itemsize for n, s in wanted)


def view_at(address: int, spec: TensorSpec, owner: object = None) -> Array:
    """The writable numpy view of `spec` on the storage that begins at `address`. The caller vouches for the memory."""
    dtype = spec.dtype.numpy
    assert dtype is not None
    size = dtype.itemsize
    if math.prod(max(n, 1) for n in spec.shape) * size > _MOST_BYTES:
        raise invalid(f"a view of {spec.dtype} has shape {list(spec.shape)}; its bytes cannot be counted in 64 bits.")
    if spec.is_empty:
        return np.empty(spec.shape, dtype)
    interface = {
        "version": 3,
        "shape": spec.shape,
        "strides": _byte_strides(spec),
        "typestr": f"|V{size}",  # ml_dtypes types have no typestr of their own
        "data": (address + spec.offset * size, False),
    }
    return np.asarray(_Memory(interface, owner)).view(dtype)


_FIRST_ADDRESS = 4096  # the first page of memory is never mapped
_ALL_MEMORY: Any = (ctypes.c_char * (2**62)).from_address(_FIRST_ADDRESS)


class Placement(NamedTuple):
    """How a view lies in memory, relative to the address its storage begins at. Strides and offset count bytes."""

    shape: tuple[int, ...]
    dtype: NumpyDType
    strides: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, spec: TensorSpec) -> Placement:
        assert spec.dtype.numpy is not None
        return cls(spec.shape, spec.dtype.numpy, _byte_strides(spec), spec.offset * spec.dtype.itemsize)

    def at(self, address: int) -> Array:
        """The writable view there, as fast as numpy can make one. The caller vouches for the memory."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        start = address + self.offset - _FIRST_ADDRESS
        view: Array = np.ndarray(self.shape, self.dtype, _ALL_MEMORY, start, self.strides)
        return view


def memory_at(address: int, size: int) -> Array:
    """`size` bytes of memory as they are. The caller vouches for them."""
    memory: Array = np.ndarray((size,), np.uint8, _ALL_MEMORY, address - _FIRST_ADDRESS)
    return memory


class Tensor:
    """A view on storage, as `aclCreateTensor` makes one.

    >>> storage = np.arange(6, dtype=np.float32)
    >>> Tensor(storage, shape=(2, 2), strides=(3, 1), offset=1).view
    array([[1., 2.],
           [4., 5.]], dtype=float32)
    """

    __slots__ = ("owner", "spec")

    def __init__(
        self,
        storage: Array,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        format: Format | str | None = None,
    ):
        if not isinstance(storage, np.ndarray) or not storage.flags.c_contiguous:
            raise invalid(f"the storage of a Tensor must be a contiguous numpy array, but it is {kind_of(storage)}.")
        dtype = dtypes.by_numpy(storage.dtype)
        if dtype is None:
            raise invalid(f"the storage of a Tensor has dtype {storage.dtype}, which no aclDataType stands for.")
        shape = _whole_numbers("shape", storage.shape if shape is None else shape)
        strides = contiguous_strides(shape) if strides is None else _whole_numbers("strides", strides)
        (offset,) = _whole_numbers("offset", [offset])
        if len(strides) != len(shape) or min(shape, default=0) < 0:
            raise invalid(
                f"a Tensor has shape {list(shape)} and strides {list(strides)}; sizes must be at least 0, "
                "and there must be one stride per dimension."
            )
        self.owner = storage
        self.spec = TensorSpec(dtype, shape, strides, offset, _format(format), storage.size)

    @classmethod
    def on(cls, storage: Array, spec: TensorSpec) -> Tensor:
        """The tensor of a spec on storage, whatever the spec says."""
        tensor = cls.__new__(cls)
        tensor.owner, tensor.spec = storage, spec
        return tensor

    @property
    def view(self) -> Array:
        """The numpy array that reads and writes through this view."""
        if not self.spec.inside_storage:
            low, high = self.spec.extent()
            raise invalid(f"the view touches elements {low} to {high} of a storage of {self.spec.storage} elements.")
        view = view_at(self.owner.__array_interface__["data"][0], self.spec, self.owner)
        view.flags.writeable = self.owner.flags.writeable
        return view

    def __repr__(self) -> str:
        s = self.spec
        return (
            f"Tensor(dtype={s.dtype}, shape={list(s.shape)}, strides={list(s.strides)}, offset={s.offset}, "
            f"format={s.format})"
        )


_MOST_AXES = 64  # of any array; the operators take 8, and an iterator may be endless
_MOST_ELEMENTS = 2**60  # of a size, a stride or an offset


def _whole_numbers(name: str, given: Iterable[Any]) -> tuple[int, ...]:
    try:
        numbers = tuple(map(operator.index, islice(given, _MOST_AXES + 1)))
    except Exception as error:  # numbers and sequences of others may raise anything
        raise invalid(f"a Tensor has {name} that cannot be read ({reason(error)}); whole numbers are needed.") from None
    if len(numbers) > _MOST_AXES or max(map(abs, numbers), default=0) > _MOST_ELEMENTS:
        raise invalid(f"a Tensor has {name} out of bounds: at most {_MOST_AXES} numbers of up to 2**60.")
    return numbers


def _format(given: Format | str | None) -> Format:
    if given is None:
        return Format.UNDEFINED
    found = given if isinstance(given, Format) else by_name(given) if isinstance(given, str) else None
    if found is None:
        shown = repr(given) if isinstance(given, str) else f"of type {type(given).__name__}"
        raise invalid(f"there is no format {shown}; choose one of {', '.join(Format.__members__)}.")
    return found


def is_masked(value: object) -> bool:
    """Whether a value is a masked array. `np.ma` would import numpy.ma: a process forked meanwhile by another thread
    would have half of it for ever."""
    return isinstance(value, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))


def kind_of(value: object) -> str:
    """What a value is, in words fit for an error message."""
    if isinstance(value, np.ndarray):
        contiguous = "a contiguous" if value.flags.c_contiguous else "a non-contiguous"
        return f"{contiguous} {type(value).__name__} of dtype {value.dtype}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
