"""Verdicts, means and shares, from rows written by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from benchmarks import machine, one, pages, rows, table
from benchmarks.measure import Call

from aclnn.base.dtype import FLOAT16, FLOAT32


def row(ours: float, torch: float | None, **more: Any) -> rows.Row:
    times = {"aclnn": [ours] * 3 + [11]} | ({"torch": [torch] * 3 + [11]} if torch else {})
    facts = {"column": "given", "processor": "P", "cores": 2, "versions": {"torch": "2"}, "threads": 2}
    return (
        facts | {"operator": "elu", "shape": "large", "dtype": "float32", "times": times, "work": {}, "load": 0} | more
    )


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [((0.5, 0.9), "ahead"), ((0.9, 1.1), "tie"), ((1.0, 1.0), "tie"), ((0.2, 1.0), "tie"), ((1.01, 1.2), "behind")],
)
def test_the_whole_range_decides(ratios: tuple[float, float], verdict: str) -> None:
    (line,) = table.lines([row(ratio, 1.0) for ratio in (*ratios, sum(ratios) / 2)])
    assert (line.low, line.high) == pytest.approx(ratios)
    assert line.ratio == pytest.approx(sum(ratios) / 2)
    assert line.verdict == verdict


def test_a_process_without_torch_counts_for_our_time_only() -> None:
    (line,) = table.lines([row(1.0, 4.0), row(2.0, None), row(3.0, None)])
    assert line.ratio == line.high == pytest.approx(0.25)
    assert line.seconds == 2.0
    assert table.lines([row(1.0, None)]) == []


def test_rows_that_others_disturbed_are_left_out_unless_most_are() -> None:
    found = [row(0.5, 1.0), row(0.6, 1.0), row(9.0, 1.0, load=1.2)]
    assert table.lines(found)[0].high == pytest.approx(0.6)
    assert table.lines([*found, row(8.0, 1.0, load=1.0)])[0].high == pytest.approx(9.0)


def test_others_are_compared_by_medians_over_the_processes() -> None:
    alone = row(1.0, None) | {"times": {"jax": [8.0, 8.0, 8.0, 11]}}
    (line,) = table.lines([row(1.0, 4.0), row(2.0, 4.0), row(3.0, 4.0), alone])
    assert line.others == {"jax": 0.25}
    assert line.ratio == 0.5


def test_means_targets_and_counts_of_a_group() -> None:
    found = [row(0.5, 1.0, shape="a"), row(2.0, 1.0, shape="b"), row(0.5, 1.0, shape="a", column="fresh")]
    given, fresh = table.groups(table.lines(found))
    assert given.mean == pytest.approx(1.0)
    assert (given.count("ahead"), given.count("tie"), given.count("behind")) == (1, 0, 1)
    assert given.target == 0.85
    assert fresh.target is None


def test_shares_are_of_the_limit_that_took_turns() -> None:
    timed = row(2.0, 1.0, work={"flops": 300.0}, limit=100.0)
    timed["times"]["limit"] = [9.0, 0.5, 9.0, 11]
    (line,) = table.lines([timed])
    assert line.share == pytest.approx(150 / 200)
    assert line.others == {}
    assert math.isnan(table.lines([row(2.0, 1.0, work={"bytes": 100.0})])[0].share)


def test_the_limit_is_of_the_kind_of_the_work() -> None:
    product = machine.limit({"flops": 1.0}, FLOAT16)
    assert product is machine.limit({"flops": 1.0}, FLOAT32)
    assert machine.limit({"bytes": machine.OUT_OF_CACHE - 1.0}, FLOAT32) is machine.limit({}, FLOAT32) is None


def test_the_limit_goes_before_ours_as_often_as_before_theirs() -> None:
    calls: dict[str, Call] = {name: lambda: None for name in ("aclnn", "torch")}
    assert list(one._between(calls, lambda: None)) == ["aclnn", "limit", "torch"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(1.5, "1.50 s"), (0.0123, "12.3 ms"), (4.2e-6, "4.20 µs"), (0.25, "250 ms")]
)
def test_durations_have_three_digits(seconds: float, said: str) -> None:
    assert table.duration(seconds) == said


def test_rows_come_back_with_the_facts_of_their_process(tmp_path: Path) -> None:
    writer = rows.Writer(tmp_path / "elu-given.jsonl")
    for process in (0, 1):
        writer.write({"process": process, "column": "given"})
        writer.write({"operator": "elu", "shape": "a"})
    assert rows.read(tmp_path) == []
    writer.finish()
    assert [r["process"] for r in rows.read(tmp_path)] == [0, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["elu-given.jsonl"]


def test_the_pages_say_what_the_rows_say() -> None:
    assert pages.main(["--check"]) == 0


def test_parts_of_both_languages_have_the_same_cells() -> None:
    found = [row(0.5, 1.0), row(0.5, 1.0, column="fresh"), row(3.0, 1.0, column="growth", threads=1)]
    found += [row(0.5, 1.0, operator="training", shape="step"), row(2.0, 1.0, operator="calls", column="fresh")]
    found += [{"operator": "elu", "shape": "a", "column": "memory", "provider": "aclnn", "peak": 2**20}]
    found += [{"operator": "golden", "shape": "a pair", "column": "once", "seconds": 3.5, "peak": 2**28}]
    for name in ("speed", "shapes", "calls", "growth", "memory", "programs"):
        english, chinese = (pages.part(name, lang, found) for lang in ("en", "zh"))
        assert english.count("|") == chinese.count("|") > 0
        assert english != chinese
    assert "0.50 (0.50–0.50) ahead" in pages.part("shapes", "en", found)
    assert "0.50 (0.50–0.50) 领先" in pages.part("shapes", "zh", found)
    assert "**0.50** | ≤ 0.85 | 1, 0, 0" in pages.part("speed", "en", found)
    assert "make bench" in pages.part("speed", "en", [])
    assert "make bench" in pages.part("speed", "zh", [])
    assert "target 0.85" in table.text(found)


def test_plots_are_drawn_twice_alike(tmp_path: Path) -> None:
    plot = pytest.importorskip("benchmarks.plot")
    found = [row(0.5, 1.0), row(3.0, 1.0, column="growth"), row(3.0, 1.0, column="growth", threads=1)]
    found += [{"operator": "elu", "shape": "a", "column": "memory", "provider": "aclnn", "peak": 2**20}]
    drawn = []
    for _ in range(2):
        plot.draw(found, tmp_path)
        drawn.append({p.name: p.read_bytes() for p in tmp_path.glob("*.svg")})
    assert drawn[0] == drawn[1]
    assert drawn[0].keys() == {"ratio-given.svg", "growth.svg", "memory.svg"}


def test_rows_are_plain_json() -> None:
    assert json.loads(json.dumps(row(1.0, 1.0))) == row(1.0, 1.0)
