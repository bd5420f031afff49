"""The reliability pages show what the result files hold, and the soak does what it says."""

from __future__ import annotations

import pytest

from tests.hostile import page, soak
from tests.hostile.soak import Row


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_is_what_the_results_say(lang: str) -> None:
    text = page.PAGES[lang].read_text(encoding="utf-8")
    assert page.MARKED.search(text)
    assert page.written(text, lang) == text


def rows(**last: int) -> list[Row]:
    made = [Row(i / 6, i, i, 1, 0, 100.0, 0, 6, 3) for i in range(1, 40)]
    return [*made[:-1], made[-1]._replace(**last)]


def test_a_soak_that_leaks_is_found() -> None:
    assert soak.faults(rows(), []) == []
    assert soak.faults(rows(handles=2), []) == ["handles went from 0 to 2, 0 to 2"]
    assert soak.faults(rows(files=9), []) == ["files went from 6 to 9, 6 to 9"]
    assert soak.faults(rows(), ["wrong"]) == ["wrong"]
    growing = [row._replace(rss_mib=100 + row.minutes) for row in rows()]
    assert soak.faults(growing, []) == ["resident memory grew by 1.00 MiB per minute"]
