"""Each standard on arrays worked out by hand, with the table of NaN and Inf."""

from __future__ import annotations

import html
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn.base.dtype import FLOAT16
from aclnn.golden.compare import compare
from aclnn.golden.judge.standards import STANDARDS, TWO_BASELINES, find
from tests.golden.planting import planted

ALONE = [name for name in STANDARDS if name != TWO_BASELINES]  # that one needs a third party: test_baselines.py


def passed(target: Any, golden: Any, standard: str, dtype: Any = np.float32, row: str | None = None) -> bool:
    return compare(np.array(target, dtype), np.array(golden, dtype), row, standard).passed


def spoiled(count: int, wrong: int, by: float, dtype: Any = np.float32) -> tuple[Any, Any]:
    """Ones, of which the first few are off."""
    golden = np.ones(count, dtype)
    target = golden.copy()
    target[:wrong] = np.array(1 + by, dtype)
    return target, golden


@pytest.mark.parametrize(
    ("dtype", "row", "rtol", "atol", "cap"),
    [
        (np.float16, None, 2**-9, 2**-9, 1e-1),
        (aclnn.bfloat16, None, 2**-6, 2**-6, 1.0),
        (np.float32, None, 2**-10, 2**-16, 1e-2),
        (np.float32, "hf32", 2**-9, 2**-10, 1e-1),
    ],
)
def test_mixed_is_a_share_and_a_cap(dtype: Any, row: str | None, rtol: float, atol: float, cap: float) -> None:
    rule = STANDARDS["mixed"].rule(row or np.dtype(dtype).name)
    assert (rule.rtol, rule.atol) == (rtol, atol)
    inside = 0.9 * (rtol + atol)
    outside = (rtol + atol) * 1.5
    assert passed(*spoiled(100, 100, inside, dtype), "mixed", dtype, row)
    assert passed(*spoiled(100, 1, outside, dtype), "mixed", dtype, row)  # 99 % exactly
    assert not passed(*spoiled(100, 2, outside, dtype), "mixed", dtype, row)
    assert not passed(*spoiled(1000, 1, cap * 1.01, dtype), "mixed", dtype, row)
    assert passed(*spoiled(1000, 1, cap * 0.97, dtype), "mixed", dtype, row)


def test_mixed_lets_one_wild_element_below_the_cap_pass() -> None:
    target, golden = spoiled(1000, 1, 9e-3)
    found = compare(target, golden)
    assert found.passed
    assert found.sound is None  # nobody can tell without the operator


@pytest.mark.parametrize(
    ("dtype", "row", "limit"),
    [
        (np.float16, None, 2**-10),
        (aclnn.bfloat16, None, 2**-7),
        (np.float32, None, 2**-13),
        (np.float32, "hf32", 2**-11),
    ],
)
def test_mere_mare_is_a_mean_and_a_maximum(dtype: Any, row: str | None, limit: float) -> None:
    assert passed(*spoiled(1000, 1, 8 * limit, dtype), "mere-mare", dtype, row)
    assert not passed(*spoiled(1000, 900, 8 * limit, dtype), "mere-mare", dtype, row)  # the mean is above T
    assert not passed(*spoiled(1000, 1, 11 * limit, dtype), "mere-mare", dtype, row)  # the maximum is above 10·T


def test_limits_are_not_reached() -> None:
    def verdict(standard: str, **found: float) -> bool:
        whole = {"count": 10, "in_tolerance": 10, "max_abs": 0.0, "mean_rel": 0.0, "max_rel": 0.0, "cosine": 1.0}
        measured: Any = SimpleNamespace(**{**whole, **found})
        return all(c.holds for c in STANDARDS[standard].rule("float32").criteria(measured))

    assert not verdict("mere-mare", mean_rel=2.0**-13)
    assert not verdict("mere-mare", max_rel=10 * 2.0**-13)
    assert not verdict("mixed", max_abs=1e-2)
    assert verdict("mixed", max_abs=math.nextafter(1e-2, 0))
    assert verdict("cosine", cosine=0.99)


def test_mere_mare_adds_a_small_number_to_the_golden() -> None:
    assert passed([1e-11], [0.0], "mere-mare")  # 1e-11 / 1e-7 = 1e-4 < 2^-13
    assert not passed([2e-11], [0.0], "mere-mare")  # 2e-4 > 2^-13


def test_thousandth() -> None:
    assert passed(*spoiled(1000, 1, 0.0011), "thousandth")  # 99.9 % exactly
    assert not passed(*spoiled(1000, 2, 0.0011), "thousandth")
    assert passed(*spoiled(1000, 1000, 0.0009), "thousandth")
    assert passed([0.0], [0.0], "thousandth")
    assert not passed([1e-30], [0.0], "thousandth")


