"""How far the cores of this machine lie apart, which a virtual one changes from minute to minute.

A line of cache takes 50 to 60 ns to the next core and back where both have one last cache, 300 to 350 where they have
not, and ratios of what two threads share differ by 5 % and more between the two.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent / "c" / "cores.cpp"
ROUNDS, TIMES = 1000, 3  # of which the quickest counts: a neighbour on a core doubles one


def apart() -> int | None:
    """Nanoseconds of a line's round trip between the first two cores; None where that cannot be measured."""
    library = _library()
    cores = sorted(os.sched_getaffinity(0)) if library is not None else []
    if library is None or len(cores) < 2:
        return None
    taken = [library.round_trip(cores[0], cores[1], ctypes.c_long(ROUNDS)) for _ in range(TIMES)]
    return round(min(taken)) if min(taken) >= 0 else None


@cache
def _library() -> ctypes.CDLL | None:
    if sys.platform != "linux" or shutil.which("g++") is None:
        return None
    with tempfile.TemporaryDirectory(prefix="aclnn-bench-") as folder:
        made = Path(folder) / "cores.so"
        command = ["g++", "-O2", "-shared", "-fPIC", "-pthread", str(SOURCE), "-o", str(made)]
        if subprocess.run(command, capture_output=True).returncode != 0:
            return None
        library = ctypes.CDLL(str(made))
    library.round_trip.restype = ctypes.c_double
    return library
