"""The short way: a functional call whose like was made before finds its plan by what it looks like, and runs.

The long way of operator.py binds and checks every argument (about 40 µs). It leaves a `Short` behind where nothing but
dtypes, shapes, strides and attributes decided: plain numpy arrays or torch tensors in, fresh outputs back.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.adopt import to_torch
from aclnn.base.dtype import BFLOAT16, UINT8
from aclnn.base.geometry import Array
from aclnn.contract.model import Op
from aclnn.runtime import settings
from aclnn.runtime.executor import VERBOSE, execute, new_memory
from aclnn.runtime.plan import Plan, plan_cache

MOST_SCRATCH = 2**26  # bytes of scratch that a thread keeps


class Glimpse(NamedTuple):
    """A call as it looks from outside."""

    key: Hashable
    attributes: Sequence[Any]
    arrays: list[Array | None]
    from_torch: bool
    short: Short | None  # what was left behind by a call like this


def glimpse(op: Op, tensors: Sequence[Any], attributes: Sequence[Any]) -> Glimpse | None:
    """What decides the plan of a plain call, exactly: values with their types. None: take the long way."""
    key: list[Any] = [op, *settings.context()]
    arrays: list[Array | None] = []
    from_torch = False
    try:
        for value in attributes:
            kind = type(value)
            if kind is list or kind is tuple:
                key.append(tuple(value))
                key.extend(map(type, value))
            else:
                key.append(value)
            key.append(kind)
        for tensor in tensors:
            array = tensor
            if type(tensor) is not np.ndarray and tensor is not None:
                array = _of_torch(tensor)
                from_torch = True
            arrays.append(array)
            if array is None:
                key.append(None)
            elif array.flags.aligned:
                key += (array.dtype, array.shape, array.strides)
            else:
                return None
        whole = tuple(key)
        return Glimpse(whole, attributes, arrays, from_torch, plan_cache.recall(whole))
    except Exception:  # whatever it is, the long way has a sentence for it
        return None


class _Lent:
    """A torch tensor as DLPack hands it to numpy. Its own numpy() would forbid to resize its storage, as FSDP does."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any):
        self._tensor = tensor

    def __dlpack__(self, **wanted: Any) -> Any:
        return sys.modules["torch"]._C._to_dlpack(self._tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU


def _of_torch(tensor: Any) -> Array:
    """The memory of a plain torch tensor; raises for everything else."""
    torch = sys.modules["torch"]
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not tensor.is_cpu or tensor.is_neg():
        raise TypeError
    if tensor.dtype is torch.bfloat16:
        array: Array = np.from_dlpack(_Lent(tensor.detach().view(torch.int16))).view(BFLOAT16.numpy)
    else:
        array = np.from_dlpack(_Lent(tensor))
    past = tensor.storage_offset() * array.itemsize + _extent(array)
    if past > tensor.untyped_storage().nbytes():  # its memory was freed, or part of it
        raise ValueError
    return array


def _extent(array: Array) -> int:
    """How many bytes lie from the first element of an array past its last one."""
    if array.flags.c_contiguous or not array.size:
        return int(array.nbytes)
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    return int(array.itemsize + sum(steps))


class Short:
    """What is left to do for such a call."""

    def __init__(self, plan: Plan):
        self._plan = plan
        inputs = [a.name for a in plan.op.inputs if a.is_tensor]
        self._specs = [plan.call[a.name] for a in plan.op.outputs]
        places = {name: i for i, name in enumerate([*inputs, *(a.name for a in plan.op.outputs)])}
        used = zip(plan.op.tensors, plan.taking_part, strict=True)
        self._order = [places[a.name] if on else -1 for a, on in used]
        self._numpy_knows = BFLOAT16 not in {s.dtype for s in self._specs if s is not None}

    def call(self, seen: Glimpse) -> Any:
        op = self._plan.op
        outputs = [None if s is None else new_memory(op, "an output", s.shape, s.dtype) for s in self._specs]
        tensors = [*seen.arrays, *outputs]
        views = [tensors[i] if i >= 0 else None for i in self._order]
        run = self._plan.take_run()
        execute(self._plan, run, scratch_of(op, self._plan.workspace_size), views)
        self._plan.give_back(run)
        results = self._as_torch(outputs) if seen.from_torch else outputs
        return results[0] if len(results) == 1 else tuple(results)

    def _as_torch(self, outputs: list[Array | None]) -> list[Any]:
        turn = sys.modules["torch"].from_numpy if self._numpy_knows else to_torch
        return [None if o is None else turn(o) for o in outputs]


def remember(seen: Glimpse | None, plan: Plan) -> None:
    """Leaves a Short behind, where the long way found nothing that the key does not say."""
    if seen is None or VERBOSE or plan.value_rules or plan.advice:
        return
    copied = any(step % a.itemsize for a in seen.arrays if a is not None for step in a.strides)
    if copied or any(isinstance(v, float) and v == 0 for v in seen.attributes):  # 0 and −0 would be one key
        return
    plan_cache.remember(seen.key, Short(plan))


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
