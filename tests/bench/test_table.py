"""Verdicts, means and shares, from rows written by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from benchmarks import machine, one, pages, rows, table, targets
from benchmarks.measure import Call

from aclnn.base.dtype import FLOAT16, FLOAT32
from aclnn.kernels.native import isa


def row(ours: float, torch: float | None, **more: Any) -> rows.Row:
    times = {"aclnn": [ours] * 3 + [11]} | ({"torch": [torch] * 3 + [11]} if torch else {})
    facts = {"column": "given", "processor": "P", "cores": 2, "versions": {"torch": "2"}, "threads": 2}
    facts |= {"isa": "avx512"}
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
    assert given.target == 0.6
    assert fresh.target is None
    assert targets.geometric_mean("convolution", "float32", "given", "avx2") == 0.8
    assert targets.geometric_mean("unseen", "float32", "given", "avx512") == 0.65
    assert targets.geometric_mean("elu", "float16", "forward", "avx512") == 0.9


def test_shares_are_of_the_limit_that_took_turns() -> None:
    timed = row(2.0, 1.0, work={"flops": 300.0}, limit=100.0)
    timed["times"]["limit"] = [9.0, 0.5, 9.0, 11]
    (line,) = table.lines([timed])
    assert line.share == pytest.approx(150 / 200)
    assert line.others == {}
    assert math.isnan(table.lines([row(2.0, 1.0, work={"bytes": 100.0})])[0].share)


def test_the_limit_is_of_the_kind_of_the_work() -> None:
    product = machine.limit({"flops": machine.FEW}, FLOAT16)
    assert product is machine.limit({"flops": machine.FEW}, FLOAT32)
    assert machine.limit({"flops": machine.FEW - 1}, FLOAT32) is None
    assert machine.limit({"bytes": machine.OUT_OF_CACHE - 1.0}, FLOAT32) is machine.limit({}, FLOAT32) is None


def test_the_limit_goes_before_ours_as_often_as_before_theirs() -> None:
    calls: dict[str, Call] = {name: lambda: None for name in ("aclnn", "torch")}
    assert list(one._between(calls, lambda: None)) == ["aclnn", "limit", "torch"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(1.5, "1.50 s"), (0.0123, "12.3 ms"), (4.2e-6, "4.20 µs"), (0.25, "250 ms")]
)
def test_durations_have_three_digits(seconds: float, said: str) -> None:
    assert table.duration(seconds) == said


def test_rows_are_there_one_by_one_with_the_facts_of_their_process(tmp_path: Path) -> None:
    folder = tmp_path / "p-avx2"
    folder.mkdir()
    writer = rows.Writer(folder / "elu-given.jsonl")
    for process in (0, 1):
        writer.write({"process": process, "column": "given", "isa": "anything"})
        writer.write({"operator": "elu", "shape": "a", "dtype": "float32"})
        assert [r["process"] for r in rows.read(folder)] == list(range(process + 1))
    assert {r["isa"] for r in rows.read(folder)} == {"avx2"}
    assert [p.name for p in folder.iterdir()] == ["elu-given.jsonl"]


def test_what_is_measured_again_takes_the_place_of_its_old_rows_alone(tmp_path: Path) -> None:
    def write(times: int, *shapes: str) -> None:
        writer = rows.Writer(tmp_path / "elu-given.jsonl", run=f"of {times}")
        for process in range(times):
            writer.write({"process": process, "column": "given"})
            for shape in shapes:
                writer.write({"operator": "elu", "shape": shape, "dtype": "float32", "load": times})

    write(2, "a", "b")
    write(1, "a")
    assert [(r["shape"], r["load"], r["process"]) for r in rows.read(tmp_path)] == [
        ("b", 2, 0),
        ("b", 2, 1),
        ("a", 1, 0),
    ]


def test_the_machine_measured_last_comes_first(tmp_path: Path) -> None:
    for name, date in (
        ("old-avx512", ""),
        ("new-avx2", "2026-01-01"),
        ("new-avx512", "2026-01-02"),
        ("aged-avx2", "2025"),
    ):
        (tmp_path / name).mkdir()
        writer = rows.Writer(tmp_path / name / "elu-given.jsonl")
        writer.write({"process": 0, "column": "given"} | ({"date": date} if date else {}))
        writer.write({"operator": "elu", "shape": "a", "dtype": "float32"})
    assert list(rows.machines(tmp_path)) == ["new-avx2", "new-avx512", "aged-avx2", "old-avx512"]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"model name": "AMD EPYC", "cpu family": "25", "model": "17"}, "amd-epyc-zen4"),
        ({"model name": "AMD EPYC 7763 64-Core Processor", "cpu family": "25", "model": "1"}, "amd-epyc-zen3"),
        ({"model name": "Intel(R) Xeon(R) CPU @ 2.80GHz", "cpu family": "6", "model": "85"}, "intel-xeon-6-85"),
        ({"model name": "Intel(R) Xeon(R) Processor", "flags": "fpu amx_bf16 amx_tile"}, "intel-xeon-amx"),
    ],
)
def test_processors_have_short_names(said: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_described", lambda: said)
    assert machine.slug() == name


@pytest.mark.parametrize(
    ("flags", "limit", "level", "bfloat16"),
    [
        ("sse4_1 avx2 avx512f avx512_bf16", "native", "avx512", True),
        ("sse4_1 avx2 avx512f avx512_bf16", "avx512", "avx512", False),
        ("sse4_1 avx2 avx512f avx512_bf16", "avx2", "avx2", False),
        ("sse4_1 avx2", "native", "avx2", False),
        ("sse4_1 avx2", "sse41", "sse41", False),
    ],
)
def test_the_level_in_force_is_said(
    flags: str, limit: str, level: str, bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_described", lambda: {"model name": "P", "flags": flags})
    monkeypatch.setattr(machine.isa, "limit", lambda: isa._LEVELS["x86_64"].get(limit))
    assert (machine.facts()["isa"], machine.facts()["bfloat16"]) == (level, bfloat16)


def test_the_pages_say_what_the_rows_say() -> None:
    assert pages.main(["--check"]) == 0


def test_parts_of_both_languages_have_the_same_cells() -> None:
    rows_ = [row(0.5, 1.0), row(0.5, 1.0, column="fresh"), row(3.0, 1.0, column="growth", threads=1)]
    rows_ += [row(0.5, 1.0, operator="training", shape="step"), row(2.0, 1.0, operator="calls", column="fresh")]
    rows_ += [row(0.7, 1.0, operator="unseen", shape="x"), row(0.8, 1.0, column="forward")]
    rows_ += [{"operator": "elu", "shape": "a", "column": "memory", "provider": "aclnn", "peak": 2**20}]
    rows_ += [{"operator": "golden", "shape": "a pair", "column": "once", "seconds": 3.5, "peak": 2**28}]
    found = {"p-avx512": rows_}
    for name in ("speed", "doors", "shapes", "calls", "growth", "memory", "programs"):
        english, chinese = (pages.part(name, lang, found) for lang in ("en", "zh"))
        assert english.count("|") == chinese.count("|") > 0
        assert english != chinese
    assert "0.50 (0.50–0.50) ahead" in pages.part("shapes", "en", found)
    assert "0.50 (0.50–0.50) 领先" in pages.part("shapes", "zh", found)
    assert "elu | float32 | **0.50** (1, 0, 0) | **0.50** (1, 0, 0) | **0.80** (1, 0, 0)" in pages.part(
        "doors", "en", found
    )
    assert "target 0.6" in table.text(rows_)
    for lang in ("en", "zh"):
        assert "make bench" in pages.part("speed", lang, {})
        assert all(
            pages.say(pages.BESIDE, lang) in pages.part(name, lang, found) for name in ("speed", "doors", "shapes")
        )


def test_the_first_table_has_the_instruction_sets_of_the_newest_machine_side_by_side() -> None:
    found = {
        "p-avx2": [row(0.5, 1.0, isa="avx2", operator="conv_tbc")],
        "p-avx512": [
            row(1.5, 1.0, operator="conv_tbc"),
            row(0.7, 1.0, column="step"),
            row(0.7, 1.0, operator="unseen"),
        ],
        "q-avx512": [row(9.0, 1.0, operator="lstm")],
    }
    said = pages.part("speed", "en", found)
    assert "| conv_tbc | float32 | **0.50** | 1, 0, 0 | **1.50** | 0, 0, 1 | ≤ 0.85 / ≤ 0.80 |" in said
    assert "| convolution, unseen shapes | float32 |  |  | **0.70** | 1, 0, 0 | ≤ 0.80 / ≤ 0.65 |" in said
    assert "| training step | float32 |  |  | **0.70** | 1, 0, 0 | ≤ 0.85 |" in said
    assert "lstm |" not in said


def test_plots_are_drawn_twice_alike(tmp_path: Path) -> None:
    plot = pytest.importorskip("benchmarks.plot")
    found = [row(0.5, 1.0, column=c, shape=s, work={"bytes": 9.0}) for c in ("given", "out", "step") for s in "ab"]
    drawn = []
    for _ in range(2):
        plot.draw(found, tmp_path)
        drawn.append({p.name: p.read_bytes() for p in tmp_path.glob("*.svg")})
    assert drawn[0] == drawn[1]
    assert drawn[0].keys() == {"ratio-given.svg", "size-elu.svg"}


def test_rows_are_plain_json() -> None:
    assert json.loads(json.dumps(row(1.0, 1.0))) == row(1.0, 1.0)
