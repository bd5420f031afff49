"""The short way: a functional call whose like was made before finds its plan by what it looks like, and runs.

The long way of operator.py binds and checks every argument (about 40 µs). It leaves a `Short` behind where nothing but
dtypes, shapes, strides and attributes decided: plain numpy arrays or torch tensors in, fresh outputs back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.adopt import to_torch
from aclnn.base.dtype import BFLOAT16
from aclnn.base.geometry import Array
from aclnn.base.tensor import Placement, TensorSpec
from aclnn.contract.model import HIDDEN, Op
from aclnn.kernels.registry import forgetters
from aclnn.runtime import scratch
from aclnn.runtime.executor import VERBOSE, allocator
from aclnn.runtime.idle import idle_runs
from aclnn.runtime.plan import Plan, plan_cache
from aclnn.runtime.settings import context

_LISTS = (list, tuple)
LONG_WAY: tuple[bool, Any] = False, None
"""What attempt() answers to a call that it does not take."""


class Glimpse(NamedTuple):
    """A call as it looks from outside."""

    key: Hashable
    attributes: Sequence[Any]
    tensors: Sequence[Any]


def attempt(op: Op, tensors: Sequence[Any], attributes: Sequence[Any]) -> tuple[bool, Any]:
    """(True, the result) of a plain call whose like was made before; else (False, its Glimpse or None)."""
    try:
        kinds = tuple(map(type, attributes))
        values = attributes if list not in kinds and tuple not in kinds else _spelled_out(attributes)
        key = [op, context(), values, kinds]  # what decides the plan, exactly: values with their types
        for tensor in tensors:
            if type(tensor) is np.ndarray and tensor.flags.aligned:  # as _look has it, a call less
                key += tensor.dtype, tensor.shape, tensor.strides
            else:
                key.append(_look(tensor))
        whole = tuple(key)
        short = plan_cache.short.get(whole)
        if short is None:
            return False, Glimpse(whole, attributes, tensors)
        arrays = short.arrays(tensors) if short.lends else tensors
    except Exception:  # whatever it is, the long way has a sentence for it
        return LONG_WAY
    return True, short.call(arrays)


def _look(tensor: Any) -> Hashable:
    """What a key says of a plain array, of a torch tensor, of none, or of a list of them; raises for all else."""
    if tensor is None:
        return None
    kind = type(tensor)
    if kind in _LISTS:
        return tuple(map(_look, tensor))
    if kind is np.ndarray and tensor.flags.aligned:
        return tensor.dtype, tensor.shape, tensor.strides
    if kind not in _kinds_of_torch() or not tensor.is_cpu or tensor.is_neg():
        raise TypeError
    return tensor.dtype, tensor.shape, tensor.stride()


@cache
def _kinds_of_torch() -> tuple[type, ...]:
    torch = sys.modules["torch"]
    return torch.Tensor, torch.nn.Parameter


def _spelled_out(attributes: Sequence[Any]) -> tuple[Any, ...]:
    """With sequences as tuples of their elements and the types of these."""
    return tuple((*v, *map(type, v)) if type(v) in _LISTS else v for v in attributes)


def _flat(tensors: Sequence[Any]) -> Iterator[Any]:
    """The tensors, those of lists one by one."""
    for tensor in tensors:
        if type(tensor) in _LISTS:
            yield from tensor
        else:
            yield tensor


def _loan(tensor: Any, spec: Any) -> Callable[[Any], Any]:
    """What makes arrays of tensors that look like this one, of lists of them, or of none."""
    if type(tensor) is np.ndarray or tensor is None:
        return lambda given: given
    if type(tensor) not in _LISTS:
        return _loan_of_torch(spec)
    loans = list(map(_loan, tensor, spec))
    return lambda given: [loan(t) for loan, t in zip(loans, given, strict=True)]


def _loan_of_torch(spec: TensorSpec) -> Callable[[Any], Array]:
    """By address: a tensor's own numpy() would forbid to resize its storage, as FSDP does."""
    at, size = Placement.of(spec).at, spec.dtype.itemsize
    reach = 0 if spec.is_empty else (spec.extent()[1] + 1) * size

    def lend(tensor: Any) -> Array:
        where, past = tensor.data_ptr(), tensor.storage_offset() * size + reach
        if past > tensor.untyped_storage().nbytes() or where % size or (reach and not where):
            raise ValueError  # its memory was freed, or part of it, or does not begin where elements do
        return at(where)

    return lend


def _new(spec: Any, op: Op) -> Callable[[], Any]:
    """What makes an output of this spec, a list of them, or none."""
    if spec is None:
        return lambda: None
    if type(spec) is TensorSpec:
        return allocator(op, "an output", spec.shape, spec.dtype)
    parts = [_new(s, op) for s in spec]
    return lambda: [part() for part in parts]


