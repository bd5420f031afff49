"""`python -m tests.hostile.cold_starts 200 record`: so many cold processes through each door; counts those that fail.

See cold.py for what a process does. A third of those through Python fork while their threads are at work, a third
spawn; half of those through PyTorch spawn.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

# PyTorch itself hangs in the child of a process whose threads were at work in it: torch.randn already does.
MIDDLES = {"python": ["none", "fork", "spawn"], "torch": ["none", "spawn"]}
RESULT = Path(__file__).parent / "results" / "cold.csv"
THREADS, AT_ONCE = 4, 2  # of a process, and processes side by side


class Outcome(NamedTuple):
    processes_through_python: int
    processes_through_pytorch: int
    threads: int
    failures: int


def lines(door: str, threads: int, middle: str, folder: Path | None) -> list[str]:
    """What a process says, with this cache or with everybody's."""
    command = [sys.executable, "-m", "tests.hostile.cold", door, str(threads), middle]
    environment = {**os.environ, **({"ACLNN_CACHE_DIR": str(folder)} if folder else {})}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return sorted(set(ended.stdout.splitlines()))


def failures(door: str, processes: int, folder: Path) -> list[str]:
    """What went wrong in so many processes that find a full cache, beside one with one thread."""
    expected, middles = lines(door, 1, "none", folder), MIDDLES[door]

    def fault(n: int) -> str | None:
        middle = middles[n % len(middles)]
        try:
            same = lines(door, THREADS, middle, folder) == expected
        except (AssertionError, subprocess.TimeoutExpired) as error:
            return f"{door}, {middle}: {error}"
        return None if same else f"{door}, {middle}: other bits"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [found for found in pool.map(fault, range(processes)) if found is not None]


def main(processes: int, record: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = [fault for door in MIDDLES for fault in failures(door, processes, Path(folder))]
    print(*found, f"{len(found)} of {processes} processes × {len(MIDDLES)} doors failed", sep="\n")
    if record:
        outcome = Outcome(processes, processes, THREADS, len(found))
        with RESULT.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([Outcome._fields, outcome])
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), "record" in sys.argv[2:]))
