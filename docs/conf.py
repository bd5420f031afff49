"""Sphinx configuration of both languages: `sphinx-build -c docs docs/en build/docs/en`, with `-t zh` for Chinese."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

CHINESE = "zh" in tags  # noqa: F821 (Sphinx puts `tags` here)

project = "aclnn-cpu"
author = copyright = "aclnn-cpu"
language = "zh_CN" if CHINESE else "en"
root_doc = "index"

extensions = ["myst_parser", "sphinx_copybutton", "mathml"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

html_theme = "furo"
pygments_dark_style = "github-dark"  # the usual one underlines every import
html_title = "aclnn-cpu 文档" if CHINESE else "aclnn-cpu"
html_static_path = ["_static"]
html_css_files = ["style.css"]
templates_path = ["_templates"]
html_show_copyright = html_show_sphinx = html_copy_source = False
html_context = {"other_language": ("English", "en") if CHINESE else ("中文", "zh")}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_BREAK = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])")


def join_chinese_lines(app: Any, page: str, source: list[str]) -> None:
    """A line break inside a Chinese paragraph is no blank."""
    parts = _CODE.split(source[0])
    parts[::2] = [_BREAK.sub("", text) for text in parts[::2]]
    source[0] = "".join(parts)


_THEME = {"On this page": "本页目录", "Next": "下一页", "Previous": "上一页"}  # words the theme has only in English


def translate_theme(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    context["_"] = lambda text: _THEME.get(text) or app.translator.gettext(text)


def setup(app: Any) -> None:
    if CHINESE:
        app.connect("source-read", join_chinese_lines)
        app.connect("html-page-context", translate_theme)
