"""As many busy loops as cores beside a convolution and beside a training step: by how much each side becomes slower.

Means, not medians: what matters is how far a program gets, and the seldom calls that wait for a thread which another
program keeps from running are most of what is lost.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aclnn.base.dtype import FLOAT32
from benchmarks import bench_convolution, bench_training
from benchmarks.machine import whole_peak
from benchmarks.measure import Call
from benchmarks.providers import IN_TURN, made

DTYPES = ("float32",)
ROUNDS = 5  # alone and beside the loops: how often threads miss each other differs from one to the next
SECONDS, TURNS = 0.5, 2  # of one side, before the other has its turn; and how many turns
SETTLE = 0.3  # seconds after which the loops run


def once(shape: dict[str, Any]) -> dict[str, Any]:
    """Seconds of a call beside the loops, and how many times longer that is than alone, for ours and for PyTorch's."""
    makers = bench_training.makers if "batch" in shape else bench_convolution.makers
    calls = made(makers(shape, FLOAT32, "given"), IN_TURN)
    for call in calls.values():
        call()
    alone, beside = [], []
    for _ in range(ROUNDS):
        alone.append(_means(calls))
        with _busy_loops(len(os.sched_getaffinity(0))):
            beside.append(_means(calls))
    ratios = {name: [b[name] / a[name] for a, b in zip(alone, beside, strict=True)] for name in calls}
    slower = {name: round(statistics.median(of_rounds), 3) for name, of_rounds in ratios.items()}
    return {"seconds": round(statistics.median(b["aclnn"] for b in beside), 6), "slower": slower, "peak": whole_peak()}


@contextmanager
def _busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(SETTLE)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _means(calls: dict[str, Call]) -> dict[str, float]:
    """Seconds per call, side by side for a while."""
    spent, made_calls = dict.fromkeys(calls, 0.0), dict.fromkeys(calls, 0)
    for _ in range(TURNS):
        for name, call in calls.items():
            begun = time.perf_counter()
            while (took := time.perf_counter() - begun) < SECONDS:
                call()
                made_calls[name] += 1
            spent[name] += took
    return {name: spent[name] / made_calls[name] for name in calls}