def test_close_is_numpy() -> None:
    rng = np.random.default_rng(0)
    golden = rng.normal(size=200)
    for scale in (5e-6, 2e-5):
        target = golden * (1 + scale * rng.uniform(-1, 1, 200))
        assert compare(target, golden, "float32", "close").passed == bool(np.isclose(target, golden).all())


def test_cosine() -> None:
    assert passed([1, 0, 0], [2, 0, 0], "cosine")
    assert not passed([1, 0], [0, 1], "cosine")
    assert passed([0, 0], [0, 0], "cosine")
    assert not passed([0, 0], [0, 1], "cosine")
    limit = math.acos(0.99)
    assert passed([math.cos(limit * 0.999), math.sin(limit * 0.999)], [1, 0], "cosine")
    assert not passed([math.cos(limit * 1.001), math.sin(limit * 1.001)], [1, 0], "cosine")


def test_binary_is_the_same_bits() -> None:
    assert passed([1, -0.0, np.inf], [1, -0.0, np.inf], "binary")
    assert not passed([0.0], [-0.0], "binary")
    assert not passed([np.nextafter(np.float32(1), np.float32(2))], [1], "binary")
    payload = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert compare(payload, np.array([np.nan], np.float32), standard="binary").reports[0].measured.same_bits == 1


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("standard", ALONE)
@pytest.mark.parametrize(
    ("target", "golden", "agrees"),
    [
        (NAN, NAN, True),
        (INF, INF, True),
        (-INF, -INF, True),
        (INF, -INF, False),
        (-INF, INF, False),
        (NAN, INF, False),
        (INF, NAN, False),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (INF, 1.0, False),
        (1.0, INF, False),
        (65504.0, INF, False),
    ],
)
def test_nan_and_inf(target: float, golden: float, agrees: bool, standard: str) -> None:
    found = compare(np.array([target, 1, 2], np.float32), np.array([golden, 1, 2], np.float32), standard=standard)
    (report,) = found.reports
    counted = report.measured
    assert found.passed == agrees
    assert counted.special_misses == (not agrees)
    assert found.sound == agrees
    assert counted.nan_target == math.isnan(target)
    assert counted.nan_golden == math.isnan(golden)
    assert counted.inf_target == math.isinf(target)
    assert counted.inf_golden == math.isinf(golden)
    assert counted.misses == (not agrees)


def test_thousandth_lets_one_nan_in_a_thousand_pass_but_counts_it() -> None:
    golden = np.ones(1000, np.float32)
    target = golden.copy()
    target[7] = np.nan
    found = compare(target, golden, standard="thousandth")
    assert found.passed
    assert found.sound is False
    assert found.worst.where == (7,)
    assert "1 do not agree" in str(found)


def test_unknown_names_list_the_choices() -> None:
    with pytest.raises(aclnn.AclnnError, match="mixed, mere-mare, thousandth, close, cosine, binary"):
        find("best")
    with pytest.raises(aclnn.AclnnError, match=r"no row for float8_e5m2; .*float16, bfloat16, float32, hf32"):
        compare(np.ones(3, ml_dtypes.float8_e5m2), np.ones(3, ml_dtypes.float8_e5m2))


def test_float64_is_judged_by_the_row_of_float32_and_that_is_said() -> None:
    found = compare(np.ones(3), np.ones(3))
    assert found.passed
    assert found.reports[0].rule.row == "float32"
    assert "mixed has no row for float64: that of float32 is used" in str(found)
    assert not compare(np.ones(3), np.ones(3), standard="close").reports[0].notes


def test_every_standard_says_where_it_comes_from() -> None:
    for standard in STANDARDS.values():
        assert standard.source.en
        assert standard.source.zh
        assert standard.since
        assert standard.asks.en != standard.asks.zh


@pytest.mark.parametrize("name", [name for name in ALONE if name != "binary"])
def test_every_report_prints_the_numbers_in_force(name: str, tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(8, 9), dtype=FLOAT16)
    found = compare(run.save(tmp_path / "case.npz"), standard=name)
    said = STANDARDS[name].rule("float16").said
    assert said
    assert found.in_force == [("float16", said)]
    assert f"float16: {said}" in str(found)
    written = {path.suffix: path.read_text(encoding="utf-8") for path in found.save(tmp_path / "reports")}
    assert len(written) == 4
    for suffix, text in written.items():
        assert said in html.unescape(text), suffix


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_documents_have_the_numbers_by_type(lang: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / lang / "howto" / "dump.md").read_text(encoding="utf-8")
    for name in ("mixed", "mere-mare", "sound"):
        for row in STANDARDS[name].rows:
            said = STANDARDS[name].rule(row).said.replace("|", r"\|")
            assert any(line.startswith(f"| `{row}` |") and said in line for line in page.splitlines()), (name, row)