class Short:
    """What is left to do for such a call."""

    def __init__(self, plan: Plan, tensors: Sequence[Any]):
        self._plan, self._room = plan, plan.workspace_size
        inputs = [a.name for a in plan.op.inputs if a.is_tensor]
        of_numpy = {np.ndarray, type(None)}
        self.lends = not of_numpy.issuperset(map(type, tensors))
        self._to_torch = not of_numpy.issuperset(map(type, _flat(tensors)))
        self._loans = list(map(_loan, tensors, map(plan.call.__getitem__, inputs)))
        self._outputs = [_new(plan.call[a.name], plan.op) for a in plan.op.outputs]
        places = {name: i for i, name in enumerate([*inputs, *(a.name for a in plan.op.outputs)])}
        used = zip(plan.op.tensors, plan.taking_part, strict=True)
        order = [places[a.name] if on else -1 for a, on in used]
        self._order = order if order != list(range(len(places))) else None  # None: as they come
        has_bfloat16 = BFLOAT16 in {s.dtype for a in plan.op.outputs for s in plan.call.specs(a.name)}
        plainly = self._to_torch and not has_bfloat16
        self._turn: Callable[[Array], Any] = sys.modules["torch"].from_numpy if plainly else to_torch
        first = plan.call[plan.op.outputs[0].name]
        simple = self._order is None and not self._room and len(self._outputs) == 1 and type(first) is TensorSpec
        self._only = self._outputs[0] if simple else None

    def arrays(self, tensors: Sequence[Any]) -> Sequence[Any]:
        """The memory of the tensors of such a call; raises if it is gone."""
        return [loan(tensor) for loan, tensor in zip(self._loans, tensors, strict=True)]

    def call(self, arrays: Sequence[Any]) -> Any:
        plan_cache.hits += 1
        if self._only is None:
            return self._call_any(arrays)
        output = self._only()  # one output and nothing else to see to, as for ELU: half a microsecond sooner
        self._plan.run(None, *arrays, output)
        return self._turn(output) if self._to_torch else output

    def _call_any(self, arrays: Sequence[Any]) -> Any:
        plan, views = self._plan, [*arrays, *(new() for new in self._outputs)]
        given = views if self._order is None else [views[i] if i >= 0 else None for i in self._order]
        if self._room:
            block = scratch.take(plan.op, self._room)
            plan.run(block, *given)
            scratch.give_back(block)
        else:
            plan.run(None, *given)
        results = self._as_torch(views[len(arrays) :]) if self._to_torch else views[len(arrays) :]
        return results[0] if len(results) == 1 else tuple(results)

    def _as_torch(self, outputs: list[Any]) -> list[Any]:
        turn = self._turn
        return [None if o is None else [turn(a) for a in o] if type(o) is list else turn(o) for o in outputs]


def remember(seen: Glimpse | None, plan: Plan) -> None:
    """Leaves a Short behind, where the long way found nothing that the key does not say."""
    if seen is None or VERBOSE or plan.value_rules or plan.advice:
        return
    arrays = (t for t in _flat(seen.tensors) if type(t) is np.ndarray)
    copied = any(step % a.itemsize for a in arrays for step in a.strides)
    if not copied and _say_all(plan.op, seen.attributes):
        plan_cache.remember(seen.key, Short(plan, seen.tensors))


_OF_NUMPY = [d.numpy.type for d in dtypes.ALL if d.numpy is not None]
_EXACT = frozenset({bool, int, type(None), *(t for t in _OF_NUMPY if issubclass(t, (np.bool_, np.integer)))})
_SIGNED_ZEROS = frozenset({float, *_OF_NUMPY}) - _EXACT


def _say_all(op: Op, attributes: Sequence[Any]) -> bool:
    """Whether attributes of the same types that are equal to these are the same to an operator."""
    args = (a for a in op.inputs if not a.is_tensor and a.python != HIDDEN)
    return all(_says_all(v, a.kind == "scalar") for a, v in zip(args, attributes, strict=True))


def _says_all(value: Any, has_sign: bool) -> bool:
    """NaN is equal to nothing, and 0 to −0, which matters to a factor but not to a probability, of kind double. Of
    other types than these nobody knows what is equal."""
    kind = type(value)
    if kind in _LISTS:
        return all(type(v) in _EXACT for v in value)
    return kind in _EXACT or (kind in _SIGNED_ZEROS and bool(value == value and (value != 0 or not has_sign)))


def clear() -> None:
    """Forgets all plans and calls, and gives back the scratch, the runs and the programs that were kept for them."""
    plan_cache.clear()
    idle_runs.clear()
    scratch.clear()
    for forget in forgetters:
        forget()
