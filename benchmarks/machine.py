"""The machine that is measured: its name, its limits, the memory of this process."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
from collections.abc import Collection
from typing import Any

import numpy as np

from aclnn.kernels import onednn
from benchmarks.measure import Call, compare
from benchmarks.providers import has

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


def limits(names: Collection[str]) -> dict[str, float]:
    """What this machine can do now: operations per second of a large product, bytes per second of a triad."""
    calls = _torch_limits() if has("torch") else _numpy_limits()
    found, _ = compare({name: call for name, call in calls.items() if name in names}, 0.4)
    work = {"float32": 2 * 2048**3, "bfloat16": 2 * 2048**3, "triad": 3 * 2**27}
    return {name: float(f"{work[name] / timed.p20:.4g}") for name, timed in found.items()}


def _torch_limits() -> dict[str, Call]:
    import torch

    calls: dict[str, Call] = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        a, product = torch.ones(2048, 2048, dtype=dtype), torch.empty(2048, 2048, dtype=dtype)
        calls[name] = lambda a=a, product=product: torch.mm(a, a, out=product)  # type: ignore[misc]
    b, c, d = torch.ones(2**25), torch.ones(2**25), torch.empty(2**25)
    return calls | {"triad": lambda: torch.add(b, c, alpha=3, out=d)}


def _numpy_limits() -> dict[str, Call]:
    a = np.ones((2048, 2048), np.float32)
    b, c, d = np.ones(2**25, np.float32), np.ones(2**25, np.float32), np.empty(2**25, np.float32)
    return {"float32": lambda: a @ a, "triad": lambda: np.add(b, c, out=d)}


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
