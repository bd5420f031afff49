"""Two baselines: a target and a third party, each beside float64, with faults planted on either side."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.base import exit_codes
from aclnn.golden.join_reports import join
from aclnn.golden.judge.standards import STANDARDS, TWO_BASELINES
from aclnn.golden.read import containers
from aclnn.golden.result import FAIL, PASS, SKIPPED, DumpComparison, OutputReport
from aclnn.golden.show import page, terminal
from aclnn.golden.steps import SharedWork
from tests.golden.dumping import BF16, Array, DumpWriter, save

CONV = "Functional.conv2d.0.forward"
RATIOS = dict(zip(("max_rel", "mean_rel", "rmse"), STANDARDS[TWO_BASELINES].rows["any"], strict=True))


def written(folder: Path, dtype: Any = np.float32) -> Path:
    w = DumpWriter(folder)
    shapes = ((4, 3, 16, 16), (8, 3, 3, 3), (8,))
    w.conv("Functional.conv2d.0", *(w.draw(*s, dtype=dtype) for s in shapes), padding=1)
    w.elu("Functional.elu.0", w.draw(5, 6, dtype=dtype), [1.0, False], 1.0)
    return w.finish()


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("exact"))


def changed(dump: Path, folder: Path, change: Callable[[Array], Array]) -> Path:
    """A copy of a dump with another output of its convolution."""
    shutil.copytree(dump, folder)
    path = folder / "dump_tensor_data" / f"{CONV}.output.0.pt"
    before = np.array(containers.read(path).arrays[path.stem])
    save(path, np.asarray(change(before)).astype(before.dtype))
    return folder


def noisy(size: float) -> Callable[[Array], Array]:
    """Relative errors of this size, the same draw each time: two such results differ by the factor of their sizes."""
    draw = np.random.default_rng(3).uniform(-1, 1, (4, 8, 16, 16))
    return lambda a: a.astype(np.float64) * (1 + size * draw)


def beside(target: Path, third: Path, **options: Any) -> OutputReport:
    found = aclnn.compare(target, also=third, **options)
    (report,) = (r for r in found.reports if r.case == CONV)
    return report


def test_the_numbers_are_those_of_the_documents() -> None:
    assert RATIOS == {"max_rel": 10, "mean_rel": 2, "rmse": 2}
    asks = STANDARDS[TWO_BASELINES].asks
    assert "at most 10, 2 and 2 times" in asks.en
    assert "10、2、2倍" in asks.zh


@pytest.mark.parametrize(("factor", "holds"), [(0.1, True), (1.0, True), (1.9, True), (2.1, False), (50, False)])
def test_errors_of_the_target_beside_those_of_the_third_party(
    exact: Path, factor: float, holds: bool, tmp_path: Path
) -> None:
    target, third = (changed(exact, tmp_path / str(n), noisy(n * 1e-3)) for n in (factor, 1.000001))
    report = beside(target, third)
    assert report.also is not None
    assert report.also.ratios.mean_rel == pytest.approx(factor, rel=0.01)
    assert report.also.ratios.rmse == pytest.approx(factor, rel=0.01)
    assert report.also.holds is holds
    assert (report.sound, report.status) == (False, FAIL)  # the default standard stays our own bound
    judged = beside(target, third, standard=TWO_BASELINES)
    assert judged.status == (PASS if holds else FAIL)


def test_one_wild_element_is_seen_by_the_maximum_alone(exact: Path, tmp_path: Path) -> None:
    def wild(a: Array) -> Array:
        a = noisy(1e-3)(a)
        largest = np.unravel_index(np.argmax(np.abs(a)), a.shape)
        a[largest] *= 1.02
        return a

    third = changed(exact, tmp_path / "third", noisy(1e-3))
    report = beside(changed(exact, tmp_path / "target", wild), third)
    assert report.also is not None
    assert [c.holds for c in report.also.criteria] == [False, True, True]
    assert "maximum of relative errors" in report.also.criteria[0].text.en
    assert 19 < report.also.ratios.max_rel < 21


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
def test_one_unit_in_the_last_place_passes_beside_a_third_party_without_error(tmp_path: Path, dtype: Any) -> None:
    third = written(tmp_path / "third", dtype)
    raw = np.dtype(f"u{np.dtype(dtype).itemsize}")
    for units, holds in ((1, True), (3, False)):
        target = changed(third, tmp_path / str(units), lambda a, n=units: (a.view(raw) + raw.type(n)).view(dtype))
        also = beside(target, third).also
        assert also is not None
        assert also.third == (0, 0, 0)
        assert also.holds is holds, (units, also)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_never_excused(exact: Path, bad: float, tmp_path: Path) -> None:
    def spoiled(a: Array) -> Array:
        a = a.copy()
        a[0, 0, 0, 0] = bad
        return a

    target = changed(exact, tmp_path / "t", spoiled)
    for third in (exact, changed(exact, tmp_path / "3", spoiled)):
        also = beside(target, third).also
        assert also is not None
        assert (also.ratios.max_rel, also.holds) == (math.inf, False)
    also = beside(exact, target).also
    assert also is not None
    assert also.holds


def test_what_the_third_party_does_not_have_is_said(exact: Path, tmp_path: Path) -> None:
    shutil.copytree(exact, tmp_path / "3")
    told = json.loads((tmp_path / "3" / "dump.json").read_text())
    del told["data"][CONV]
    (tmp_path / "3" / "dump.json").write_text(json.dumps(told))
    report = beside(exact, tmp_path / "3", standard=TWO_BASELINES)
    assert (report.also, report.status) == (None, SKIPPED)
    assert report.why is not None
    assert report.why.en == "the third party's dump does not have it"
    assert beside(exact, tmp_path / "3").status == PASS


def test_it_needs_a_third_party_and_a_dump(exact: Path) -> None:
    with pytest.raises(aclnn.AclnnError, match="two-baselines needs a third party's dump"):
        aclnn.compare(exact, standard=TWO_BASELINES)
    with pytest.raises(aclnn.AclnnError, match="stands beside a dump alone"):
        aclnn.compare(np.ones(3, np.float32), np.ones(3, np.float32), also=exact)


def test_every_report_has_the_verdict_and_the_numbers(exact: Path, tmp_path: Path) -> None:
    target = changed(exact, tmp_path / "t", noisy(3e-3))
    third = changed(exact, tmp_path / "3", noisy(1e-3))
    found = aclnn.compare(target, also=third)
    assert isinstance(found, DumpComparison)
    numbers = "max rel ≤ 10×, mean rel ≤ 2×, RMSE ≤ 2×"
    for lang, words in {
        "en": ("two baselines", "fail 1.5", "times the third party's"),
        "zh": ("双标杆", "不通过 1.5"),
    }.items():
        text = terminal.as_text(found, lang)
        assert all(word in text for word in (*words, numbers)), text
    html = page.render(found)
    assert all(word in html for word in (numbers, "fail 1.5", "不通过 1.5", "✗ <span"))
    csv_path, json_path = (found.save(tmp_path / f"r.{kind}")[0] for kind in ("csv", "json"))
    with csv_path.open(newline="") as file:
        row = next(r for r in csv.DictReader(file) if r["case"] == CONV)
    assert (row["two_baselines"], row["verdict"]) == ("fail", "fail")
    assert float(row["ratio_rmse"]) == pytest.approx(3, rel=0.01)
    told = json.loads(json_path.read_text())
    assert told["standard"]["in_force"][TWO_BASELINES] == numbers
    assert next(o for o in told["outputs"] if o["case"] == CONV)["two_baselines"] == "fail"
    assert str(join([json_path])) == str(found)


def test_parts_find_their_third_party_by_name(exact: Path, tmp_path: Path) -> None:
    third = changed(exact, tmp_path / "3", noisy(1e-3))
    told = json.loads((third / "dump.json").read_text())
    told["data"] = dict(reversed(told["data"].items()))  # the same calls in another order
    (third / "dump.json").write_text(json.dumps(told))
    parts = [aclnn.compare(exact, also=third, work=SharedWork(shard=(n, 3))) for n in (1, 2, 3)]
    assert all(r.also is not None for part in parts for r in part.compared)
    seen: list[float] = []
    found = aclnn.compare(exact, also=third, work=SharedWork(told=lambda judgement, part: seen.append(part)))
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)
    assert found.exit_code() == exit_codes.RIGHT
