"""Calls whose like was made before, known again by one question.

The key of a call (call_key.py) asks every tensor for what it says of itself. Native code of ours compares numpy arrays
at once, and looks whether what is written lies apart. The door of PyTorch must know besides whether a mode, a transform
or a special tensor is about: PyTorch compares all of that for the code that it compiles. The name is not public: where
it is missing, no call with its tensors is familiar, which is right and slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from aclnn.contract.model import Op
from aclnn.kernels.native import array_guards
from aclnn.kernels.native.array_guards import Question
from aclnn.runtime.call_cache import MOST_RUNS_OF_ONE, CachedCall, call_cache
from aclnn.runtime.call_key import LISTS, CallKey, call_key, flat, says_all, torch_kinds, with_outputs
from aclnn.runtime.settings import context

if TYPE_CHECKING:
    from aclnn.runtime.operator import Operator

_NOTHING = None, 0
_LISTS = frozenset(LISTS)
MOST_ALIKE = 4  # kept of one key: with gradients and without, with other strides or settings

Attributes = tuple[Any, ...]
Pick = Callable[[Sequence[Any]], Sequence[Any]] | None
"""What finds the tensors that are compared among those of a call; None: they are all there."""


class Familiar:
    """A call that was made, to be made again on tensors that look like its own."""

    __slots__ = (
        *("_again", "_memory", "_on_tensors", "_operator", "_run"),
        *("attributes", "cached", "context", "is_like", "kinds", "learns"),
    )

    def __init__(self, operator: Operator, attributes: Attributes, cached: CachedCall, is_like: Question, learns: bool):
        replay = cached.replay
        assert replay is not None
        self._operator, self.attributes, self.cached, self.context = operator, attributes, cached, context()
        self.kinds = (*map(type, attributes),)
        self._memory = replay.memory if replay.has_loans or replay.has_lists else with_outputs  # which lie apart
        self._again, self._run, self.is_like, self.learns = replay.run, cached.run, is_like, learns
        self._on_tensors = [run for _ in range(MOST_RUNS_OF_ONE) if (run := replay.on_tensors(cached.plan)) is not None]

    def __call__(self, tensors: Sequence[Any], out: Any = None) -> Any:
        try:
            call_cache.note_use(self.cached)
            if self._on_tensors and (result := self._on_waiting_run(tensors)) is not None:
                return result
            memory = self._memory(tensors, out)
        except Exception:  # whatever it is, there is a sentence for it on the long way
            return self._operator.apply_anew((*tensors,), self.attributes, out)
        return self._again(self._run, memory, tensors, out)

    def _on_waiting_run(self, tensors: Sequence[Any]) -> Any:
        """The result of a run that nobody else has now; None if its memory is not fit for it."""
        run = self._on_tensors.pop()
        try:
            return run(*tensors)
        finally:
            self._on_tensors.append(run)


def recall(op: Op, tensors: Sequence[Any], attributes: Attributes, out: Any = None) -> Familiar | None:
    """The familiar call that this one is like, if there is one: most are like the one before, and need no key."""
    try:
        every = tensors if out is None else with_outputs(tensors, out)
        one, count = call_cache.latest.get(op, _NOTHING)
        if (
            count == len(every)
            and one.attributes == attributes
            and one.kinds == (*map(type, attributes),)
            and one.is_like(*every)
            and one.context == context()
        ):
            return one  # type: ignore[no-any-return]
        pick, calls = call_cache.familiar[_key(op, every, attributes)]
        compared = every if pick is None else pick(every)
        for one in calls:
            if one.is_like(*compared) and one.context == context():
                if pick is None and _LISTS.isdisjoint(one.kinds):
                    call_cache.latest[op] = one, len(every)
                return one  # type: ignore[no-any-return]
    except Exception:  # it is not familiar, or not plain
        return None
    return None


def remember(operator: Operator, tensors: Sequence[Any], attributes: Attributes, out: Any = None) -> None:
    """Makes a call familiar that was made, if it is one of numpy arrays or plain torch tensors that can be replayed."""
    op, every = operator.op, with_outputs(tensors, out)
    try:
        key, pick = _key(op, every, attributes), _pick(every)
        compared = every if pick is None else pick(every)
        _, alike = call_cache.familiar.get(key, (pick, ()))
        if len(alike) >= MOST_ALIKE:
            return
        cached, is_like = call_cache.ready(call_key(op, tensors, attributes, out, None, None)), _question(compared, out)
        if cached is not None and is_like is not None and says_all(op, tensors, attributes):
            learns = any(getattr(t, "requires_grad", False) for t in compared)
            call_cache.keep_familiar(key, (pick, (*alike, Familiar(operator, attributes, cached, is_like, learns))))
    except Exception:  # it is not plain, or PyTorch has no such name
        return


def _question(compared: Sequence[Any], out: Any) -> Question | None:
    """What asks whether tensors look like these; None where nobody can."""
    kinds = {*map(type, compared)}
    if kinds == {np.ndarray}:
        return array_guards.guard(compared, len(_present(with_outputs((), out))))
    if not kinds <= {*torch_kinds()} or len({*map(id, compared)}) < len(compared):
        return None  # to PyTorch's comparison, two that are one are like nothing
    is_like: Question = _guards()(*compared, dynamic_dims_sizes=[], dynamic_dims_strides=[]).check
    return is_like


def _key(op: Op, tensors: Sequence[Any], attributes: Attributes) -> CallKey:
    """What calls have in common that may be alike. Values come with their types: 1, 1.0 and True are three calls."""
    kinds = (*map(type, attributes), *map(type, tensors))
    if list not in kinds and tuple not in kinds:
        return op, tensors[0].shape, attributes, kinds
    parts: list[Any] = []  # as call_key has them: a call less
    for value in attributes:
        parts.append((*value, *map(type, value)) if type(value) in LISTS else value)
    for tensor in tensors:
        parts.append(len(tensor) if type(tensor) in LISTS else 0)
    return op, tensors[0].shape, (*parts,), kinds


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
