"""Calls with torch tensors whose like was made before, known again by one question.

The key of a call (call_key.py) asks every tensor for what it says of itself; the door of PyTorch must know besides
whether a mode, a transform or a special tensor is about. PyTorch compares all of that at once for the code that it
compiles. The name is not public: where it is missing, no call is familiar, which is right and slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any

from aclnn.contract.model import Op
from aclnn.runtime.call_cache import CachedCall, call_cache
from aclnn.runtime.call_key import LISTS, CallKey, call_key, flat, kinds_of, says_all, torch_kinds
from aclnn.runtime.settings import context

if TYPE_CHECKING:
    from aclnn.runtime.operator import Operator

MOST_ALIKE = 4  # kept of one key: with gradients and without, with other strides or settings

Attributes = tuple[Any, ...]
Pick = Callable[[Sequence[Any]], Sequence[Any]] | None
"""What finds the tensors that are compared among those of a call; None: they are all there."""


class Familiar:
    """A call that was made, to be made again on tensors that look like its own."""

    __slots__ = ("_again", "_memory", "_operator", "_run", "attributes", "cached", "context", "is_like", "learns")

    def __init__(self, operator: Operator, attributes: Attributes, cached: CachedCall, tensors: Sequence[Any]):
        replay = cached.replay
        assert replay is not None
        self._operator, self.attributes, self.cached, self.context = operator, attributes, cached, context()
        self._memory, self._again, self._run = replay.memory, replay.run, cached.run
        self.is_like = _guards()(*tensors, dynamic_dims_sizes=[], dynamic_dims_strides=[]).check
        self.learns = any(t.requires_grad for t in tensors)

    def __call__(self, tensors: Sequence[Any]) -> Any:
        try:
            memory = self._memory(tensors, None)
        except Exception:  # whatever it is, there is a sentence for it on the long way
            return self._operator.apply_anew((*tensors,), self.attributes)
        call_cache.note_use(self.cached)
        return self._again(self._run, memory, tensors, None)


def recall(op: Op, tensors: Sequence[Any], attributes: Attributes) -> Familiar | None:
    """The familiar call that this one is like, if there is one. Tensors are compared by PyTorch. Attributes are equal,
    that is part of the key; and of the same types, as those that are the same objects are at once."""
    try:
        pick, calls = call_cache.familiar[_key(op, tensors, attributes)]
        compared = tensors if pick is None else pick(tensors)
        for one in calls:
            if one.is_like(*compared) and one.context == context():
                known = one.attributes
                if all(map(is_, known, attributes)) or kinds_of(known) == kinds_of(attributes):
                    return one  # type: ignore[no-any-return]
    except Exception:  # it is not familiar, or not plain
        return None
    return None


def remember(operator: Operator, tensors: Sequence[Any], attributes: Attributes) -> None:
    """Makes a call familiar that was made, if it is one of plain torch tensors that can be replayed."""
    op = operator.op
    try:
        key, pick = _key(op, tensors, attributes), _pick(tensors)
        compared = tensors if pick is None else pick(tensors)
        _, alike = call_cache.familiar.get(key, (pick, ()))
        if len(alike) >= MOST_ALIKE or not {*map(type, compared)} <= {*torch_kinds()}:
            return
        if len({*map(id, compared)}) < len(compared):  # to PyTorch's comparison, two that are one are like nothing
            return
        cached = call_cache.ready(call_key(op, tensors, attributes, None, None, None))
        if cached is not None and says_all(op, tensors, attributes):
            call_cache.keep_familiar(key, (pick, (*alike, Familiar(operator, attributes, cached, compared))))
    except Exception:  # it is not plain, or PyTorch has no such name
        return


def _key(op: Op, tensors: Sequence[Any], attributes: Attributes) -> CallKey:
    """What calls have in common that may be alike. Attributes that are lists cannot be hashed."""
    kinds: tuple[Any, ...] = (*map(type, tensors),)
    if list in kinds or tuple in kinds:
        lengths: list[Any] = []
        for tensor, kind in zip(tensors, kinds, strict=True):
            lengths.append(len(tensor) if kind in LISTS else kind)
        return op, tensors[0].shape, attributes, kinds, (*lengths,)
    return op, tensors[0].shape, attributes, kinds


def _pick(tensors: Sequence[Any]) -> Pick:
    if any(type(t) in LISTS for t in tensors):
        return _present
    there = [i for i, t in enumerate(tensors) if t is not None]
    if len(there) == len(tensors):
        return None
    return itemgetter(*there) if len(there) > 1 else lambda given: (given[there[0]],)


def _present(tensors: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for tensor in flat(tensors):
        if tensor is not None:
            found.append(tensor)
    return found


@cache
def _guards() -> Callable[..., Any]:
    """What compares type, dtype, device, sizes, strides, whether a tensor learns, and what the dispatcher sees."""
    torch = sys.modules["torch"]
    made: Callable[..., Any] = torch._C._dynamo.guards.TensorGuards
    sample = torch.zeros(2, 3)
    is_like = made(sample, dynamic_dims_sizes=[], dynamic_dims_strides=[]).check
    others = sample.t().contiguous().t(), torch.zeros(3, 2), sample.double(), sample.clone().requires_grad_()
    if not is_like(sample.clone()) or any(map(is_like, others)):
        raise NotImplementedError
    return made
