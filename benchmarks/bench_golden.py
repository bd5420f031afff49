"""`aclnn compare` on a pair of files larger than the memory it takes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from aclnn.golden.compare import compare
from benchmarks.machine import Peak, whole_peak

DTYPES = ("float32",)


def once(shape: dict[str, Any]) -> dict[str, Any]:
    """Seconds and peak memory of the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        golden = _written(Path(folder) / "golden.npy", shape["size"], 1.0)
        target = _written(Path(folder) / "target.npy", shape["size"], 1 + 1e-7)
        Peak()
        begun = time.perf_counter()
        compare(target, golden)
        return {"seconds": round(time.perf_counter() - begun, 2), "peak": whole_peak()}


def _written(path: Path, size: list[int], factor: float) -> Path:
    """A tile again and again, so that writing takes little memory."""
    count, *tile = size
    numbers = np.random.default_rng(0).standard_normal(tile, np.float32) * np.float32(factor)
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": tuple(size)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(count):
            file.write(numbers.tobytes())
    return path
