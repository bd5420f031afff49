"""How calls are timed: who takes a turn, how often, and what is kept."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from benchmarks import measure
from benchmarks.measure import Candidate, Load, Patience, Timed, compare, readings


class Clock:
    """Time that passes only in calls and sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: Counter[str] = Counter()
        self.order: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def call(self, name: str, *seconds: float) -> measure.Call:
        """A call that takes so long; the first times may differ."""

        def called() -> None:
            self.now += seconds[min(self.calls[name], len(seconds) - 1)]
            self.calls[name] += 1
            self.order.append(name)

        return called


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: made.now)
    monkeypatch.setattr(time, "sleep", made.sleep)
    return made


def test_medians_are_those_of_the_calls(clock: Clock) -> None:
    found, _ = compare({"aclnn": clock.call("aclnn", 0.5, 0.02), "torch": clock.call("torch", 0.03)}, 1.0)
    assert found["aclnn"].p20 == pytest.approx(0.02)
    assert found["aclnn"].p50 == pytest.approx(0.02)
    assert found["torch"].p80 == pytest.approx(0.03)
    assert found["aclnn"].readings == found["torch"].readings >= 11


def test_near_candidates_take_turns_in_both_orders(clock: Clock) -> None:
    compare({"aclnn": clock.call("aclnn", 0.02), "torch": clock.call("torch", 0.02)}, 1.0)
    turns = clock.order[-8:]
    assert turns[:2] == turns[4:6]
    assert turns[:2] == turns[2:4][::-1]


def test_a_short_call_is_repeated_within_a_reading(clock: Clock) -> None:
    found, _ = compare({"aclnn": clock.call("aclnn", 1e-6)}, 0.1)
    assert clock.calls["aclnn"] > found["aclnn"].readings * 100
    assert found["aclnn"].readings <= measure.MOST


@pytest.mark.parametrize("slow", [0.3, 1.4, 5.0])
def test_a_slow_candidate_eats_no_minutes_and_ours_keep_their_readings(clock: Clock, slow: float) -> None:
    found, _ = compare({"aclnn": clock.call("aclnn", 0.01), "torch": clock.call("torch", slow)}, 1.0)
    assert found["aclnn"].readings >= 11
    assert 1 <= found["torch"].readings <= 4
    assert found["torch"].p50 == pytest.approx(slow)
    assert clock.now < 2.5 + 2 * slow


def test_ours_are_timed_again_however_long_they_take(clock: Clock) -> None:
    found, _ = compare({"aclnn": clock.call("aclnn", 5.0, 3.0), "torch": clock.call("torch", 3.0)}, 1.0)
    assert found["aclnn"].readings >= 3
    assert found["aclnn"].p50 == pytest.approx(3.0)


def test_what_a_first_call_sets_up_is_not_counted(clock: Clock) -> None:
    assert Candidate(clock.call("a", 1.0, 0.1), ours=True).times == pytest.approx([0.1])
    assert Candidate(clock.call("c", 1e-3), ours=True).times == []
    assert Candidate(clock.call("b", 0.1), ours=True).times == pytest.approx([0.1, 0.1])


def test_readings_share_the_time(clock: Clock) -> None:
    candidates = {n: Candidate(clock.call(n, s), n == "aclnn") for n, s in (("aclnn", 0.02), ("torch", 0.018))}
    assert readings(candidates, 2.0)["aclnn"] == int(2.0 / sum(c.cost for c in candidates.values()))


def test_a_disturbed_measurement_is_made_again_and_the_quietest_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = {"aclnn": Timed(1, 1, 1, 2)}
    loads = iter([1.5, 0.4, 0.01, 9.0])
    monkeypatch.setattr(measure, "compare", lambda calls, seconds: (timed, next(loads)))
    monkeypatch.setattr(Patience, "_wait", lambda self: None)
    assert Patience(60).compare({}, 1.0) == (timed, 0.01)
    assert Patience(0).compare({}, 1.0) == (timed, 9.0)


def test_the_load_of_others_is_no_negative_number() -> None:
    load = Load()
    sum(range(10**5))
    assert load.of_others() >= 0


@pytest.mark.parametrize(("other", "seconds", "least"), [(0.1, 0.1, 5), (0.2, 0.1, 3), (0.1, 0.4, 11), (0.2, 0.4, 11)])
def test_who_is_hurried_reads_long_calls_seldom_but_not_those_that_are_close(
    clock: Clock, other: float, seconds: float, least: int
) -> None:
    found, _ = compare({"aclnn": clock.call("aclnn", 0.1), "torch": clock.call("torch", other)}, seconds)
    assert found["aclnn"].readings == found["torch"].readings == least
