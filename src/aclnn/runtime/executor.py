"""Phase 2: run a plan on memory, once, or any number of times if it is repeatable."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from aclnn.base import language
from aclnn.base.adopt import Adopted, adopt
from aclnn.base.chinese import translated
from aclnn.base.dtype import DType
from aclnn.base.geometry import Array, overlap, same_view
from aclnn.base.status import AclnnError, Status, reason
from aclnn.base.tensor import TensorSpec, kind_of
from aclnn.contract.check import Violation
from aclnn.contract.model import Arg, Op
from aclnn.contract.rows import are_rows, split
from aclnn.kernels.native.memory import LINE, address, aligned
from aclnn.runtime.plan import Plan, guarded
from aclnn.runtime.stream import Job, Stream

Views = Sequence[Any]
"""The tensors of a call in contract order: arrays, lists of arrays, None where one is absent."""

LARGE = 2**19  # bytes of memory that begin a line: vectors that cross two are slower to write, finding one takes 1 µs


VERBOSE = os.environ.get("ACLNN_VERBOSE", "") not in ("", "0")

_LAST_ADDRESS = 2**63  # of any process

_home = object()  # this process


class Executor:
    """A plan bound to memory."""

    def __init__(self, plan: Plan, views: Views, *, repeatable: bool = False, result: Any = None, plan_us: float = 0.0):
        self.plan = plan
        self.repeatable = repeatable
        self.result = result  # what a functional call would return: the outputs in the caller's kind of array
        self._views = list(views)
        self._run = plan.instantiate()
        self._claims = [None]  # taken by the run of an executor that runs once
        self._again: tuple[Any, Job] | None = None  # a workspace, and the job that was checked and ran with it
        self._plan_us = plan_us
        self._settle()

    @property
    def workspace_size(self) -> int:
        return self.plan.workspace_size

    @property
    def kernel(self) -> str:
        return self.plan.kernel

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        return self.plan.refused

    def explain(self, lang: str | None = None) -> str:
        return self.plan.explain(lang)

    def run(self, workspace: Any = None, stream: Stream | None = None) -> Any:
        """Runs the plan: at once without a stream, else after what the stream already has. Returns the outputs."""
        again = self._again
        if again is not None and stream is None and again[0] is workspace:  # nothing has changed since
            self._execute(again[1])
            return self.result
        op = self.plan.op
        if stream is not None and not isinstance(stream, Stream):
            raise parameter(op, f"stream is {kind_of(stream)}; it must be an aclnn.Stream or None", "stream")
        if not self._claims:
            raise self._second_run()
        scratch = _scratch(op, workspace, self.workspace_size)
        views = self._bound_views()
        check_addresses(op, views, scratch)
        job = partial(execute, self.plan, self._run, scratch, views)
        if self.repeatable:
            self._again = workspace, self._bound(scratch, views) or job
        else:
            self._claim()
        if stream is None:
            self._execute(job)
        else:
            self._submit(stream, job)
        return self.result

    def _claim(self) -> None:
        """Of two that come at once, one runs: taking is a single step."""
        try:
            self._claims.pop()
        except IndexError:
            raise self._second_run() from None

    def _submit(self, stream: Stream, job: Job) -> None:
        try:
            stream.submit(lambda: self._execute(job))
        except AclnnError:  # refused; after an interrupt it may be on the stream, and stays claimed
            if not self.repeatable:
                self._claims.append(None)
            raise

    def _bound(self, scratch: Array | None, views: list[Any]) -> Job | None:
        """The same job without what need not be done again."""
        if self.plan.value_rules:
            return None
        bind = getattr(self._run, "bound", None)
        if bind is None:
            return partial(guarded, self.plan, self._run, scratch, *views)
        return partial(guarded, self.plan, bind(scratch, *views))

    def _second_run(self) -> AclnnError:
        text = "this executor has already run; plan(…, repeatable=True) makes one that may run again"
        return inner(self.plan.op, text)

    def set_address(self, name: str, array: Any, index: int | None = None) -> None:
        """Exchanges the memory of a tensor (of element `index`, for a list) for memory of the same spec."""
        op = self.plan.op
        position = next((i for i, a in enumerate(op.tensors) if name in (a.name, a.snake)), None)
        if position is None:
            choices = ", ".join(a.snake for a in op.tensors)
            raise parameter(op, f"there is no tensor {name!r}; choose one of {choices}", name)
        arg = op.tensors[position]
        planned = self._planned(arg, index)
        given = _in_steps(op, arg, adopt(array, arg.name, writable=arg.out), planned)
        if given.view is None:
            raise parameter(op, f"the view of {arg.name} leaves its storage; it must stay inside", arg.name)
        if planned is None or not given.spec.lies_like(planned):
            raise parameter(
                op,
                f"{arg.name} was planned as {_brief(planned)} but the new memory is "
                f"{_brief(given.spec)}; the two must be equal",
                arg.name,
            )
        self._again = None
        if index is None:
            self._views[position] = given.view
        else:
            self._views[position] = [*self._views[position]]
            self._views[position][index] = given.view
        if arg.out:
            self._exchange_result(arg, array, index)

    def _exchange_result(self, arg: Arg, array: Any, index: int | None) -> None:
        """What a run returns is what it wrote to."""
        outputs = self.plan.op.outputs
        several = isinstance(self.result, (tuple, list)) and len(self.result) == len(outputs)
        results = list(self.result) if several else [self.result]
        at = outputs.index(arg) if several else 0
        if index is None:
            results[at] = array
        else:
            results[at] = [*results[at]]
            results[at][index] = array
        self.result = tuple(results) if several else results[0]

    def _planned(self, arg: Arg, index: int | None) -> TensorSpec | None:
        """What a tensor, or an element of a list, was planned as."""
        planned: Any = self.plan.call[arg.name]
        if planned is None:
            return None
        if arg.kind == "tensor":
            if index is not None:
                raise parameter(self.plan.op, f"{arg.name} is one tensor; index is {index} but must be None", "index")
            return planned  # type: ignore[no-any-return]
        if not isinstance(index, int) or not 0 <= index < len(planned):
            text = f"{arg.name} is a list of {len(planned)}; index is {index} but must be 0..{len(planned) - 1}"
            raise parameter(self.plan.op, text, "index")
        return planned[index]  # type: ignore[no-any-return]

    def _bound_views(self) -> list[Any]:
        return [v if used else None for v, used in zip(self._views, self.plan.taking_part, strict=True)]

    def _settle(self) -> None:
        """What belongs to this process: whoever was at work when it was forked off stayed in the parent."""
        self._home = _home
        self._one_at_a_time = threading.RLock()
        self._at_work = False

    def _execute(self, job: Job) -> None:
        if self._home is not _home:  # as ProcessLock does, 0.1 µs sooner, which is a tenth of a small run
            self._settle()
        with self._one_at_a_time:
            if self._at_work:  # a second run would take the workspace and the outputs from under the first
                text = "this executor is at work on this very thread; a call inside its run needs one of its own"
                raise inner(self.plan.op, text)
            self._at_work = True
            try:
                self._timed(job) if VERBOSE else job()
            finally:
                self._at_work = False

    def _timed(self, job: Job) -> None:
        start = time.perf_counter()
        job()
        report(self.plan, self._plan_us, (time.perf_counter() - start) * 1e6)


def execute(plan: Plan, run: Any, scratch: Array | None, views: Views) -> None:
    """Asks the rules that only data can answer, then runs the kernel."""
    check_values(plan, views)
    guarded(plan, run, scratch, *views)


def check_values(plan: Plan, views: Views) -> None:
    """What only data can say."""
    for rule in plan.value_rules:
        position = next(i for i, a in enumerate(plan.op.tensors) if a.name == rule.arg)
        words = rule.broken_by(plan.call, views[position])
        if words is not None:
            raise Violation(plan.op, rule, words).error()


def check_addresses(op: Op, views: Views, scratch: Array | None = None) -> None:
    """What only addresses can say: no output may overlap another tensor, and no tensor the workspace."""
    found = [(arg, name, view) for arg, name, view in _every_view(op, views) if view.size]
    ranges = sorted((*_byte_range(view), i) for i, (_, _, view) in enumerate(found))
    reaching: list[tuple[int, int]] = []  # (end, index) of ranges that may still meet the next one
    for low, high, i in ranges:
        reaching = [(end, j) for end, j in reaching if end > low]
        for _, j in reaching:
            _check_pair(op, found[j], found[i])
        reaching.append((high, i))
    if scratch is not None:
        for arg, name, view in found:
            if np.may_share_memory(view, scratch):  # an input there would be written over while it is read
                raise parameter(op, f"{name} overlaps the workspace; the two must be apart", arg.name)


NamedView = tuple[Arg, str, Array]
"""A tensor's argument, its name for a message (`params[3]` in a list), its memory."""


