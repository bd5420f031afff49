"""Taking arrays as they come (numpy, torch, DLPack) without copying, and handing results back in kind."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import BFLOAT16, DType
from aclnn.base.geometry import Array
from aclnn.base.status import invalid
from aclnn.base.tensor import Tensor, TensorSpec, is_masked, kind_of, view_at


class Adopted(NamedTuple):
    """An array taken in: what it looks like, how to reach its elements, and whether it came from torch."""

    spec: TensorSpec
    view: Array | None  # None: a Tensor whose view leaves its storage; phase 1 refuses it before anyone looks
    from_torch: bool


def adopt(value: object, name: str, *, writable: bool = False) -> Adopted:
    """The tensor behind `value`, sharing its memory. `name` is the argument, for the message if that cannot be."""
    if isinstance(value, Tensor):
        view = value.view if value.spec.inside_storage else None
        return Adopted(value.spec, _writable(view, name) if writable and view is not None else view, False)
    if is_torch_tensor(value):
        return _from_torch(value, name)
    return Adopted(*_spec_of(_as_array(value, name, writable), name, writable), False)


def is_torch_tensor(value: object) -> bool:
    """Whether value is a torch.Tensor, without ever importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(value, torch.Tensor)


def to_torch(array: Array) -> Any:
    """The torch tensor on the memory of a numpy array."""
    import torch

    if array.dtype == BFLOAT16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _from_torch(value: Any, name: str) -> Adopted:
    import torch

    if value.device.type != "cpu":
        raise invalid(f"{name} is a torch tensor on device {value.device}; move it to the CPU first.", name)
    if value.layout != torch.strided:
        raise invalid(f"{name} is a torch tensor with layout {value.layout}; it must be a dense one.", name)
    if value.is_conj() or value.is_neg():
        raise invalid(
            f"{name} is a lazily conjugated or negated torch tensor; resolve_conj() or resolve_neg() first.", name
        )
    dtype = _of_torch(value.dtype)
    if dtype is None:
        raise invalid(f"{name} has dtype {value.dtype}, which no aclDataType stands for.", name)
    spec = TensorSpec(dtype, tuple(value.shape), value.stride())
    return Adopted(spec, _torch_memory(value, spec, name), True)


@cache
def _of_torch(dtype: Any) -> DType | None:
    return dtypes.by_name(str(dtype).removeprefix("torch."))


def _torch_memory(value: Any, spec: TensorSpec, name: str) -> Array:
    """The elements of a torch tensor. Its own numpy() would forbid the storage to be resized, and so break FSDP."""
    try:
        address, there = value.data_ptr(), value.untyped_storage().nbytes() // spec.dtype.itemsize
    except (RuntimeError, NotImplementedError):
        address, there = 0, 0
    last = value.storage_offset() + (spec.size - 1 if value.is_contiguous() else spec.extent()[1])
    if not (address and last < there) and not spec.is_empty:
        what = f"{type(value).__name__} with {there} elements of memory at address {address}"
        raise invalid(f"{name} is a {what}; a freed, traced or batched tensor cannot be read.", name)
    return view_at(address, spec, value)


def _as_array(value: Any, name: str, writable: bool) -> Array:
    if is_masked(value):
        raise invalid(f"{name} is a masked array; its mask would be ignored, so fill it first.", name)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, name, writable)
    raise invalid(
        f"{name} is {kind_of(value)}; it must be a numpy array, a torch tensor, an aclnn.Tensor or anything with "
        "__dlpack__.",
        name,
    )


def _from_dlpack(value: Any, name: str, writable: bool) -> Array:
    try:
        return np.from_dlpack(value)
    except Exception as error:  # a foreign producer may raise anything
        if not writable and hasattr(value, "__array__"):
            return np.asarray(value)  # bfloat16 in JAX: numpy's DLPack has no such type, its buffer protocol does
        raise invalid(f"{name} is {kind_of(value)} whose memory numpy cannot share ({error}).", name) from error


def _spec_of(array: Array, name: str, writable: bool) -> tuple[TensorSpec, Array]:
    if not array.dtype.isnative:
        raise invalid(f"{name} has dtype {array.dtype.str}, of foreign byte order; convert it to native order.", name)
    dtype = dtypes.by_numpy(array.dtype)
    if dtype is None:
        raise invalid(f"{name} has dtype {array.dtype}, which no aclDataType stands for.", name)
    if writable:
        _writable(array, name)
    if not _on_element_boundaries(array):
        if writable:
            raise invalid(
                f"{name} is a view whose elements do not lie on element boundaries; it is not writable.", name
            )
        array = array.copy()
    strides = tuple(s // array.itemsize for s in array.strides)
    return TensorSpec(dtype, array.shape, strides), array


def _on_element_boundaries(array: Array) -> bool:
    steps = (s for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    return array.flags.aligned and not any(s % array.itemsize for s in steps)


def _writable(array: Array, name: str) -> Array:
    if not array.flags.writeable:
        raise invalid(f"{name} is read-only; an output must be writable.", name)
    return array
