"""Phase 2: run a plan on memory, once, or any number of times if it is repeatable."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import Any

from aclnn.base.foreign_arrays import Adopted, adopt
from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError
from aclnn.base.tensor import TensorSpec, kind_of
from aclnn.contract.check import Violation
from aclnn.contract.model import Arg, Op
from aclnn.contract.rows import are_rows, split
from aclnn.runtime.memory import usable_workspace
from aclnn.runtime.overlap import Views, check_addresses
from aclnn.runtime.plan import Plan, guarded
from aclnn.runtime.refusals import inner, parameter
from aclnn.runtime.stream import Job, Stream
from aclnn.runtime.verbose import VERBOSE, report

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
        scratch = usable_workspace(op, workspace, self.workspace_size)
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


def _in_steps(op: Op, arg: Arg, given: Adopted, planned: TensorSpec | None) -> Adopted:
    """Memory of rows as it was planned."""
    if op.rows is None or arg.name not in op.rows.args or planned is None or given.view is None:
        return given
    if not are_rows(given.spec, *planned.shape[:2]):
        return given
    return given._replace(spec=split(given.spec, *planned.shape[:2]), view=given.view.reshape(planned.shape))


def _brief(spec: Any) -> str:
    return "null" if spec is None else f"{spec.dtype} {list(spec.shape)} with strides {list(spec.strides)}"


def _after_fork() -> None:
    global _home
    _home = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
