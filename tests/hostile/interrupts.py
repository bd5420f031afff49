"""`python -m tests.hostile.interrupts 2000 record`: so many interrupts at random times in stream code; counts hangs.

Each process takes 50 of them: real SIGINTs in the main thread, and exceptions raised in the workers by another thread.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

RESULT = Path(__file__).parent / "results" / "interrupts.csv"
EACH, PATIENCE = 50, 60.0

VICTIM = """
import ctypes, os, random, signal, sys, threading, time
import aclnn
seed, wanted = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(seed)
signal.signal(signal.SIGINT, signal.default_int_handler)
sent, stream, over = 0, None, threading.Event()

def trouble():
    global sent
    while sent < wanted:
        time.sleep(rng.random() * 0.004)
        found = stream
        worker = 0 if found is None else found._queue.worker
        if rng.random() < 0.5 or not worker:
            os.kill(os.getpid(), signal.SIGINT)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker), ctypes.py_object(KeyboardInterrupt))
        sent += 1
    over.set()

def use():
    global stream
    with aclnn.Stream() as stream:
        for _ in range(20):
            stream.submit(lambda: None)
        while not stream.query():
            pass
        stream.synchronize()
        stream.submit(lambda: time.sleep(0.0005))

ran = []
def started():
    try:
        threading.Thread(target=trouble, daemon=True).start()
    except KeyboardInterrupt:
        pass
started()
while not over.is_set():
    try:
        use()
    except KeyboardInterrupt:
        pass
    except aclnn.AclnnError as error:
        assert "ended from outside" in error.message, error
def after():
    global stream
    stream = None
    with aclnn.Stream() as last:
        last.submit(lambda: ran.append(1))
for _ in range(5):  # one may still be on its way
    try:
        after()
        break
    except KeyboardInterrupt:
        pass
assert ran, "the last stream did not work"
print("ended", sent)
"""


class Outcome(NamedTuple):
    interrupts: int
    processes: int
    hangs: int
    other_faults: int


def outcome(wanted: int) -> Outcome:
    """What came of so many interrupts."""
    processes = hangs = faults = 0
    for first in range(0, wanted, EACH):
        processes += 1
        command = [sys.executable, "-c", VICTIM, str(first), str(min(EACH, wanted - first))]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            hangs += 1
            continue
        if not ended.stdout.startswith("ended"):
            faults += 1
            print(ended.stderr[-2000:], file=sys.stderr)
    return Outcome(wanted, processes, hangs, faults)


def main(wanted: int, record: bool) -> int:
    found = outcome(wanted)
    print(found)
    if record:
        with RESULT.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([Outcome._fields, found])
    return 1 if found.hangs or found.other_faults else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), "record" in sys.argv[2:]))
