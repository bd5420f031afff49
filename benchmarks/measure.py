"""Timing on a machine that is not ours alone: turn by turn, with the load of others measured beside."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

SETTLE = 0.002  # seconds between candidates: OpenMP threads of one stop spinning before the next begins
LEAST = 3e-4  # seconds that one reading lasts: shorter calls are repeated
QUIET = 0.15  # cores that others may use


class Timed(NamedTuple):
    """Seconds per call of one candidate."""

    p20: float
    p50: float
    p80: float
    readings: int


def compare(candidates: dict[str, Callable[[], object]], seconds: float = 1.5) -> tuple[dict[str, Timed], float]:
    """The times of every candidate, and how many cores other processes used meanwhile."""
    repeats = {name: _repeats(call) for name, call in candidates.items()}
    found: dict[str, list[float]] = {name: [] for name in candidates}
    start, load = time.perf_counter(), Load()
    while len(next(iter(found.values()))) < 7 or time.perf_counter() - start < seconds:
        order = list(candidates) if len(next(iter(found.values()))) % 2 else list(candidates)[::-1]
        for name in order:
            time.sleep(SETTLE)
            found[name].append(_reading(candidates[name], repeats[name]))
        if len(found[order[0]]) >= 60:
            break
    return {name: _summary(times) for name, times in found.items()}, load.of_others()


def _repeats(call: Callable[[], object]) -> int:
    call()
    begun = time.perf_counter()
    call()
    taken = time.perf_counter() - begun
    return max(1, int(LEAST / max(taken, 1e-7)))


def _reading(call: Callable[[], object], repeats: int) -> float:
    call()  # warms caches, and wakes threads
    begun = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begun) / repeats


def _summary(times: list[float]) -> Timed:
    fifths = statistics.quantiles(times, n=5)
    return Timed(fifths[0], statistics.median(times), fifths[3], len(times))


class Load:
    """What other processes use of the processors, from /proc/stat."""

    def __init__(self) -> None:
        self._start = self._now()

    def of_others(self) -> float:
        """Cores, on average since the start."""
        (busy, own, clock), (busy0, own0, clock0) = self._now(), self._start
        return max(0.0, ((busy - busy0) - (own - own0)) / max(clock - clock0, 1e-9))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        try:
            with open("/proc/stat") as file:
                ticks = [int(n) for n in file.readline().split()[1:9]]
        except OSError:  # not Linux: nobody else is seen
            ticks = [0] * 8
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        own = os.times()
        return busy, own.user + own.system, time.perf_counter()


def wait_until_quiet(longest: float) -> float:
    """Waits until others use little, or for so many seconds; the load it left off at."""
    begun = time.perf_counter()
    while True:
        load = Load()
        time.sleep(0.4)
        seen = load.of_others()
        if seen < QUIET or time.perf_counter() - begun > longest:
            return seen
