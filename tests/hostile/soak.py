"""Mixed operators from several threads, through Python and through C, for as long as asked: `--minutes 30`.

Starts cold: the first calls of the process come from all threads at once; what is right is found out in another one.
Works in rounds of ten seconds; time in which the process was stopped does not count. Between two rounds no thread is
left, so that what is alive then is all that was leaked: handles and open files are counted exactly, resident memory by
its slope after a warm-up. Every result is compared with the bits that another process got right; one in fifty is made
from new numbers and judged by the float64 reference.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import gc
import multiprocessing
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill, kept, views
from aclnn.golden.judge.sound import judge
from tests.doors.c_door import CCall, library
from tests.harness import assert_sound, bits, call

RESULT = Path(__file__).parent / "results" / "soak.csv"
ROUND_SECONDS = 10
ONE_IN = 50
SEED = 5

Filled = dict[str, Any]
Expected = list[tuple[Case, list[bytes]]]


class Row(NamedTuple):
    """What is seen after a round."""

    minutes: float
    python_calls: int
    c_calls: int
    judged: int
    wrong: int
    rss_mib: float
    handles: int
    files: int
    threads: int


class Counts:
    """What the threads have done, all together."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.python = self.c = self.judged = 0
        self.wrong: list[str] = []

    def add(self, through: str, judged: bool, fault: str) -> None:
        with self.lock:
            self.python += through != "c"
            self.c += through == "c"
            self.judged += judged
            if fault:
                self.wrong.append(fault)


def through_python(case: Case, filled: Filled) -> None:
    call(case, filled)


def through_plan(case: Case, filled: Filled) -> None:
    given = {a.name: filled[a.name] for a in case.op.inputs}
    out = tuple(filled[a.name] for a in case.op.fresh) or None
    executor = getattr(aclnn, case.op.python)._plan(given, out, case.device, None, False)
    with aclnn.Stream() as stream:
        executor.run(np.empty(executor.workspace_size, np.uint8), stream)


def through_c(case: Case, filled: Filled) -> None:
    lib, stream = library(), ctypes.c_void_p()
    assert lib.aclrtCreateStream(ctypes.byref(stream)) == 0
    made = CCall(case, filled)
    code = made.plan() or made.run(stream) or int(lib.aclrtSynchronizeStream(stream))
    assert code == 0, made.message()
    made.destroy()
    assert lib.aclrtDestroyStream(stream) == 0


DOORS: dict[str, Callable[[Case, Filled], None]] = {"python": through_python, "plan": through_plan, "c": through_c}


def fault_of(case: Case, wanted: list[bytes], door: Callable[[Case, Filled], None], seed: int) -> str:
    """What is wrong with one call; nothing for a right one."""
    filled = fill(case, seed)
    given = kept(views(filled, case.op), case.op)
    door(case, filled)
    if seed == SEED:
        return "" if bits(case, filled) == wanted else f"{case.op} {case.note}: other bits than in another process"
    judged = judge(case.op, case.call, views(filled, case.op), given)
    return "; ".join(f"{case.op} {case.note}, seed {seed}: {o.name} is wrong" for o in judged if not o.sound)


def work(number: int, until: float, expected: Expected, counts: Counts) -> None:
    draw = random.Random(number)
    while time.monotonic() < until:
        case, wanted = draw.choice(expected)
        name = draw.choice(("python", "plan", "c", "c"))
        is_new = draw.randrange(ONE_IN) == 0
        seed = draw.randrange(10, 10**6) if is_new else SEED
        try:
            fault = fault_of(case, wanted, DOORS[name], seed)
        except Exception as error:
            fault = f"{case.op} {case.note} through {name}: {type(error).__name__}: {error}"
        counts.add(name, is_new, fault)


def one_round(number: int, threads: int, expected: Expected, counts: Counts) -> None:
    until = time.monotonic() + ROUND_SECONDS
    arguments = [(number * threads + i, until, expected, counts) for i in range(threads)]
    started = [threading.Thread(target=work, args=given) for given in arguments]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    gc.collect()


def cases() -> list[Case]:
    return [case for op in ops.all_ops() for case in ops.cases(op)]


def right_bits() -> list[list[bytes]]:
    """Of every case of every operator, judged by the reference."""
    warnings.simplefilter("ignore")
    library()  # built before the first round
    return [bits(case, assert_sound(case, "auto", SEED)) for case in cases()]


def expected_elsewhere() -> Expected:
    """What is right, from a process of its own: this one has called nothing yet."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return list(zip(cases(), pool.apply(right_bits), strict=True))


def seen(rounds: int, counts: Counts) -> Row:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    rss = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    files, threads = (len(os.listdir(f"/proc/self/{kind}")) for kind in ("fd", "task"))
    handles = library().aclnn_cpu_live_objects()
    calls = (counts.python, counts.c, counts.judged, len(counts.wrong))
    return Row(round(rounds * ROUND_SECONDS / 60, 2), *calls, round(rss, 1), handles, files, threads)


def slope(rows: list[Row]) -> float:
    """How fast resident memory grows after the first fifth, in MiB per minute."""
    after = rows[len(rows) // 5 :]
    if len(after) < 2:
        return 0.0
    return float(np.polyfit([r.minutes for r in after], [r.rss_mib for r in after], 1)[0])


def soak(minutes: float, threads: int) -> tuple[list[Row], list[str]]:
    expected, counts, rows = expected_elsewhere(), Counts(), list[Row]()
    while len(rows) < minutes * 60 / ROUND_SECONDS:
        one_round(len(rows), threads, expected, counts)
        rows.append(seen(len(rows) + 1, counts))
        print(*(f"{name} {value}" for name, value in rows[-1]._asdict().items()), sep=" · ", flush=True)
    return rows, counts.wrong


def faults(rows: list[Row], wrong: list[str]) -> list[str]:
    """What a run shows that it must not; memory may grow by what the allocator scatters, not by every call."""
    found = wrong[:20]
    for name in ("handles", "files"):
        counted = [getattr(row, name) for row in rows[1:]]
        if len(set(counted)) > 1:
            found.append(f"{name} went from {counted[0]} to {counted[-1]}, {min(counted)} to {max(counted)}")
    if len(rows) > 30 and slope(rows) > 0.5:
        found.append(f"resident memory grew by {slope(rows):.2f} MiB per minute")
    return found


def write(rows: list[Row], into: Path, every: int = 6) -> None:
    """One row per minute, and the last."""
    with into.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Row._fields)
        table.writerows([*rows[:-1:every], rows[-1]])


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.hostile.soak", description=__doc__)
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--threads", type=int, default=4)
    options.add_argument("--into", type=Path, help="where the table is written, such as tests/hostile/results/soak.csv")
    given = options.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows, wrong = soak(given.minutes, given.threads)
    if given.into:
        write(rows, given.into)
    found = faults(rows, wrong)
    print(f"memory grew by {slope(rows):.3f} MiB per minute after the first fifth")
    print(*found or ["nothing found"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