def _check_pair(op: Op, one: NamedView, other: NamedView) -> None:
    (first, _, a), (second, _, b) = one, other
    if not (first.out or second.out) or not overlap(a, b):
        return
    if op.in_place and first.out != second.out and same_view(a, b):
        return
    allowed = "may only be the same view or apart" if op.in_place else "must be apart"
    (arg, out, _), (_, met, _) = (one, other) if first.out else (other, one)
    raise parameter(op, f"{out} overlaps {met} in memory; the two {allowed}", arg.name)


def _in_steps(op: Op, arg: Arg, given: Adopted, planned: TensorSpec | None) -> Adopted:
    """Memory of rows as it was planned."""
    if op.rows is None or arg.name not in op.rows.args or planned is None or given.view is None:
        return given
    if not are_rows(given.spec, *planned.shape[:2]):
        return given
    return given._replace(spec=split(given.spec, *planned.shape[:2]), view=given.view.reshape(planned.shape))


def _every_view(op: Op, views: Views) -> Iterator[NamedView]:
    for arg, view in zip(op.tensors, views, strict=True):
        if isinstance(view, (list, tuple)):
            yield from ((arg, f"{arg.name}[{i}]", one) for i, one in enumerate(view) if one is not None)
        elif view is not None:
            yield arg, arg.name, view


