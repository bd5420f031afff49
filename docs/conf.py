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

extensions = ["myst_parser", "sphinx_copybutton", "mathml", "find"]
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
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
_BREAK = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n *(?=[\u3000-\u9fff\uff00-\uffef])")


def join_chinese_lines(app: Any, page: str, source: list[str]) -> None:
    """A line break inside a Chinese paragraph is no blank."""
    parts = _CODE.split(source[0])
    parts[::2] = [_BREAK.sub("", text) for text in parts[::2]]
    source[0] = "".join(parts)


# Words that the theme has only in English.
_THEME = {
    "On this page": "本页目录",
    "Next": "下一页",
    "Previous": "上一页",
    "Home": "首页",
    "Back to top": "回到顶部",
    "Made with": "制作工具：",
}


def translate_theme(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    def said(text: str) -> str:
        return _THEME.get(text.strip()) or app.translator.gettext(text)

    context["_"] = said
    app.builder.templates.environment.install_gettext_callables(said, app.translator.ngettext)


# The words of plots; names of shapes stay as they are.
_IN_PLOTS = {
    "our time ÷ PyTorch's time, logarithmic (left of 1: faster)": "我们的耗时 ÷ PyTorch的耗时，对数刻度（1的左侧更快）",
    "Gradients beside PyTorch": "与PyTorch对照的梯度",
    "our time ÷ PyTorch's time (below 1: faster)": "我们的耗时 ÷ PyTorch的耗时（小于1更快）",
    "operations, or bytes that move": "运算次数，或移动的字节数",
    "unseen shapes": "未见过的形状",
    "outputs given": "给定输出",
    "fresh outputs": "新分配输出",
    "torch tensors": "torch张量",
    "training step": "训练一步",
    "forward": "前向",
    "ratio against size": "比值随规模的变化",
    "door": "入口",
    "kernel": "内核",
    "hand-over": "换用内核",
    "geometric mean": "几何平均",
    "target": "目标",
    "(dotted)": "（点线）",
    "ahead": "领先",
    "tie": "持平",
    "behind": "落后",
}
_PLOT_TEXT = re.compile(r"(?<=>)[^<>]+(?=</text>)")


def translate_plots(app: Any, failure: Any) -> None:
    for path in Path(app.outdir, "_images").glob("*.svg"):
        drawn = path.read_text(encoding="utf-8")
        path.write_text(_PLOT_TEXT.sub(lambda text: _translated(text[0]), drawn), encoding="utf-8")


def _translated(text: str) -> str:
    for english, chinese in _IN_PLOTS.items():
        text = re.sub(rf"(?<!\w){re.escape(english)}(?!\w)", chinese, text)
    return text


def setup(app: Any) -> None:
    if CHINESE:
        app.connect("build-finished", translate_plots)
        app.connect("source-read", join_chinese_lines)
        app.connect("html-page-context", translate_theme)
