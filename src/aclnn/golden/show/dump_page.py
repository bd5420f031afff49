"""The parts of the page that a dump has: what went wrong first, a table to search, a card for each wrong call."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from aclnn.golden.result import CallRow, DumpComparison, OutputReport
from aclnn.golden.show import calls
from aclnn.golden.show.html import badge, both, row
from aclnn.golden.texts import Text, number

CARDS = 50  # wrong calls with pictures; the table has all of them
_HEAD = {  # by the class that gives a column its width: two thousand rows are laid out without measuring each cell
    "call": Text("call", "调用"),
    "result": Text("result", "结论"),
    "ratio": Text("err/allowed", "误差/允许"),
    "third": calls.BASELINES,
    "why": Text("why", "说明"),
    "line": Text("line", "代码行"),
    "type": Text("dtype", "类型"),
    "op": Text("operator", "算子"),
    "shapes": Text("shapes", "形状"),
}
_SUMMARY = (
    Text("kind", "种类"),
    Text("right", "正确"),
    Text("wrong", "错误"),
    Text("not judged", "未判断"),
    Text("worst err/allowed", "最大误差/允许"),
)
_STATES = (("", Text("all", "全部")), ("fail", calls.WRONG), ("pass", calls.RIGHT), ("skipped", calls.OPEN))

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
        f'<option value="{value}">{escape(text.en)} / {escape(text.zh)}</option>' for value, text in _STATES
    )
    return (
        '<div class="filter"><input id="search" type="search" placeholder="search / 搜索" aria-label="search / 搜索">'
        f'<select id="state" aria-label="result / 结论">{options}</select></div>'
    )


def _calls(found: DumpComparison) -> str:
    beside = bool(found.beside)
    shown = {key: name for key, name in _HEAD.items() if beside or key != "third"}
    head = "".join(f'<th class="{key}">{both(name)}</th>' for key, name in shown.items())
    rows = "".join(_row(call, beside) for call in found.calls)
    return f'<table class="calls"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _row(call: CallRow, beside: bool) -> str:
    worst, first = call.worst, call.first
    state = "fail" if call.is_wrong else "pass" if call.is_judged else "skipped"
    ratio = number(worst.measured.worst.ratio) if worst.measured and worst.measured.worst else "-"
    shapes = ", ".join(f"{r.output} {list(r.shape)}" for r in call.reports if r.measured)
    verdict = badge(state, calls.verdict(call))
    third = f"<td>{both(calls.baselines_cell(call))}</td>" if beside else ""
    told = f'<td class="told">{both(calls.told(call))}</td>'
    cells = [first.line.rpartition("/")[2], worst.dtype, first.operator or first.kind]
    plain = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    named = f"<td>{_breakable(call.name)}</td><td>{verdict}</td><td>{ratio}</td>"
    return f'<tr data-state="{state}">{named}{third}{told}{plain}<td class="told">{escape(shapes)}</td></tr>'


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
    return f"<h2>{both(calls.OPEN)}</h2><ul>{items}</ul>"
