"""Text and tables as wide as a terminal: nothing is cut, no word is broken."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from aclnn import ops
from aclnn.base.layout import fold, pairs, pieces, table
from aclnn.gen import tables

WIDTHS = (60, 80, 100, 140)
LETTERS = st.text(st.sampled_from("ab 卷积，。（）()x1\n"), max_size=60)


def plain(lines: list) -> list[str]:
    return [line.plain for line in lines]


@given(LETTERS)
def test_pieces_lose_nothing(text: str) -> None:
    line = text.replace("\n", " ")
    assert "".join(pieces(line)) == line


@given(LETTERS, st.integers(12, 40))
def test_a_folded_text_has_all_its_letters_within_the_width(text: str, width: int) -> None:
    lines = plain(fold(text, width))
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", text)
    for line in lines:
        indent = len(line) - len(line.lstrip())
        assert cell_len(line) <= width or len(pieces(line[indent:])) == 1


def test_chinese_is_folded_by_its_width_and_keeps_its_punctuation() -> None:
    assert plain(fold("视图不超出其存储范围，输出（同一视图除外）", 20)) == [
        "视图不超出其存储范",
        "围，输出（同一视图除",
        "外）",
    ]


def test_lines_that_go_on_are_indented() -> None:
    assert plain(fold("  one two three", 9, hang=2)) == ["  one two", "    three"]


def test_a_word_that_is_longer_than_the_line_stays_whole() -> None:
    path = "/a/very/long/path/of/someone"
    assert path in plain(fold(f"see {path} there", 12))


def tables_of(lang: str) -> list[tuple[str, tables.Table]]:
    shown = [("ops", tables.operators(lang)), ("support", tables.support(lang))]
    for op in ops.all_ops():
        shown += [(f"arguments {op}", tables.arguments(op, lang)), (f"rules {op}", tables.rules(op, lang))]
    return shown


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_table_that_is_shown_fits_with_all_its_words(width: int, lang: str) -> None:
    for name, (head, rows) in tables_of(lang):
        lines = plain(table(head, rows, width))
        assert max(map(cell_len, lines)) <= width, name
        shown = [piece.strip() for line in lines for piece in pieces(line)]
        cells = [piece.strip() for row in rows for cell in row if cell != "-" for piece in pieces(cell)]
        assert {word for word in cells if word} <= set(shown), name


HEAD = ("op", "case", "ms")
ROWS = [("aclnnEluBackward", "from the input", "0.1"), ("aclnnEluBackward", "half", "12.5"), ("aclnnElu", "-", "3.0")]


def test_a_table_is_a_table_where_there_is_room() -> None:
    assert plain(table(HEAD, ROWS, 40, right={2})) == [
        "op                case              ms",
        "aclnnEluBackward  from the input   0.1",
        "aclnnEluBackward  half            12.5",
        "aclnnElu          -                3.0",
    ]
    assert plain(table(HEAD, ROWS, right={2})) == plain(table(HEAD, ROWS, 40, right={2}))


def test_the_first_column_becomes_headings_where_there_is_less() -> None:
    assert plain(table(HEAD, ROWS, 22, right={2})) == [
        "op",
        "  case              ms",
        "aclnnEluBackward",
        "  from the input   0.1",
        "  half            12.5",
        "aclnnElu",
        "  -                3.0",
    ]


def test_rows_are_stacked_where_there_is_none() -> None:
    assert plain(table(HEAD, ROWS, 16)) == [
        "aclnnEluBackward",
        "  case: from the",
        "    input",
        "  ms: 0.1",
        "  case: half",
        "  ms: 12.5",
        "aclnnElu",
        "  ms: 3.0",
    ]
    head, row = ("算子", "用例", "毫秒"), ("aclnnElu", "一个很长的用例名称", "1")
    assert plain(table(head, [row], 14)) == ["aclnnElu", "  用例：一个很", "    长的用例名", "    称", "  毫秒：1"]


def test_pairs_stand_below_a_name_that_is_too_long() -> None:
    rows = [("-h", "help me"), ("--a-very-long-name <str>", "names")]
    assert plain(pairs(rows, 60)) == ["  -h                        help me", "  --a-very-long-name <str>  names"]
    assert plain(pairs(rows, 24)) == ["  -h      help me", "  --a-very-long-name <str>", "          names"]
