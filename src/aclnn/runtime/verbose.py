"""What ACLNN_VERBOSE=1 prints: which kernel ran, who refused, and how long it took."""

from __future__ import annotations

import os
import sys

from aclnn.base import language
from aclnn.base.chinese import translated
from aclnn.contract.model import Arg
from aclnn.runtime.plan import Plan

VERBOSE = os.environ.get("ACLNN_VERBOSE", "") not in ("", "0")


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
