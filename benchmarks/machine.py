"""The machine that is measured: its name, its limits, the memory of this process."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.dtype import BFLOAT16, DType
from aclnn.kernels import onednn
from benchmarks.measure import Call
from benchmarks.providers import has

OUT_OF_CACHE = 2**26  # bytes: smaller arrays may stay in a cache, which no triad measures
PACKAGES = ("aclnn-cpu", "numpy", "numba", "onednn-cpu-gomp", "torch", "jax")


def facts() -> dict[str, Any]:
    """The processor by its name, and the versions of what is timed."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"processor": _processor(), "cores": os.cpu_count(), "isa": _isa(), "versions": versions}


class Limit(NamedTuple):
    """What this machine does fastest of a kind of work, and how much of it: operations, or bytes that move."""

    call: Call
    work: float


def limit(work: Mapping[str, float], dtype: DType) -> Limit | None:
    """A large product in that dtype (float16 is computed in float32), or a triad; None where neither says anything."""
    if "flops" in work:
        return _product("bfloat16" if dtype is BFLOAT16 and has("torch") else "float32")
    return _triad() if work.get("bytes", 0) >= OUT_OF_CACHE else None


@cache
def _product(dtype: str) -> Limit:
    if not has("torch"):
        x = np.ones((2048, 2048), np.float32)
        return Limit(lambda: x @ x, 2 * 2048**3)
    import torch

    a = torch.ones(2048, 2048, dtype=getattr(torch, dtype))
    product = torch.empty_like(a)
    return Limit(lambda: torch.mm(a, a, out=product), 2 * 2048**3)


@cache
def _triad() -> Limit:
    if not has("torch"):
        x, y, z = np.ones(2**25, np.float32), np.ones(2**25, np.float32), np.empty(2**25, np.float32)
        return Limit(lambda: np.add(x, y, out=z), 3 * 2**27)
    import torch

    a, b, c = torch.ones(2**25), torch.ones(2**25), torch.empty(2**25)
    return Limit(lambda: torch.add(a, b, alpha=3, out=c), 3 * 2**27)


class Peak:
    """By how much the resident memory of this process grows at most."""

    def __init__(self) -> None:
        try:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")  # the peak begins anew
            self._start = _status("VmRSS")
        except OSError:  # not Linux: the peak of the whole life
            self._start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def grown(self) -> int:
        return max(0, whole_peak() - self._start)


def whole_peak() -> int:
    """The largest resident size, in bytes, since the last Peak began."""
    try:
        return _status("VmHWM")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _isa() -> str:
    try:
        return hex(onednn.library().functions.dnnl_get_effective_cpu_isa())
    except onednn.OneDnnError as reason:
        return str(reason)
