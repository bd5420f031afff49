"""Words of others in what we print and write: shown, never obeyed by a terminal, a page or a spreadsheet."""

from __future__ import annotations

import re
import unicodedata

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠−]|[\t\r\n]")


def visible(text: str) -> str:
    """The text with everything that moves a cursor, turns the direction of writing or hides itself written out.

    >>> print(visible("a\\x1b[31m\\u202eb\\n"))
    a\\x1b[31m\\u202eb\\n
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or unicodedata.category(one) == "Zs" else _escaped(one) for one in text)


def _escaped(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")  # \n, \x1b, \u202e; a lone surrogate too


def visible_lines(text: str) -> str:
    """The same for a text of several lines, whose breaks are ours."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def cell(value: object) -> object:
    """A cell of a table: text that a spreadsheet would take for a formula begins with an apostrophe.

    >>> cell("=1+1"), cell("-1.5"), cell(-1.5), cell("-"), cell("name")
    ("'=1+1", '-1.5', -1.5, '-', 'name')
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or value == "-" or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text
