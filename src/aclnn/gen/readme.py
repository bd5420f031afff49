"""The generated part of the READMEs: the support table between its two marks."""

from __future__ import annotations

import re
from pathlib import Path

from aclnn.gen.tables import markdown, support

_MARKED = re.compile(r"(<!-- support: written by make gen -->\n).*?(<!-- end -->)", re.DOTALL)


def render(path: Path, lang: str) -> str:
    """The page with its table as the contracts say it now."""
    text, count = _MARKED.subn(lambda m: m[1] + markdown(support(lang)) + m[2], path.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{path} must have the two marks of the support table once")
    return text
