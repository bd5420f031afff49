"""The machine that is measured: its name, its limits, the memory of this process."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import resource
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.dtype import BFLOAT16, DType
from aclnn.kernels.native import isa
from benchmarks.measure import Call
from benchmarks.providers import has

OUT_OF_CACHE = 2**26  # bytes: smaller arrays may stay in a cache, which no triad measures
FEW = 1e8  # operations: a smaller problem is not held against a large product
PACKAGES = ("aclnn-cpu", "numpy", "numba", "onednn-cpu-gomp", "torch", "jax")


def facts() -> dict[str, Any]:
    """The processor by its name, and the versions of what is timed."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    who = {"processor": _described()["model name"], "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
    return who | {"isa": level(), "bfloat16": multiplies_bfloat16(), "versions": versions}


def multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for it that are allowed in this process."""
    return isa.limit() is None and not _flags().isdisjoint({"avx512_bf16", "amx_bf16", "bf16"})


def level() -> str:
    """The widest vectors that are allowed in this process: avx512, avx2, sse41, neon, or what the processor is."""
    levels = {"avx512f": "avx512", "avx2": "avx2", "sse4_1": "sse41", "asimd": "neon"}
    allowed = isa.limit()
    for flag, name in levels.items():
        if flag in _flags() and (allowed is None or flag.replace("4_", "4.") in allowed.features | {"asimd"}):
            return name
    return isa.architecture()


def slug() -> str:
    """A short name of the processor: amd-epyc-zen4, intel-xeon-amx."""
    about = _described()
    words = re.sub(r"\(\w+\)|\b(CPU|Processor)\b|@.*", " ", about["model name"]).lower().split()
    family, model = (int(about.get(name, "0")) for name in ("cpu family", "model"))
    core = "amx" if "amx_bf16" in _flags() else f"{family}-{model}"  # virtual machines say any model
    core = _zen(family, model) if words[0] == "amd" else core
    return "-".join([*words[:2], core])


def _zen(family: int, model: int) -> str:
    if family == 23:
        return "zen2" if model >= 0x30 else "zen1"
    if family == 25:
        return "zen4" if model >> 4 in (1, 6, 7, 10) else "zen3"
    return "zen5" if family == 26 else f"{family}-{model}"


class Limit(NamedTuple):
    """What this machine does fastest of a kind of work, and how much of it: operations, or bytes that move."""

    call: Call
    work: float


def limit(work: Mapping[str, float], dtype: DType) -> Limit | None:
    """A large product in that dtype, or a triad; None where neither says anything. float16 is computed in float32, and
    so is bfloat16 without instructions: PyTorch's own product of it then takes half a minute."""
    if work.get("flops", 0) >= FEW:
        return _product("bfloat16" if dtype is BFLOAT16 and has("torch") and multiplies_bfloat16() else "float32")
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


@cache
def _described() -> dict[str, str]:
    """What /proc/cpuinfo says of the first core."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:  # not Linux
        first = ""
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}
    return {"model name": platform.processor() or platform.machine()} | said


def _flags() -> set[str]:
    return set((_described().get("flags") or _described().get("Features", "")).split())
