"""Every Python example of the READMEs runs and prints what it says."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")}
EXAMPLES = [
    pytest.param(code, id=f"{name}-{i}") for name, text in PAGES.items() for i, code in enumerate(BLOCK.findall(text))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_prints_what_it_says(code: str) -> None:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "README", "exec"), {"__name__": "readme"})
    promised = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert printed.getvalue().splitlines() == promised


def test_both_languages_have_the_same_examples() -> None:
    english, chinese = (BLOCK.findall(PAGES[name]) for name in ("README.md", "README.zh.md"))
    assert len(english) == len(chinese) >= 7
    assert PAGES["README.md"].count("\n## ") == PAGES["README.zh.md"].count("\n## ")
