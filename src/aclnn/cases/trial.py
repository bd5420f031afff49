"""Running a case once through the public path, timing it and judging what came out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aclnn.base import exit_codes
from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError, Status, ours, reason
from aclnn.contract.call import Call
from aclnn.contract.cases import Case, fill, kept, views
from aclnn.contract.model import Op
from aclnn.golden.judge.sound import Judged, judge, truths
from aclnn.golden.read.casefile import load_case
from aclnn.runtime import settings
from aclnn.runtime.executor import Executor
from aclnn.runtime.plan import make_plan

PASS, FAIL, SKIPPED, ERROR = "pass", "FAIL", "skipped", "error"
RAN, BROKEN = "ran", "broken"  # and was not checked; and the failure is our own
STEADY = 0.2  # seconds of repeated runs that give a quick case a steady time


@dataclass
class Trial:
    """What a case did: the kernel that ran, its best time, the judged outputs; or the error that refused it."""

    case: Case
    kernel: str = ""
    milliseconds: float = 0.0
    arrays: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)  # the same before the run, where it updates in place
    judged: list[Judged] | None = None  # None: nobody looked
    error: AclnnError | None = None

    @property
    def verdict(self) -> str:
        if self.error is not None:
            return ERROR if exit_codes.of(self.error.code) == exit_codes.BAD_INPUT else BROKEN
        return verdict_of(self.judged)


def worst_of(judged: list[Judged]) -> float:
    """The largest error in units of the allowed one."""
    return max((j.worst for j in judged), default=0.0)


def verdict_of(judged: list[Judged] | None) -> str:
    """One word for what was found; a call that asks for no output has nothing to judge."""
    if not judged:
        return RAN if judged is None else SKIPPED
    return PASS if worst_of(judged) <= 1 else FAIL


def try_case(case: Case, *, check: bool, seed: int = 0, engine: str | None = None, seconds: float = STEADY) -> Trial:
    """Fills, plans and runs a case, again and again for so many seconds. A refusal is a result, not an exception."""
    trial = Trial(case)
    try:
        case = case.in_steps()
        plan = make_plan(case.op, case.call, settings.current_engine(engine), settings.current_threads())
        trial.kernel = plan.kernel
        trial.arrays = views(_filled(case, seed), case.op)
        trial.given = kept(trial.arrays, case.op)
        executor = Executor(plan, [trial.arrays[a.name] for a in case.op.tensors], repeatable=True)
        trial.milliseconds = _best_time(executor, seconds)
        _run_afresh(executor, trial.arrays, trial.given)
        if check:
            trial.judged = judge(case.op, case.call, trial.arrays, trial.given)
    except Exception as error:  # one row that breaks must not take the others with it
        trial.error = ours(error)
    return trial


def judge_saved(path: Path, case: Case) -> list[Judged] | None:
    """Judges the outputs that an earlier run has saved; None unless all of them are there, and of this very call."""
    try:
        saved = load_case(path)
        if not _same_call(saved.op, saved.call, case):
            return None
        found = list(truths(saved.op, saved.call, saved.targets, saved.given))
    except AclnnError:
        return None
    if any(result is None for _, result in found):
        return None
    return [Judged(truth.name, truth.ratio(result)) for truth, result in found]


def _same_call(op: Op, call: Call, case: Case) -> bool:
    if op is not case.op or call.device is not case.device:
        return False
    tensors = all(_kinds(call, a.name) == _kinds(case.call, a.name) for a in op.tensors)
    return tensors and all(call[a.name] == case.values[a.name] for a in op.args if not a.is_tensor)


def _kinds(call: Call, name: str) -> list[tuple[Any, ...]]:
    return [(spec.dtype, spec.shape) for spec in call.specs(name)]


def _filled(case: Case, seed: int) -> dict[str, Any]:
    try:
        return fill(case, seed)
    except (MemoryError, ValueError) as error:  # ValueError: so many bytes that 64 bits cannot count them
        text = f"{case.op.name}: there is no memory for the data of this case ({reason(error)})."
        raise AclnnError(Status.ACLNN_ERR_RUNTIME_ERROR, text) from error


def _run_afresh(executor: Executor, arrays: dict[str, Any], given: dict[str, Any]) -> None:
    """Gives back what the runs so far have updated in place, and runs once more if there is such a thing."""
    updated = [a.name for a in executor.plan.op.outputs if a.updated]
    for name in updated:
        arrays[name][...] = given[name]
    if updated:
        executor.run(_workspace(executor))


def _workspace(executor: Executor) -> Array | None:
    return np.empty(executor.workspace_size, np.uint8) if executor.workspace_size else None


def _best_time(executor: Executor, seconds: float) -> float:
    workspace = _workspace(executor)
    best, spent = float("inf"), 0.0
    while spent <= seconds:
        start = time.perf_counter()
        executor.run(workspace)
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + max(took, 0.01)
    return best * 1e3
