"""Reports: what they hold, that they are whole, and that no name can break out of them."""

from __future__ import annotations

import csv
import json
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import aclnn
from aclnn.golden.compare import compare
from aclnn.golden.result import Comparison
from aclnn.golden.show import page, terminal
from tests.golden.faults import FAULTS
from tests.golden.planting import planted, with_arrays


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A right output, a wrong one with a place, one with a hint, an error, a missing one and a skipped one."""
    folder = tmp_path_factory.mktemp("cases")
    run = planted("aclnnConvolutionBackward", in_channels=8, out_channels=8, size=12, padding=1)
    off = run.arrays["gradWeight"].copy()
    off[:, :, 2] += 1
    run.save(folder / "a_place.npz", gradWeight=off, gradBias=None)
    run, wrong, _ = FAULTS["conv_hf32"]()
    run.save(folder / "b_hint.npz", **wrong)
    (folder / "c_broken.npz").write_bytes(b"PK")
    special = planted("aclnnEluBackward", shape=(5, 6))
    nan = special.arrays["gradInput"].copy()
    nan[0, 0] = np.nan
    special.save(folder / "d_<b>&'\"=1+1.npz", gradInput=nan)
    masked = planted("aclnnConvolutionBackward", output_mask=(True, False, True))
    with_arrays(masked.save(folder / "e_mask.npz"), gradWeight=np.ones((8, 4, 3, 3), np.float32))
    return compare(folder)


def test_terminal_is_100_columns_worst_first_and_ends_with_what_to_do(found: Comparison) -> None:
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == "verdict (mixed): FAIL    sound: no"
    assert lines[-1] == "next: repair the input 'c_broken.npz', then compare again"
    cases = list(dict.fromkeys(line.partition(".npz")[0] + ".npz" for line in lines if ".npz  " in line))
    assert cases[:4] == ["c_broken.npz", "d_<b>&'\"=1+1.npz", "a_place.npz", "b_hint.npz"]
    assert "only in kernel row 2" in str(found)
    assert "  fail: it is not in the target" in str(found)
    assert "target NaN 1 Inf 0, golden NaN 0 Inf 0, 1 do not agree" in str(found)
    assert repr(found) == str(found)


def test_terminal_in_chinese(found: Comparison) -> None:
    text = terminal.as_text(found, "zh")
    assert text.startswith("判定（mixed）：不通过    可信：否")
    assert "仅在卷积核行2" in text
    assert any({"gradWeight", "否"} <= set(line.split()) for line in text.splitlines())
    assert text.splitlines()[-1].startswith("下一步：")


def test_csv(found: Comparison, tmp_path: Path) -> None:
    (path,) = found.save(tmp_path / "r.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found.reports)
    by_name = {(r["case"], r["output"]): r for r in rows}
    wrong = by_name["a_place.npz", "gradWeight"]
    assert (wrong["verdict"], wrong["sound"], wrong["standard"], wrong["row"]) == ("fail", "no", "mixed", "float32")
    assert wrong["shape"] == "8x8x3x3"
    assert int(wrong["misses"]) == 8 * 8 * 3
    assert "only in kernel row 2" in wrong["remarks"]
    missing, unasked = by_name["a_place.npz", "gradBias"], by_name["e_mask.npz", "gradWeight"]
    assert (missing["verdict"], missing["sound"], missing["remarks"]) == ("fail", "no", "it is not in the target")
    assert (unasked["verdict"], unasked["sound"]) == ("skipped", "")
    assert by_name["c_broken.npz", ""]["verdict"] == "error"


def test_json_is_strict_and_complete(found: Comparison, tmp_path: Path) -> None:
    (path,) = found.save(tmp_path / "r.json")

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    data = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert data["passed"] is False
    assert data["sound"] is False
    assert data["standard"]["source"]
    hinted = next(o for o in data["outputs"] if o["case"] == "b_hint.npz" and o["output"] == "gradInput")
    assert hinted["hints"][0]["key"] == "hf32"
    assert hinted["hints"][0]["proof"]["en"] == "with HF32 inputs 100 % is in tolerance"
    assert sum(hinted["ulp_histogram"]) == hinted["elements"]
    assert hinted["listed_misses"][0]["index"] == [int(i) for i in hinted["worst_index"].split()]
    missing = next(o for o in data["outputs"] if o["case"] == "a_place.npz" and o["output"] == "gradBias")
    assert (missing["verdict"], missing["sound"]) == ("fail", False)
    assert missing["why"] == {"en": "it is not in the target", "zh": "待测数据中没有该输出"}
    nan = next(o for o in data["outputs"] if o["special_misses"] == 1)
    assert nan["max_abs"] == "inf"


def test_junit(found: Comparison, tmp_path: Path) -> None:
    (path,) = found.save(tmp_path / "r.xml")
    suite = ElementTree.parse(path).getroot()
    assert suite.get("tests") == str(len(found.reports))
    assert suite.get("errors") == "1"
    assert suite.get("skipped") == "1"
    missing = next(c for c in suite if c.get("name") == "a_place.npz: gradBias").find("failure")
    assert missing is not None
    assert missing.get("message") == "it is not in the target"
    assert int(suite.get("failures", 0)) == sum(r.status == "fail" for r in found.reports)
    failure = next(c for c in suite if c.get("name") == "a_place.npz: gradWeight").find("failure")
    assert failure is not None
    assert "only in kernel row 2" in str(failure.get("message"))


def test_xlsx(found: Comparison, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl (the report extra) is not installed")
    (path,) = found.save(tmp_path / "r.xlsx")
    rows = list(openpyxl.load_workbook(path).active.values)
    assert len(rows) == len(found.reports) + 1
    assert rows[0][:4] == ("case", "operator", "output", "verdict")
    missing = next(r for r in rows if r[0] == "a_place.npz" and r[2] == "gradBias")
    assert (missing[3], missing[-1]) == ("fail", "it is not in the target")


class Page(HTMLParser):
    """Collects tags, and what is only in one language."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_one_file_with_pictures_in_two_languages(found: Comparison) -> None:
    text = page.render(found)
    parsed = Page(text)
    kinds = [a["class"] for tag, a in parsed.tags if tag == "svg"]
    wrong = [r for r in found.compared if r.measured.misses]
    assert kinds.count("picture histogram") == len(found.compared)
    assert kinds.count("picture strips") == len(found.compared)
    assert kinds.count("picture heatmap") == len(wrong)
    assert not [a for _, a in parsed.tags if "src" in a or "href" in a]
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    spans = [a.get("class") for tag, a in parsed.tags if tag == "span"]
    assert spans.count("en") == spans.count("zh")
    assert "仅在卷积核行2" in text
    assert "only in kernel row 2" in text
    assert 'data-lang="zh"' in page.render(found, "zh")
    assert '<details class="output" open>' in text
    assert '<details class="output">' in text
    assert "[8, 8, 3, 3]</small>" in text
    assert "it is not in the target" in text
    assert "待测数据中没有该输出" in text


