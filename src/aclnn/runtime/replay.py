"""What is left to do for a plain functional call whose like was made before: find memory, run, hand back.

The key of the call has said all but addresses. A torch tensor must still have its memory; and an output that is given
must lie apart from the other tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from aclnn.base.dtype import BFLOAT16
from aclnn.base.foreign_arrays import to_torch
from aclnn.base.geometry import Array
from aclnn.base.tensor import Placement, TensorSpec
from aclnn.kernels.native.memory import addresses
from aclnn.runtime import scratch
from aclnn.runtime.call_key import LISTS, flat, torch_kinds, with_outputs
from aclnn.runtime.memory import LARGE, allocator
from aclnn.runtime.overlap import check_addresses
from aclnn.runtime.plan import Plan
from aclnn.runtime.verbose import VERBOSE

MOST_PLACES = 16  # in memory that are known of one tensor; and sets of them that were found to be apart
_ABSENT = -1  # where None stands: at the end

Place = int | slice
"""Where the memory of an argument stands among that of all: one array, or those of a list."""


class Loan:
    """The memory of torch tensors that look alike, as arrays: by address, for a tensor's own numpy() would forbid to
    resize its storage, as FSDP does."""

    __slots__ = ("_at", "reach", "size", "views")

    def __init__(self, spec: TensorSpec):
        self._at, self.size = Placement.of(spec).at, spec.dtype.itemsize
        self.reach = 0 if spec.is_empty else (spec.extent()[1] + 1) * self.size  # from where its storage begins
        self.views: dict[int, Array] = {}  # windows on memory, which own nothing: the same address, the same window

    def new_view(self, where: int) -> Array:
        if len(self.views) >= MOST_PLACES:
            self.views = {}  # another thread may be reading the old one
        view = self.views[where] = self._at(where)
        return view


class Replay:
    """What calls do that look like one which was made: found out once, from its plan and its arguments."""

    def __init__(self, plan: Plan, tensors: Sequence[Any], out: Any):
        op = self._op = plan.op
        self._room, self._gives = plan.workspace_size, out is not None
        every = with_outputs(tensors, out)
        given, fresh = flat(every), [s for a in op.fresh for s in plan.call.specs(a.name)]
        self._news = [] if self._gives else [allocator(op, "an output", s.shape, s.dtype) for s in fresh]
        places = _places(plan, tensors, out)
        used = zip(op.tensors, plan.taking_part, strict=True)
        order = [places[a.name] if on else _ABSENT for a, on in used]
        self._order = None if order == list(range(len(given) + len(self._news))) else order  # None: as they come
        in_a_row = self._order is not None and len(order) > 1 and not any(isinstance(place, slice) for place in order)
        self._arranged = itemgetter(*order) if in_a_row else None
        self._results = [_place_behind(len(given), places[a.name]) for a in op.fresh]
        self._loans = _loans(plan, given)
        self._turn = _turn(fresh) if self._loans else None
        self._apart: set[tuple[int, ...]] = set()
        some = (i for i, t in enumerate(given) if t is not None)
        self._present = itemgetter(*some) if any(t is None for t in given) else None
        self.has_lists = any(type(t) in LISTS for t in every)
        self.has_loans = bool(self._loans)
        self.is_plain = not (self.has_loans or self._gives or self.has_lists)
        simple = self._order is None and not self._room and len(self._news) == 1 and self._results == [0]
        self._only = self._news[0] if simple else None
        self._is_single = len(self._news) == 1 and self._results == [0]
        self._writes = self._gives and self._order is None and not self._room

    def on_tensors(self, plan: Plan) -> Callable[..., Any] | None:
        """A run of torch tensors that makes the result too, where that is small, and all there is to do."""
        if self._only is None or self._turn is None:
            return None
        result, inputs = plan.call[self._op.fresh[0].name], (a.name for a in self._op.inputs if a.is_tensor)
        make: Callable[..., Any] | None = getattr(plan.instantiate(), "on_tensors", None)
        if make is None or result.size * result.dtype.itemsize >= LARGE:
            return None
        made: Callable[..., Any] | None = make([plan.call[name] for name in inputs], result, torch_kinds()[0])
        return made

    def memory(self, tensors: Sequence[Any], out: Any) -> list[Any]:
        """The arrays of such a call, those of lists one by one. Raises if memory is gone, or if an output that is given
        meets another tensor."""
        given = [*tensors] if out is None else [*with_outputs(tensors, out)]
        if self.has_lists:
            given = flat(given)
        for i, loan in self._loans:
            tensor, size = given[i], loan.size
            where, past = tensor.data_ptr(), tensor.storage_offset() * size + loan.reach
            if past > tensor.untyped_storage().nbytes() or where % size or (loan.reach and not where):
                raise ValueError  # its memory was freed, or part of it, or does not begin where elements do
            view = loan.views.get(where)
            given[i] = loan.new_view(where) if view is None else view
        if self._gives:  # shapes and strides are those of the plan: addresses decide
            places = addresses(given if self._present is None else self._present(given))
            if places not in self._apart:
                self._check_apart(given, places)
        return given

    def _check_apart(self, given: list[Any], places: tuple[int, ...]) -> None:
        """No output meets another tensor, or there is a sentence."""
        check_addresses(self._op, self._in_order(given))
        if len(self._apart) >= MOST_PLACES:
            self._apart = set()
        self._apart.add(places)

    def run(self, run: Callable[..., None], memory: Sequence[Any], tensors: Sequence[Any], out: Any) -> Any:
        """Runs on that memory and on outputs of its own; returns these, or what was given to be written to."""
        if self._only is not None:  # one output and nothing else to see to, as for ELU: half a microsecond sooner
            output = self._only()
            run(None, *memory, output)
            return output if self._turn is None else self._turn(output)
        if self._writes:
            run(None, *memory)
            return out
        made = [new() for new in self._news]
        block = scratch.take(self._op, self._room) if self._room else None
        run(block, *self._in_order([*memory, *made]))
        if block is not None:
            scratch.give_back(block)
        if self._gives:
            return out
        if self._is_single:
            return made[0] if self._turn is None else self._turn(made[0])
        return self._handed_back(made if self._turn is None else [*map(self._turn, made)], tensors)

    def _in_order(self, views: list[Any]) -> Sequence[Any]:
        """As the contract has them."""
        if self._order is None:
            return views
        with_none = [*views, None]
        return self._arranged(with_none) if self._arranged is not None else [with_none[place] for place in self._order]

    def _handed_back(self, made: list[Any], tensors: Sequence[Any]) -> Any:
        if not self._results:  # the first tensor was updated
            return tensors[0]
        with_none = [*made, None]
        results = [with_none[place] for place in self._results]
        return results[0] if len(results) == 1 else (*results,)


def may_replay(plan: Plan) -> bool:
    """Whether there is nothing to say about such calls, and outputs are all fresh, or one that is updated."""
    if VERBOSE or plan.value_rules or plan.advice:
        return False
    return len(plan.op.fresh) == len(plan.op.outputs) or len(plan.op.outputs) == len(plan.op.tensors) == 1


def _places(plan: Plan, tensors: Sequence[Any], out: Any) -> dict[str, Place]:
    """Where the memory of every tensor argument stands: that of inputs, then that of outputs."""
    inputs, fresh = [a.name for a in plan.op.inputs if a.is_tensor], [a.name for a in plan.op.fresh]
    values = with_outputs(tensors, out if out is not None else tuple(map(plan.call.__getitem__, fresh)))
    places: dict[str, Place] = {}
    position = 0
    for name, value in zip([*inputs, *fresh], values, strict=True):
        count = len(value) if type(value) in LISTS else 1
        if value is None and out is None and name in fresh:  # none is made
            places[name], count = _ABSENT, 0
        else:
            places[name] = slice(position, position + count) if type(value) in LISTS else position
        position += count
    return places


def _place_behind(first: int, place: Place) -> Place:
    """The same where the first ones are left out."""
    if isinstance(place, slice):
        return slice(place.start - first, place.stop - first)
    return place if place == _ABSENT else place - first


def _loans(plan: Plan, given: list[Any]) -> list[tuple[int, Loan]]:
    """How the memory of torch tensors is found, with their places."""
    args = [*(a for a in plan.op.inputs if a.is_tensor), *plan.op.fresh]
    specs = flat([plan.call[a.name] for a in args])
    found = enumerate(zip(given, specs, strict=False))
    return [(i, Loan(spec)) for i, (t, spec) in found if not (t is None or type(t) is np.ndarray)]


def _turn(specs: list[TensorSpec]) -> Callable[[Array], Any]:
    """What makes torch tensors of arrays; bfloat16 takes a detour."""
    turn: Callable[[Array], Any] = sys.modules["torch"].from_numpy
    return to_torch if BFLOAT16 in {s.dtype for s in specs} else turn
