"""One process of a benchmark: times every provider on the shapes of one operator, and prints rows of JSON.

python -m benchmarks.one elu --column given --threads 2
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import resource
import sys
from typing import Any

import numpy as np

import aclnn
from aclnn.base import dtype as dtypes
from aclnn.kernels import onednn
from benchmarks.measure import compare, wait_until_quiet
from benchmarks.providers import has
from benchmarks.shapes import shapes_of

PACKAGES = ("aclnn-cpu", "numpy", "numba", "onednn-cpu-gomp", "torch", "jax")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operator")
    parser.add_argument("--column", choices=("fresh", "given", "memory"), default="given")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--only", default="", help="names of shapes, separated by commas")
    parser.add_argument("--dtypes", default="", help="dtypes, separated by commas")
    parser.add_argument("--provider", default="", help="for memory: whose")
    parser.add_argument("--seconds", type=float, default=1.5, help="per shape")
    parser.add_argument("--patience", type=float, default=20, help="seconds to wait for a quiet machine, per shape")
    given = parser.parse_args(arguments)
    if has("torch"):
        import torch

        torch.set_num_threads(given.threads)
    with aclnn.threads(given.threads):
        run(given)


def run(given: argparse.Namespace) -> None:
    bench = importlib.import_module(f"benchmarks.bench_{given.operator}")
    limits = {} if given.column == "memory" else measured_limits()
    facts = {**machine(), **limits, "threads": given.threads, "column": given.column, "growth": given.growth}
    wanted = [n for n in given.only.split(",") if n]
    for name in given.dtypes.split(",") if given.dtypes else bench.DTYPES if not given.growth else ("float32",):
        dtype = dtypes.by_name(name)
        assert dtype is not None
        for shape_name, shape in shapes_of(given.operator, given.growth).items():
            if wanted and shape_name not in wanted:
                continue
            row = {"operator": given.operator, "shape": shape_name, "dtype": name, **facts}
            if given.column == "memory":
                row |= memory(bench, shape, dtype, given.provider)
            else:
                row |= times(bench, shape, dtype, given)
            print(json.dumps(row), flush=True)


def times(bench: Any, shape: dict[str, Any], dtype: Any, given: argparse.Namespace) -> dict[str, Any]:
    candidates = bench.candidates(shape, dtype, given.column == "fresh")
    wait_until_quiet(given.patience)
    found, load = compare(candidates, given.seconds)
    rows = {name: {k: round(v, 9) for k, v in timed._asdict().items()} for name, timed in found.items()}
    return {"times": rows, "load": round(load, 2), "work": bench.work(shape, dtype)}


def memory(bench: Any, shape: dict[str, Any], dtype: Any, provider: str) -> dict[str, Any]:
    """By how many bytes the largest size of the process grows when a provider runs three times."""
    candidate = bench.candidates(shape, dtype, True).get(provider)
    if candidate is None:
        return {"provider": provider, "peak": None}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        candidate()
    return {"provider": provider, "peak": 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)}


def measured_limits() -> dict[str, float]:
    """What this machine can do now: multiply-adds of a large float32 product, bytes of a triad."""
    a = np.ones((2048, 2048), np.float32)
    b, c = np.ones(2**25, np.float32), np.empty(2**25, np.float32)
    if has("torch"):
        import torch

        x, y, z = torch.from_numpy(a), torch.from_numpy(b), torch.from_numpy(c)
        product = torch.empty_like(x)
        found, _ = compare(
            {"product": lambda: torch.mm(x, x, out=product), "triad": lambda: torch.add(y, y, alpha=3, out=z)}, 1.0
        )
    else:
        found, _ = compare({"product": lambda: a @ a, "triad": lambda: np.multiply(b, 3, out=c)}, 1.0)
    return {"sgemm": 2 * 2048**3 / found["product"].p20, "triad": 3.0 * b.nbytes / found["triad"].p20}


def machine() -> dict[str, Any]:
    """The processor by its name, and the versions of what is timed."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"processor": _processor(), "cores": os.cpu_count(), "isa": _isa(), "versions": versions}


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


if __name__ == "__main__":
    main(sys.argv[1:])
