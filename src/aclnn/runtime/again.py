"""The short way: a functional call whose like was made before finds its plan by what it looks like, and runs.

The long way of operator.py binds and checks every argument (about 40 µs). It leaves a `Short` behind where nothing but
dtypes, shapes, strides and attributes decided: plain numpy arrays or torch tensors in, fresh outputs back.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.adopt import to_torch
from aclnn.base.dtype import BFLOAT16, UINT8
from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.contract.model import HIDDEN, Op
from aclnn.runtime.executor import VERBOSE, new_memory
from aclnn.runtime.plan import Plan, plan_cache
from aclnn.runtime.settings import context

MOST_SCRATCH = 2**26  # bytes of scratch that a thread keeps
_OF_NUMPY = (np.ndarray, type(None))
_LISTS = (list, tuple)
LONG_WAY: tuple[bool, Any] = False, None
"""What attempt() answers to a call that it does not take."""


class Glimpse(NamedTuple):
    """A call as it looks from outside."""

    key: Hashable
    attributes: Sequence[Any]
    arrays: Sequence[Any]


def attempt(op: Op, tensors: Sequence[Any], attributes: Sequence[Any]) -> tuple[bool, Any]:
    """(True, the result) of a plain call whose like was made before; else (False, its Glimpse or None)."""
    from_torch = False
    try:
        kinds = tuple(map(type, attributes))
        values = attributes if list not in kinds and tuple not in kinds else _spelled_out(attributes)
        key = [op, context(), values, kinds]  # what decides the plan, exactly: values with their types
        for array in tensors:
            if type(array) is np.ndarray and array.flags.aligned:
                key += array.dtype, array.shape, array.strides
            elif array is None:
                key.append(None)
            else:
                from_torch = type(array) not in _LISTS or any(type(t) not in _OF_NUMPY for t in _flat(tensors))
                tensors = list(map(_adopted, tensors))
                key[4:] = map(_look, tensors)
                break
        whole = tuple(key)
        short = plan_cache.short.get(whole)
    except Exception:  # whatever it is, the long way has a sentence for it
        return LONG_WAY
    if short is None:
        return False, Glimpse(whole, attributes, tensors)
    return True, short.call(tensors, from_torch)


def _flat(tensors: Sequence[Any]) -> Iterator[Any]:
    """The tensors, those of lists one by one."""
    for tensor in tensors:
        if type(tensor) in _LISTS:
            yield from tensor
        else:
            yield tensor


def _look(array: Any) -> Hashable:
    """What a key says of an array, of none, or of a list of them."""
    if array is None:
        return None
    if type(array) is list:
        return tuple(map(_look, array))
    if not array.flags.aligned:
        raise ValueError
    return array.dtype, array.shape, array.strides


def _spelled_out(attributes: Sequence[Any]) -> tuple[Any, ...]:
    """With sequences as tuples of their elements and the types of these."""
    return tuple((*v, *map(type, v)) if type(v) in _LISTS else v for v in attributes)


class _Torch:
    """What is needed of torch again and again."""

    def __init__(self) -> None:
        torch = sys.modules["torch"]
        self.kinds = torch.Tensor, torch.nn.Parameter
        self.bfloat16, self.int16, self.to_dlpack = torch.bfloat16, torch.int16, torch._C._to_dlpack
        self.from_numpy = torch.from_numpy


_torch = cache(_Torch)


class _Lent(tuple[Any, Any]):
    """A torch tensor, and the function that hands it to numpy by DLPack. Its own numpy() would forbid to resize its
    storage, as FSDP does."""

    __slots__ = ()

    def __dlpack__(self, **wanted: Any) -> Any:
        tensor, to_dlpack = self
        return to_dlpack(tensor)

    __dlpack_device__ = staticmethod(partial(tuple, (1, 0)))  # the CPU; no Python code runs


def _adopted(tensor: Any) -> Any:
    """The memory of a plain array or torch tensor, or of a list of them; raises for everything else."""
    kind = type(tensor)
    if kind is np.ndarray or tensor is None:
        return tensor
    if kind in _LISTS:
        return list(map(_adopted, tensor))
    torch = _torch()
    if kind not in torch.kinds or not tensor.is_cpu or tensor.is_neg():
        raise TypeError
    if tensor.dtype is torch.bfloat16:
        array: Array = np.from_dlpack(_Lent((tensor.detach().view(torch.int16), torch.to_dlpack))).view(BFLOAT16.numpy)
    else:
        array = np.from_dlpack(_Lent((tensor, torch.to_dlpack)))
    past = tensor.storage_offset() * array.itemsize + (array.nbytes if array.flags.c_contiguous else _extent(array))
    if past > tensor.untyped_storage().nbytes():  # its memory was freed, or part of it
        raise ValueError
    return array


def _extent(array: Array) -> int:
    """How many bytes lie from the first element of an array past its last one."""
    if not array.size:
        return 0
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    return int(array.itemsize + sum(steps))


class Short:
    """What is left to do for such a call."""

    def __init__(self, plan: Plan):
        self._plan, self._room = plan, plan.workspace_size
        inputs = [a.name for a in plan.op.inputs if a.is_tensor]
        self._specs = [plan.call[a.name] for a in plan.op.outputs]
        places = {name: i for i, name in enumerate([*inputs, *(a.name for a in plan.op.outputs)])}
        used = zip(plan.op.tensors, plan.taking_part, strict=True)
        order = [places[a.name] if on else -1 for a, on in used]
        self._order = order if order != list(range(len(places))) else None  # None: as they come
        self._numpy_knows = BFLOAT16 not in {s.dtype for a in plan.op.outputs for s in plan.call.specs(a.name)}
        simple = self._order is None and not self._room and len(self._specs) == 1
        self._only = self._specs[0] if simple and type(self._specs[0]) is TensorSpec else None

    def call(self, arrays: Sequence[Any], to_torch: bool) -> Any:
        plan_cache.hits += 1
        if self._only is None:
            return self._call_any(arrays, to_torch)
        plan = self._plan  # one output and nothing else to see to, as for ELU: half a microsecond sooner
        output = new_memory(plan.op, "an output", self._only.shape, self._only.dtype)
        plan.run(None, *arrays, output)
        return self._turned()(output) if to_torch else output

    def _call_any(self, arrays: Sequence[Any], to_torch: bool) -> Any:
        plan, views = self._plan, [*arrays]
        for spec in self._specs:
            if type(spec) is TensorSpec:
                views.append(new_memory(plan.op, "an output", spec.shape, spec.dtype))
            else:  # None, or a list
                views.append(
                    None if spec is None else [new_memory(plan.op, "an output", s.shape, s.dtype) for s in spec]
                )
        given = views if self._order is None else [views[i] if i >= 0 else None for i in self._order]
        plan.run(scratch_of(plan.op, self._room) if self._room else None, *given)
        results = self._as_torch(views[len(arrays) :]) if to_torch else views[len(arrays) :]
        return results[0] if len(results) == 1 else tuple(results)

    def _turned(self) -> Callable[[Array], Any]:
        """What makes a torch tensor of an output."""
        return _torch().from_numpy if self._numpy_knows else to_torch

    def _as_torch(self, outputs: list[Any]) -> list[Any]:
        turn = self._turned()
        return [None if o is None else [turn(a) for a in o] if type(o) is list else turn(o) for o in outputs]


def remember(seen: Glimpse | None, plan: Plan) -> None:
    """Leaves a Short behind, where the long way found nothing that the key does not say."""
    if seen is None or VERBOSE or plan.value_rules or plan.advice:
        return
    copied = any(step % a.itemsize for a in _flat(seen.arrays) if a is not None for step in a.strides)
    if not copied and not _has_zero_of_two_signs(plan.op, seen.attributes):
        plan_cache.remember(seen.key, Short(plan))


def _has_zero_of_two_signs(op: Op, attributes: Sequence[Any]) -> bool:
    """Whether a factor is 0 or −0, which would be one key; a probability, of kind double, has no sign."""
    args = (a for a in op.inputs if not a.is_tensor and a.python != HIDDEN)
    pairs = zip(args, attributes, strict=True)
    return any(a.kind == "scalar" and isinstance(v, (float, np.floating)) and v == 0 for a, v in pairs)


class _Kept(threading.local):
    memory: Array | None = None


_kept = _Kept()


def scratch_of(op: Op, room: int) -> Array | None:
    """Scratch for one functional call: the same again and again on each thread, unless it is very large."""
    if room == 0:
        return None
    if room > MOST_SCRATCH:
        return new_memory(op, "workspace", (room,), UINT8)
    if _kept.memory is None or _kept.memory.size < room:
        _kept.memory = new_memory(op, "workspace", (room,), UINT8)
    return _kept.memory