def test_html_names_the_call_the_versions_and_the_date_and_not_itself(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(3,))
    text = page.render(run.compare(tmp_path, gradInput=np.zeros(3, np.float32)))
    assert "aclnnEluBackward · Atlas A2 · alpha=" in text
    assert f"aclnn-cpu {aclnn.__version__}, Python " in text
    assert time.strftime("%Y-%m-%d", time.gmtime()) in text
    assert "report.html" not in text


def test_a_golden_of_the_user_is_agreed_with_and_proves_no_more() -> None:
    target = np.array([1, 2], np.float32)
    said = str(compare(target, target.copy()))
    assert said.endswith("next: nothing; the target agrees with the golden given")
    assert terminal.as_text(compare(target, target.copy()), "zh").endswith("下一步：无需处理，结果与给定的标杆一致")


def test_names_cannot_break_out_of_the_page(found: Comparison) -> None:
    parsed = Page(page.render(found))
    assert "d_<b>&'\"=1+1.npz" in parsed.text
    hostile = compare({"</script><script>alert(1)</script>": np.ones(3, np.float32)}, np.zeros(3, np.float32))
    scripts = [tag for tag, _ in Page(page.render(hostile)).tags if tag == "script"]
    assert len(scripts) == 1


def test_a_folder_gets_one_of_each(found: Comparison, tmp_path: Path) -> None:
    written = found.save(tmp_path / "report")
    assert [p.name for p in written] == ["report.html", "report.csv", "report.json", "report.xml"]
    assert sorted(p.name for p in (tmp_path / "report").iterdir()) == sorted(p.name for p in written)


def test_nothing_is_left_half_written(found: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(aclnn.AclnnError, match=r"a report is one of \.html, \.csv, \.json, \.xml, \.xlsx, or a folder"):
        found.save(tmp_path / "r.pdf")
    with pytest.raises(aclnn.AclnnError, match="cannot be written: no such file"):
        found.save(tmp_path / "none" / "r.csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(aclnn.AclnnError, match="cannot be made"):
        found.save(tmp_path / "file")

    def out_of_ink(*_: Any) -> str:
        raise OSError(28, "No space left on device")

    (tmp_path / "old.html").write_text("the last report")
    monkeypatch.setattr(page, "render", out_of_ink)
    with pytest.raises(aclnn.AclnnError, match="no space left on device"):
        found.save(tmp_path / "old.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "old.html"]
    assert (tmp_path / "old.html").read_text() == "the last report"


def test_thousands_of_outputs_make_a_page_of_bounded_size() -> None:
    a = np.ones(3, np.float32)
    found = compare({f"x{i}": a for i in range(3000)}, {f"x{i}": a + 1 for i in range(3000)})
    text = page.render(found)
    assert len(text) < 4e6
    assert "2950 more outputs are in the table only." in text
