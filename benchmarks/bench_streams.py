"""Two jobs on two streams, each on one thread, beside the same two one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import FLOAT32
from benchmarks.machine import whole_peak
from benchmarks.measure import Patience
from benchmarks.shapes import convolution_arguments

DTYPES = ("float32",)
RUNS = 4  # of each job


def once(shape: dict[str, Any]) -> dict[str, Any]:
    """Seconds of both ways."""
    both, one_by_one = _ways(shape)
    found, _ = Patience(20).compare({"both": both, "serial": one_by_one}, 3.0)
    seconds, serial = (round(found[name].p50, 4) for name in ("both", "serial"))
    return {"seconds": seconds, "serial": serial, "peak": whole_peak()}


def _ways(shape: dict[str, Any]) -> tuple[Callable[[], None], Callable[[], None]]:
    arguments = convolution_arguments(shape, FLOAT32)
    with aclnn.threads(1):
        plans = [aclnn.convolution_backward.plan(*arguments, repeatable=True) for _ in range(2)]
    jobs = [(plan, np.empty(plan.workspace_size, np.uint8), aclnn.Stream()) for plan in plans]

    def both() -> None:
        for plan, workspace, stream in jobs:
            for _ in range(RUNS):
                plan.run(workspace, stream=stream)
        for _, _, stream in jobs:
            stream.synchronize()

    def one_by_one() -> None:
        for plan, workspace, _ in jobs:
            for _ in range(RUNS):
                plan.run(workspace)

    return both, one_by_one
