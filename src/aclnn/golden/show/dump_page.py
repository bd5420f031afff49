"""The parts of the page that a dump has: what went wrong first, a table to search, a card for each wrong call."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from aclnn.golden.result import SKIPPED, CallRow, DumpComparison, OutputReport
from aclnn.golden.show import calls
from aclnn.golden.show.html import badge, both, row
from aclnn.golden.texts import Text, number

CARDS = 50  # wrong calls with pictures; the table has all of them
_SUMMARY = (
    Text("kind", "种类"),
    Text("right", "正确"),
    Text("wrong", "错误"),
    Text("not judged", "未判断"),
    Text("worst err/allowed", "最大误差/允许"),
)
_STATES = {"": Text("all", "全部"), **calls.VERDICTS}

Section = Callable[[OutputReport], str]


def parts(found: DumpComparison, section: Section) -> dict[str, str]:
    """What fills the template."""
    table = _first(found) + _operators(found) + _search() + _calls(found)
    cards = "".join(_card(call, section) for call in found.wrong[:CARDS])
    more = len(found.wrong) - CARDS
    rest = Text(f"{more} more wrong calls are in the table only.", f"另有{more}次错误的调用仅列于表中。")
    return {"table": table, "sections": cards + _unjudged(found), "rest": both(rest) if more > 0 else ""}


def _first(found: DumpComparison) -> str:
    third = f"<br>{both(calls.beside_a_third_party(found))}" if found.beside else ""
    said = f"<p>{both(calls.summary(found))}{third}</p>"
    if not found.wrong:
        return said
    first = found.wrong[0].first
    where = f"<br><code>{escape(first.line)}</code> <code>{escape(first.code_line)}</code>" if first.line else ""
    return f'{said}<p class="first"><b>{both(Text("first wrong:", "最先出错："))} {escape(first.case)}</b>{where}</p>'


def _operators(found: DumpComparison) -> str:
    rows = "".join(
        row([escape(name), f"{right:,}", f"{wrong:,}", f"{open_:,}", number(worst)])
        for name, right, wrong, open_, worst in calls.operators(found)
    )
    head = row(map(both, _SUMMARY), tag="th")
    return f'<table class="operators"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def _search() -> str:
    options = "".join(
        f'<option value="{value}">{escape(text.en)} / {escape(text.zh)}</option>' for value, text in _STATES.items()
    )
    return (
        '<div class="filter"><input id="search" type="search" placeholder="search / 搜索" aria-label="search / 搜索">'
        f'<select id="state" aria-label="result / 结论">{options}</select></div>'
    )


def _calls(found: DumpComparison) -> str:
    """Each column has a class that gives it its width: two thousand rows are laid out without measuring each cell."""
    shown = calls.columns(found, *calls.COLUMNS)
    head = "".join(f'<th class="{key}">{both(column.head)}</th>' for key, column in shown.items())
    rows = "".join(
        f'<tr data-state="{call.status}">{"".join(_cell(key, call) for key in shown)}</tr>' for call in found.calls
    )
    return f'<table class="calls"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _cell(key: str, call: CallRow) -> str:
    if key == "call":
        return f"<td>{_breakable(call.name)}</td>"
    said = calls.COLUMNS[key].cell(call)
    if key == "result":
        return f"<td>{badge(call.status, said)}</td>"
    opened = '<td class="told">' if key in ("why", "shapes") else "<td>"
    return f"{opened}{both(said)}</td>"


def _breakable(name: str) -> str:
    """A long name may go on in the next line after a dot, never inside a word."""
    return escape(name).replace(".", ".<wbr>")


def _card(call: CallRow, section: Section) -> str:
    first = call.first
    where = f"<p><code>{escape(first.line)}</code><br><code>{escape(first.code_line)}</code></p>" if first.line else ""
    inherits = f"<p>{both(calls.inherited(first))}</p>" if first.inherits else ""
    outputs = "".join(section(r) for r in call.reports)
    return f"<section><h2>{_breakable(call.name)}</h2>{where}{inherits}{outputs}</section>"


def _unjudged(found: DumpComparison) -> str:
    listed = calls.reasons(found)
    if not listed:
        return ""
    items = "".join(
        f"<li>{both(why)}<br><small>{escape(', '.join(names[:20]))}{' …' if len(names) > 20 else ''}</small></li>"
        for why, names in listed
    )
    return f"<h2>{both(calls.VERDICTS[SKIPPED])}</h2><ul>{items}</ul>"
