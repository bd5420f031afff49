"""What a call looks like from outside, exactly: two calls with one key are served by one plan.

The key of a plain call (numpy arrays, torch tensors, numbers) is made of what its arguments say of themselves, which
takes a microsecond. Whatever is not plain is bound first, and its key is made of what was found (operator.py).
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.device import Device
from aclnn.contract.model import HIDDEN, Op
from aclnn.runtime.settings import context

CallKey = Hashable
LISTS = (list, tuple)
_SETTINGS = (str, Device, type(None))


def call_key(
    op: Op, tensors: Sequence[Any], attributes: tuple[Any, ...], out: Any, product: Any, engine: Any
) -> CallKey:
    """The key of a plain call; raises for any other, and so may asking for the key's hash."""
    kinds = (*map(type, attributes),)
    values = attributes if list not in kinds and tuple not in kinds else _spelled_out(attributes)
    key = [op, context(), values, kinds]  # values with their types: 1, 1.0 and True are three calls
    _look(key, tensors, op)
    if out is not None:
        kind = type(out)
        if kind is np.ndarray and out.flags.carray:  # as _look has it, a call less
            key += kind, out.dtype, out.shape, out.strides
        elif kind is list:
            raise TypeError
        else:
            key.append(kind)
            _look(key, out if kind is tuple else (out,), None)
    if product is not None or engine is not None:
        if type(product) not in _SETTINGS or type(engine) not in _SETTINGS:
            raise TypeError
        key += product, engine
    return (*key,)


def _look(key: list[Any], tensors: Sequence[Any], reader: Op | None) -> None:
    """Adds what tensors say of themselves; of a list its length, then its elements. Without a reader, or if that one
    has no other outputs, they are written."""
    for tensor in tensors:
        kind = type(tensor)
        if kind is np.ndarray:
            flags = tensor.flags
            # most arrays are dense, aligned and writable, which is one question
            if not flags.carray and not (flags.aligned and (flags.writeable or (reader and reader.fresh))):
                raise TypeError
            key += tensor.dtype, tensor.shape, tensor.strides
        elif tensor is None:
            key.append(None)
        elif kind in LISTS:
            key += kind, len(tensor)
            _look(key, tensor, reader)
        elif kind in torch_kinds() and tensor.is_cpu and not tensor.is_neg():
            key += tensor.dtype, tensor.shape, tensor.stride()
        else:
            raise TypeError


@cache
def torch_kinds() -> tuple[type, ...]:
    """The types of plain torch tensors. Who asks has an object of unknown type: PyTorch, if that is one, is there."""
    torch = sys.modules["torch"]
    return torch.Tensor, torch.nn.Parameter


def _spelled_out(attributes: Sequence[Any]) -> tuple[Any, ...]:
    """With sequences as tuples of their elements and the types of these."""
    values: list[Any] = []
    for value in attributes:
        values.append((*value, *map(type, value)) if type(value) in LISTS else value)
    return (*values,)


def with_outputs(tensors: Sequence[Any], out: Any) -> Sequence[Any]:
    """Those of a call, then those that are written, if they are given: one or several."""
    return tensors if out is None else (*tensors, *out) if type(out) is tuple else (*tensors, out)


def flat(tensors: Sequence[Any]) -> list[Any]:
    """The tensors, those of lists one by one."""
    found: list[Any] = []
    for tensor in tensors:
        if type(tensor) in LISTS:
            found += tensor
        else:
            found.append(tensor)
    return found


_OF_NUMPY = [d.numpy.type for d in dtypes.ALL if d.numpy is not None]
_EXACT = frozenset({bool, int, type(None), *(t for t in _OF_NUMPY if issubclass(t, (np.bool_, np.integer)))})
_SIGNED_ZEROS = frozenset({float, *_OF_NUMPY}) - _EXACT


def says_all(op: Op, tensors: Sequence[Any], attributes: Sequence[Any]) -> bool:
    """Whether a call whose key is equal to that of this one is the same to an operator."""
    arrays = (t for t in flat(tensors) if type(t) is np.ndarray)
    if any(step % a.itemsize for a in arrays for step in a.strides):  # it will be copied
        return False
    args = (a for a in op.inputs if not a.is_tensor and a.python != HIDDEN)
    return all(_says_all(v, a.kind == "scalar") for a, v in zip(args, attributes, strict=True))


def _says_all(value: Any, has_sign: bool) -> bool:
    """NaN is equal to nothing, and 0 to −0, which matters to a factor but not to a probability, of kind double. Of
    other types than these nobody knows what is equal."""
    kind = type(value)
    if kind in LISTS:
        return all(type(v) in _EXACT for v in value)
    return kind in _EXACT or (kind in _SIGNED_ZEROS and bool(value == value and (value != 0 or not has_sign)))
