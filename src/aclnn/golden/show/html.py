"""Pieces of html that several parts of the page are made of, each in both languages; the page shows one of them."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from aclnn.golden.texts import Text


def both(text: Text) -> str:
    if text.en == text.zh:
        return escape(text.en)
    return f'<span class="en" lang="en">{escape(text.en)}</span><span class="zh" lang="zh">{escape(text.zh)}</span>'


def badge(kind: str, text: Text, identity: str = "") -> str:
    named = f'id="{identity}" ' if identity else ""
    return f'<b {named}class="badge {kind}">{both(text)}</b>'


def row(cells: Iterable[str], last: str = "", tag: str = "td") -> str:
    """A row of a table; `last` is a cell, tags included, that stands at its end."""
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}{last}</tr>"


def bullets(kind: str, items: list[str]) -> str:
    return f'<ul class="{kind}">{"".join(f"<li>{item}</li>" for item in items)}</ul>' if items else ""
