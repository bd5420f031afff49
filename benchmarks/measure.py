"""Timing on a machine that is not ours alone: turn by turn, with the load of others measured beside."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

Call = Callable[[], object]

SETTLE = 0.002  # seconds between candidates: OpenMP threads of one stop spinning before the next begins
LEAST = 3e-4  # seconds that one reading lasts: shorter calls are repeated
COLD = 0.01  # seconds: in longer calls, waking threads and filling caches no longer counts
LONG = 0.06  # seconds: of longer calls, fewer readings are enough
ENDLESS = 2.0  # seconds: a longer call beside ours is made once
FAR = 5  # times slower than the first candidate: a few readings tell the same
HURRIED = 0.2  # seconds: a row that gets less takes few readings of long calls
CLOSE = 1.25  # times: nobody is hurried where it matters who is ahead
MOST = 100  # readings
QUIET = 0.15  # cores that others may use


class Timed(NamedTuple):
    """Seconds per call of one candidate."""

    p20: float
    p50: float
    p80: float
    readings: int


class Several:
    """A call that stands for several of them."""

    def __init__(self, make: Callable[[int], object], count: int):
        self._make, self.count = make, count

    def __call__(self) -> object:
        return self._make(self.count)


class Candidate:
    """A call, how long it takes at first sight, and its readings."""

    def __init__(self, call: Call, ours: bool):
        self.call, self._each = call, call.count if isinstance(call, Several) else 1
        self.repeats, first = 1, _seconds(call)
        if first > ENDLESS and not ours:
            self.seconds, self.times = first, [first]
            return
        self.seconds = _seconds(call)
        if self.seconds < COLD:
            self.seconds = min(self.seconds, _seconds(call), _seconds(call))
        self.repeats = max(1, int(LEAST / max(self.seconds, 1e-7)))
        self.times = [self.seconds] if self.seconds > COLD else []
        if self.seconds > LONG and first < 1.2 * self.seconds:  # nothing was set up: it counts
            self.times.append(first)

    @property
    def cost(self) -> float:
        """Seconds of one reading."""
        return SETTLE + self.seconds * (self.repeats + (self.seconds < COLD))

    def read(self) -> None:
        time.sleep(SETTLE)
        if self.seconds < COLD:
            self.call()
        begun = time.perf_counter()
        for _ in range(self.repeats):
            self.call()
        self.times.append((time.perf_counter() - begun) / self.repeats)

    def summary(self) -> Timed:
        fifths = statistics.quantiles(self.times * 2, n=5, method="inclusive")  # twice: one reading is enough for it
        p20, p50, p80 = (seconds / self._each for seconds in (fifths[0], statistics.median(self.times), fifths[3]))
        return Timed(p20, p50, p80, len(self.times))


def compare(calls: dict[str, Call], seconds: float = 1.0) -> tuple[dict[str, Timed], float]:
    """The times of every candidate, and how many cores other processes used meanwhile."""
    load = Load()
    candidates = {name: Candidate(call, name == "aclnn") for name, call in calls.items()}
    wanted = readings(candidates, seconds)
    rounds = max(wanted.values())
    for turn in range(rounds):
        for name in list(calls)[:: 1 if turn % 2 else -1]:
            if len(candidates[name].times) * rounds <= turn * wanted[name]:  # few readings are spread over the rounds
                candidates[name].read()
    return {name: candidate.summary() for name, candidate in candidates.items()}, load.of_others()


def readings(candidates: dict[str, Candidate], seconds: float) -> dict[str, int]:
    """How many readings of each fit into the time; the slow ones may not eat that of the others."""
    first = next(iter(candidates.values())).seconds
    near = {name: c for name, c in candidates.items() if c.seconds <= FAR * first}
    least = _fewest(first, [c.seconds for c in list(near.values())[1:]], seconds)
    many = min(MOST, max(least, int(seconds / sum(c.cost for c in near.values()))))
    fits = {name: int(seconds / 3 / c.cost) for name, c in candidates.items()}
    few = {name: min(many, max(2 if c.seconds < ENDLESS else 1, fits[name])) for name, c in candidates.items()}
    return {name: many if name in near else few[name] for name in candidates}


def _fewest(first: float, others: list[float], seconds: float) -> int:
    """How many readings there are at least, whatever they take."""
    if first < LONG:
        return 11
    if seconds < HURRIED:
        return 5 if any(first / CLOSE < other < first * CLOSE for other in others) else 3
    return 11 if first < 5 * LONG else 7


def _seconds(call: Call) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


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


class Patience:
    """Measures again when others were busy, until the quiet or the given seconds have come."""

    def __init__(self, seconds: float):
        self.left = seconds

    def compare(self, calls: dict[str, Call], seconds: float) -> tuple[dict[str, Timed], float]:
        best = compare(calls, seconds)
        while best[1] > QUIET and self.left > 0:
            begun = time.perf_counter()
            self._wait()
            best = min(best, compare(calls, seconds), key=lambda found: found[1])
            self.left -= time.perf_counter() - begun
        return best

    def _wait(self) -> None:
        begun = time.perf_counter()
        while time.perf_counter() - begun < self.left:
            load = Load()
            time.sleep(0.3)
            if load.of_others() < QUIET:
                return
