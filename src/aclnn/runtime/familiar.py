"""Calls with torch tensors whose like was made before, known again by one question.

The key of a call (call_key.py) asks every tensor for what it says of itself; the door of PyTorch must know besides
whether a mode, a transform or a special tensor is about. PyTorch compares all of that at once for the code that it
compiles. The name is not public: where it is missing, no call is familiar, which is right and slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from operator import is_
from typing import TYPE_CHECKING, Any

from aclnn.contract.model import Op
from aclnn.runtime.call_cache import CachedCall, call_cache
from aclnn.runtime.call_key import LISTS, CallKey, call_key, flat, kinds_of, says_all, torch_kinds
from aclnn.runtime.settings import context

if TYPE_CHECKING:
    from aclnn.runtime.operator import Operator

MOST_ALIKE = 4  # kept of one key: with gradients and without, with other strides or settings

_NONE = type(None)
Guard = Callable[..., bool]


class Familiar:
    """A call that was made, to be made again on tensors of which `is_like` is true."""

    __slots__ = ("_attributes", "_cached", "_context", "_is_like", "_kinds", "_operator", "learns")

    def __init__(self, operator: Operator, attributes: tuple[Any, ...], cached: CachedCall, tensors: Sequence[Any]):
        self._operator, self._attributes, self._cached, self._context = operator, attributes, cached, context()
        self._is_like, self._kinds = _guard(*tensors), kinds_of(attributes)
        self.learns = any(t.requires_grad for t in tensors)

    def fits(self, tensors: Sequence[Any], attributes: tuple[Any, ...]) -> bool:
        """Whether such a call is the same to an operator. Attributes are equal: that is part of the key."""
        if not self._is_like(*tensors) or self._context != context():
            return False
        return all(map(is_, self._attributes, attributes)) or self._kinds == kinds_of(attributes)

    def __call__(self, tensors: Sequence[Any]) -> Any:
        cached = self._cached
        replay = cached.replay
        try:
            memory = replay.memory(tensors, None)  # type: ignore[union-attr]
        except Exception:  # whatever it is, there is a sentence for it on the long way
            return self._operator.apply_anew((*tensors,), self._attributes)
        call_cache.note_use(cached)
        return replay.run(cached.run, memory, tensors, None)  # type: ignore[union-attr]


def recall(op: Op, tensors: Sequence[Any], attributes: tuple[Any, ...]) -> Familiar | None:
    """The familiar call that this one is like, if there is one."""
    try:
        key, present = _outside(op, tensors, attributes)
        for one in call_cache.familiar.get(key, ()):
            if one.fits(present, attributes):
                return one  # type: ignore[no-any-return]
    except Exception:  # it is not plain
        return None
    return None


def remember(operator: Operator, tensors: Sequence[Any], attributes: tuple[Any, ...]) -> None:
    """Makes a call familiar that was made, if it is one of plain torch tensors that can be replayed."""
    op = operator.op
    try:
        key, present = _outside(op, tensors, attributes)
        alike = call_cache.familiar.get(key, ())
        if len(alike) >= MOST_ALIKE or not {*map(type, present)} <= {*torch_kinds()}:
            return
        if len({*map(id, present)}) < len(present):  # to PyTorch's comparison, two that are one are like nothing
            return
        cached = call_cache.ready(call_key(op, tensors, attributes, None, None, None))
        if cached is not None and says_all(op, tensors, attributes):
            call_cache.keep_familiar(key, (*alike, Familiar(operator, attributes, cached, present)))
    except Exception:  # it is not plain, or PyTorch has no such name
        return


def _outside(op: Op, tensors: Sequence[Any], attributes: tuple[Any, ...]) -> tuple[CallKey, Sequence[Any]]:
    """Which calls may be like this one, and the tensors that are to be compared."""
    if list in map(type, attributes):
        attributes = _constant(attributes)
    kinds = (*map(type, tensors),)
    if _NONE not in kinds and list not in kinds and tuple not in kinds:
        return (op, tensors[0].shape, attributes, kinds), tensors
    lengths = [len(t) if type(t) in LISTS else 1 for t in tensors]
    present = [t for t in flat(tensors) if t is not None]
    return (op, tensors[0].shape, attributes, kinds, *lengths), present


def _constant(attributes: tuple[Any, ...]) -> tuple[Any, ...]:
    """With tuples for lists."""
    values: list[Any] = []
    for value in attributes:
        values.append((*value,) if type(value) is list else value)
    return (*values,)


@cache
def _guards() -> Callable[..., Any]:
    """PyTorch's comparison: of type, dtype, device, sizes, strides, whether they learn, and what the dispatcher sees."""
    torch = sys.modules["torch"]
    made: Callable[..., Any] = torch._C._dynamo.guards.TensorGuards
    sample = torch.zeros(2, 3)
    is_like = made(sample, dynamic_dims_sizes=[], dynamic_dims_strides=[]).check
    others = sample.t().contiguous().t(), torch.zeros(3, 2), sample.double(), sample.clone().requires_grad_()
    if not is_like(sample.clone()) or any(map(is_like, others)):
        raise NotImplementedError
    return made


def _guard(*tensors: Any) -> Guard:
    check: Guard = _guards()(*tensors, dynamic_dims_sizes=[], dynamic_dims_strides=[]).check
    return check
