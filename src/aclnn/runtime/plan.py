"""Phase 1: check the call, choose a kernel, say how many bytes of scratch it needs. call_cache.py keeps plans."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aclnn import ops
from aclnn.base import language
from aclnn.base.chinese import translated
from aclnn.base.run_once import Once, kept
from aclnn.base.status import AclnnError, Status, invalid, reason
from aclnn.base.tensor import Placement
from aclnn.contract.call import Call
from aclnn.contract.check import check
from aclnn.contract.model import Arg, Op
from aclnn.contract.rules import Descending
from aclnn.kernels.native import floating
from aclnn.kernels.registry import Kernel, Prepared, Refusal, Run, kernels_of
from aclnn.runtime.reference import reference_kernel

log = logging.getLogger("aclnn")

_imported: Once[str, Any] = Once()  # the kernels of a family: a fork waits, or its child would have half of a module


@dataclass(frozen=True, eq=False)
class Plan:
    """A valid call and the kernel that will run it. Immutable, shared between executors."""

    op: Op
    call: Call
    kernel: str
    refused: tuple[tuple[str, str], ...]  # (kernel, reason) of those that were asked before
    prepared: Prepared

    @property
    def workspace_size(self) -> int:
        return self.prepared.workspace_size

    def instantiate(self) -> Run:
        """A run of its own for an executor. Whatever a kernel raises becomes a code."""
        try:
            return self.prepared.instantiate()
        except Exception as error:
            raise failure(self.op, self.kernel, error) from error

    @kept
    def taking_part(self) -> tuple[bool, ...]:
        """For every tensor argument, in contract order, whether it is read or written at all."""
        return tuple(self.call[a.name] is not None and a.takes_part(self.call) for a in self.op.tensors)

    @kept
    def placements(self) -> tuple[tuple[Placement, ...] | None, ...]:
        """For every tensor argument, in contract order, how its views lie in memory; None where it takes no part."""
        args = zip(self.op.tensors, self.taking_part, strict=True)
        return tuple(tuple(map(Placement.of, self.call.specs(a.name))) if used else None for a, used in args)

    @kept
    def outputs(self) -> tuple[Arg, ...]:
        return tuple(a for a, used in zip(self.op.tensors, self.taking_part, strict=True) if a.out and used)

    @kept
    def value_rules(self) -> tuple[Descending, ...]:
        """The rules that only the data can answer."""
        return tuple(r for r in self.op.all_rules if isinstance(r, Descending) and self.call[r.arg] is not None)

    @kept
    def advice(self) -> tuple[str, ...]:
        """What the maker of this valid call should know."""
        found = (a.sentence(self.call) for a in self.op.advice if a.applies(self.call))
        return tuple(f"{self.op.name}: {text}." for text in found)

    def explain(self, lang: str | None = None) -> str:
        """Which kernel runs, and who said no and why, in the language of the reader; `refused` is English always."""
        op, kernel, size = self.op.name, self.kernel, self.workspace_size
        if language.current(lang) == "zh":
            device = self.call.device.text("zh")
            lines = [f"{op}（{device}）：内核{translated(kernel)}，workspace为{size}字节"]
            lines += [f"  {name}拒绝：{translated(why)}" for name, why in self.refused]
        else:
            lines = [f"{op} on {self.call.device}: kernel {kernel}, workspace {size} bytes"]
            lines += [f"  {name} refused: {why}" for name, why in self.refused]
        return "\n".join(lines)


def make_plan(op: Op, call: Call, engine: str, threads: int) -> Plan:
    """Checks the call and plans it; raises the first broken rule."""
    violation = check(op, call)
    if violation is not None:
        raise violation.error()
    _warn_if_documented_contiguous(op, call)
    plan = _choose(op, call, engine, threads)
    for text in plan.advice:
        log.warning("%s", text)
    return plan


def _choose(op: Op, call: Call, engine: str, threads: int) -> Plan:
    """The plan of the first kernel that takes the call."""
    if not any(_has_elements(call, a) for a in op.outputs):
        return Plan(op, call, "nothing to compute", (), Prepared(lambda: _run_nothing))
    refused: dict[str, str] = {}
    for kernel in _in_turn(_candidates(op, engine), call, engine, refused):
        answer = _asked(kernel, op, call, threads)
        if isinstance(answer, Prepared):
            refused.pop(kernel.name, None)
            return Plan(op, call, kernel.name, tuple(refused.items()), answer)
        refused[kernel.name] = answer.reason
    raise _nobody(op, engine, refused)


def _nobody(op: Op, engine: str, refused: dict[str, str]) -> AclnnError:
    """Every kernel that was asked said no."""
    reasons = "; ".join(f"{name}: {why}" for name, why in refused.items()) or "no such kernel is installed"
    chinese = "；".join(f"{name}：{translated(why)}" for name, why in refused.items()) or "没有安装这样的内核"
    return invalid(
        f"{op.name}: engine {engine!r} cannot serve this call ({reasons}).",
        message_zh=f"{op.name}：引擎{engine!r}无法执行此调用（{chinese}）。",
    )


def _in_turn(kernels: list[Kernel], call: Call, engine: str, refused: dict[str, str]) -> Iterator[Kernel]:
    """Those that a call is worth, in the order in which they are asked; says why the others are not, or not yet."""
    later: list[Kernel] = []
    for kernel in kernels:
        if kernel.engine != "fast":
            yield from later
            later = []
        if engine == "auto" and (why := kernel.too_small(call)):
            refused[kernel.name] = why
        elif why := kernel.gives_way(call):
            refused[kernel.name] = why
            later.append(kernel)
        else:
            yield kernel
    yield from later


def _asked(kernel: Kernel, op: Op, call: Call, threads: int) -> Prepared | Refusal:
    """What a kernel says to a call."""
    try:
        return kernel.plan(call, threads)
    except Exception as error:
        raise failure(op, kernel.name, error) from error


def guarded(plan: Plan, run: Any, *given: Any) -> None:
    """Runs a kernel under the default floating-point state. Whatever it raises becomes a code."""
    try:
        if floating.is_default():
            run(*given)
        else:
            with floating.default():
                run(*given)
    except Exception as error:
        raise failure(plan.op, plan.kernel, error) from error


def failure(op: Op, kernel: str, error: Exception) -> AclnnError:
    """Whatever a kernel raised, as a code."""
    if isinstance(error, AclnnError):
        return AclnnError(error.code, f"{op.name}: {error.message}", argument=error.argument)
    if isinstance(error, MemoryError):
        return AclnnError(Status.ACLNN_ERR_RUNTIME_ERROR, f"{op.name}: out of memory in kernel {kernel}.")
    return AclnnError(Status.ACLNN_ERR_INNER, f"{op.name}: kernel {kernel} failed with {reason(error)}.")


def _candidates(op: Op, engine: str) -> list[Kernel]:
    reference = reference_kernel(op)
    if engine == "reference":
        return [reference]
    family = ops.family_of(op)
    _imported.get(family, lambda: kernels_of(op.name, family))
    registered = kernels_of(op.name, family)
    if engine == "auto":
        return [*registered, reference]
    return [k for k in registered if k.engine == engine]


def _has_elements(call: Call, arg: Arg) -> bool:
    return call[arg.name] is not None and arg.takes_part(call) and any(not s.is_empty for s in call.specs(arg.name))


def _run_nothing(workspace: object, *tensors: object) -> None:
    """Every output is empty or masked off."""


def _warn_if_documented_contiguous(op: Op, call: Call) -> None:
    if not call.device.limited:
        return
    for arg in op.outputs:
        dense = all(s.is_contiguous for s in call.specs(arg.name))
        if arg.contiguous_documented and arg.takes_part(call) and not dense:
            text = "%s: %s is not contiguous; the documents of %s ask for a contiguous one (computed all the same)"
            log.warning(text, op.name, arg.name, call.device)
