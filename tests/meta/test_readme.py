"""Every Python example of the READMEs runs and prints what it says."""

from __future__ import annotations

import re

import pytest

from aclnn.base.device import DEVICES
from tests.meta.pages import ROOT, blocks, headings, printed_by, promised, prose, read

PAGES = {name: read(ROOT / name) for name in ("README.md", "README.zh.md")}
EXAMPLES = [
    pytest.param(block.text, id=f"{name}-{i}", marks=[pytest.mark.torch] if "import torch" in block.text else [])
    for name, text in PAGES.items()
    for i, block in enumerate(b for b in blocks(text) if b.language == "python")
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_prints_what_it_says(code: str) -> None:
    assert promised(code)
    assert printed_by(code, "README") == promised(code)


def test_both_languages_have_the_same_examples() -> None:
    english, chinese = PAGES.values()
    assert [b.language for b in blocks(english)] == [b.language for b in blocks(chinese)]
    assert [h.level for h in headings(english)] == [h.level for h in headings(chinese)]
    assert len(EXAMPLES) >= 14


def test_chinese_pages_write_latin_words_without_blanks_around_them() -> None:
    """As the documents of the field do; names of products keep theirs."""
    spaced = re.compile(r"[\u4e00-\u9fff] [A-Za-z0-9`]|[A-Za-z0-9`] [\u4e00-\u9fff]")
    products = "|".join(re.escape(name) for device in DEVICES for name in device.zh.split("/"))
    for path in (ROOT / "README.zh.md", *sorted((ROOT / "docs" / "zh").rglob("*.md"))):
        text = prose(re.sub("<!--.*?<!-- end -->", "", read(path), flags=re.DOTALL))
        assert [line for line in re.sub(products, "P", text).splitlines() if spaced.search(line)] == [], path
