"""Names that others chose: what a terminal, a page or a spreadsheet would obey is written out."""

from __future__ import annotations

import csv
import sys
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import aclnn
from aclnn.base.status import AclnnError, Status, invalid
from aclnn.base.text import cell, visible, visible_lines

HOSTILE = "=cmd\x1b]0;title\x07\x1b[2J\u202egpj\u2066\x9b31m\r\n\ud800"
ORDERED_ABOUT = [chr(i) for i in range(sys.maxunicode + 1) if unicodedata.category(chr(i)) in ("Cc", "Cf", "Cs")]


def test_nothing_that_gives_orders_stays() -> None:
    shown = visible("".join(ORDERED_ABOUT))
    assert shown.isprintable()
    assert visible("名 ≥ a\u3000b") == "名 ≥ a\u3000b"
    assert visible_lines("a\n\x1b") == "a\n\\x1b"


@pytest.mark.parametrize("text", ["=1", "+1+1", "-1+1", "@x", "\t=1", "\r=1", "\n=1", " =1", "＝1", "−1+1"])
def test_formulas_become_text(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("value", [-1.5, "-1.5", "+3e5", "-", "-inf", "", "a=b", None, 3])
def test_numbers_and_other_text_stay(value: object) -> None:
    assert cell(value) is value


def test_every_error_sentence_is_visible() -> None:
    assert "\\x1b[2J" in invalid(HOSTILE).message
    for error in (invalid(HOSTILE), AclnnError(Status.ACLNN_ERR_INNER, HOSTILE, message_zh=HOSTILE)):
        for text in (error.message, error.message_zh, str(error), str(error.args)):
            assert not set(text) & set(ORDERED_ABOUT) - {"\n"}
    assert "\n" not in invalid(HOSTILE).message


def test_no_report_carries_a_name_that_gives_orders(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    from openpyxl import load_workbook

    x = np.ones(3, np.float32)
    found = aclnn.compare({HOSTILE: x}, {HOSTILE: x * 2}, dtype="float32")
    for suffix in (".html", ".json", ".xml", ".csv", ".xlsx"):
        found.save(tmp_path / f"r{suffix}")
    for suffix in (".html", ".json", ".xml", ".csv"):
        text = (tmp_path / f"r{suffix}").read_text(encoding="utf-8")
        assert not set(text) & set(ORDERED_ABOUT) - {"\n", "\r"}, suffix
    assert not set(str(found)) & set(ORDERED_ABOUT) - {"\n"}
    (row,) = csv.DictReader((tmp_path / "r.csv").read_text(encoding="utf-8").splitlines())
    assert row["output"] == "'" + visible(HOSTILE)
    assert row["case"] == "target"
    sheet = load_workbook(tmp_path / "r.xlsx").active
    assert sheet is not None
    assert "'" + visible(HOSTILE) in [c.value for c in sheet[2]]
    assert [c.get("name") for c in ElementTree.parse(tmp_path / "r.xml").iter("testcase")] == [
        f"target: {visible(HOSTILE)}"
    ]