def _byte_range(view: Array) -> tuple[int, int]:
    start = view.__array_interface__["data"][0]
    ends = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    return start + sum(e for e in ends if e < 0), start + sum(e for e in ends if e > 0) + view.itemsize


def _scratch(op: Op, workspace: Any, needed: int) -> Array | None:
    if needed == 0:
        return None
    if workspace is None:
        check_workspace(op, None, 0, needed)
    try:
        memory = memoryview(workspace)
        if memory.format == "O":  # our bytes would lie where Python keeps references
            raise TypeError("it holds Python objects")
        scratch: Array = np.frombuffer(memory.cast("B"), np.uint8)
    except Exception as error:  # buffers of others may raise anything
        text = f"workspace is {kind_of(workspace)} ({reason(error)}); it must be one block of bytes"
        raise parameter(op, text, "workspace") from error
    if not scratch.flags.writeable:
        raise parameter(op, "workspace is read-only; it must be writable", "workspace")
    check_workspace(op, address(scratch), scratch.size, needed)
    return scratch


def check_workspace(op: Op, start: int | None, size: int, needed: int) -> None:
    """The rule for a workspace, through every door; null is fine where none is needed."""
    if not start:
        if needed:
            text = f"{op.name}: workspace is null; {needed} bytes are needed."
            raise AclnnError(Status.ACLNN_ERR_PARAM_NULLPTR, text, argument="workspace")
    elif size < needed:
        raise parameter(op, f"workspace has {size} bytes but phase 1 asked for {needed}", "workspace")
    elif start + size > _LAST_ADDRESS:
        text = f"workspace has {size} bytes at {start:#x}, which no memory can hold; it must be memory"
        raise parameter(op, text, "workspace")


def new_memory(op: Op, name: str, shape: tuple[int, ...], dtype: DType) -> Array:
    """Fresh memory for a tensor or a workspace, or a code."""
    return allocator(op, name, shape, dtype)()


def allocator(op: Op, name: str, shape: tuple[int, ...], dtype: DType) -> Callable[[], Array]:
    """What makes such memory again and again."""
    size, kind = math.prod(shape) * dtype.itemsize, dtype.numpy

    def allocate() -> Array:
        try:
            if size < LARGE:
                return np.empty(shape, kind)
            whole = np.empty(size + LINE, np.uint8)
            where = address(whole)
            memory: Array = np.ndarray(shape, kind, whole, aligned(where) - where)
            return memory
        except (MemoryError, ValueError, OverflowError) as error:  # the last two: more bytes than 64 bits can count
            text = f"{op.name}: out of memory for {name} of {dtype} {list(shape)}."
            raise AclnnError(Status.ACLNN_ERR_RUNTIME_ERROR, text, argument=name) from error

    return allocate


def parameter(op: Op, text: str, argument: str) -> AclnnError:
    return AclnnError(Status.ACLNN_ERR_PARAM_INVALID, f"{op.name}: {text}.", argument=argument)


def no_memory(op: Op, name: str) -> AclnnError:
    text = f"{op.name}: {name} has a null address; a tensor that is not empty must have memory."
    return AclnnError(Status.ACLNN_ERR_PARAM_NULLPTR, text, argument=name)


def inner(op: Op, text: str) -> AclnnError:
    return AclnnError(Status.ACLNN_ERR_INNER, f"{op.name}: {text}.")


def _brief(spec: Any) -> str:
    return "null" if spec is None else f"{spec.dtype} {list(spec.shape)} with strides {list(spec.strides)}"


def report(plan: Plan, plan_us: float, run_us: float) -> None:
    """One parseable line per run: fields between commas, of which there are no others. Reasons are for its reader."""
    shapes = " ".join(f"{a.name}={_signature(plan, a)}" for a in plan.op.tensors if plan.call[a.name] is not None)
    said = translated if language.current() == "zh" else str
    refused = "|".join(f"{name}:{said(why)}" for name, why in plan.refused).replace(",", ";")
    print(
        f"aclnn,{plan.op.name},{shapes},kernel={plan.kernel},refused={refused},plan_us={plan_us:.1f},run_us={run_us:.1f}",
        file=sys.stderr,
        flush=True,
    )


def _signature(plan: Plan, arg: Arg) -> str:
    return "+".join(f"{s.dtype}:{'x'.join(map(str, s.shape))}" for s in plan.call.specs(arg.name))


def _after_fork() -> None:
    global _home
    _home = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
