"""The calls of a dump on a terminal: what went wrong first, then every call, then what was not judged and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.markup import escape
from rich.text import Text as Styled

from aclnn.base.layout import table
from aclnn.golden.result import CallRow, DumpComparison, OutputReport, miss_sentence
from aclnn.golden.texts import Text, number

ROWS = 40  # calls in the table
_DESCRIBED = 12  # wrong calls that are described in full
_REASONS = 8  # kinds of reasons for which calls were not judged
WRONG, RIGHT, OPEN = Text("WRONG", "错误"), Text("right", "正确"), Text("not judged", "未判断")


class Operator(NamedTuple):
    """How the calls of one operator did."""

    name: str
    right: int
    wrong: int
    open: int
    worst: float


def operators(found: DumpComparison) -> list[Operator]:
    """A summary by what torch calls them."""
    kinds: dict[str, list[CallRow]] = {}
    for call in found.calls:
        kinds.setdefault(call.first.kind, []).append(call)
    return [_operator(kind, calls) for kind, calls in kinds.items()]


def _operator(kind: str, calls: list[CallRow]) -> Operator:
    wrong = sum(c.is_wrong for c in calls)
    open_ = sum(not c.is_wrong and not c.is_judged for c in calls)
    ratios = [r.measured.worst.ratio for c in calls for r in c.reports if r.measured and r.measured.worst]
    return Operator(kind, len(calls) - wrong - open_, wrong, open_, max(ratios, default=0.0))


def verdict(call: CallRow) -> Text:
    return WRONG if call.is_wrong else RIGHT if call.is_judged else OPEN


def told(call: CallRow) -> Text:
    """The last column: why it is wrong or not judged, or whose wrong result it reads."""
    worst = call.worst
    if call.is_wrong and worst.hints:
        return worst.hints[0].says
    said = miss_sentence(worst) if call.is_wrong else None
    if said is not None:
        return Text(f"{worst.output}: {said.en}", f"{worst.output}：{said.zh}")
    if not call.is_judged or call.is_wrong:
        return worst.why or Text("", "")
    if call.first.inherits:
        return inherited(call.first)
    return next((note for r in call.reports for note in r.notes), Text("", ""))


def inherited(report: OutputReport) -> Text:
    return Text(f"reads the wrong result of {report.inherits}", f"读取了{report.inherits}的错误结果")


def summary(found: DumpComparison) -> Text:
    calls = found.calls
    wrong, judged = len(found.wrong), sum(c.is_judged for c in calls)
    open_ = len(calls) - judged
    return Text(
        f"{judged:,} {'call' if judged == 1 else 'calls'} judged, {wrong:,} wrong; {open_:,} not judged",
        f"判断了{judged:,}次调用，其中{wrong:,}次错误；{open_:,}次未判断",
    )


def lines(found: DumpComparison, lang: str, width: int) -> Iterator[Styled]:
    """Everything between the heading and the last line."""
    yield Styled(summary(found).say(lang), "bold")
    if found.wrong:
        yield from _first(found.wrong[0], lang)
    yield Styled("")
    yield from _table(found, lang, width)
    for call in found.wrong[:_DESCRIBED]:
        yield from _described(call, lang)
    if len(found.wrong) > _DESCRIBED:
        rest = len(found.wrong) - _DESCRIBED
        yield Styled(f"\n… and {rest} more wrong calls" if lang == "en" else f"\n……另有{rest}次错误的调用")
    yield from _unjudged(found, lang)
    yield from _by_operator(found, lang)


def _by_operator(found: DumpComparison, lang: str) -> Iterator[Styled]:
    yield Styled("\nby operator:" if lang == "en" else "\n按算子统计：", "bold")
    for row in operators(found):
        en = f"{row.right:,} right, {row.wrong:,} wrong, {row.open:,} not judged; worst err/allowed {number(row.worst)}"
        zh = f"正确{row.right:,}，错误{row.wrong:,}，未判断{row.open:,}；最大误差/允许{number(row.worst)}"
        yield Styled(f"  {row.name}: {en}" if lang == "en" else f"  {row.name}：{zh}")


def _first(call: CallRow, lang: str) -> Iterator[Styled]:
    where = f" ({call.first.line})" if call.first.line else ""
    text = f"first wrong: {call.name}{where}" if lang == "en" else f"最先出错：{call.name}{where}"
    yield Styled(text, "bold red")


_HEAD = (
    Text("call", "调用"),
    Text("dtype", "类型"),
    Text("result", "结论"),
    Text("err/allowed", "误差/允许"),
    Text("why", "说明"),
)


def _table(found: DumpComparison, lang: str, width: int) -> Iterator[Styled]:
    calls = found.calls
    rows = [_cells(call, lang) for call in calls[:ROWS]]
    yield from table([h.say(lang) for h in _HEAD], rows, width, right={3})
    if len(calls) > ROWS:
        rest = len(calls) - ROWS
        wrong = sum(c.is_wrong for c in calls[ROWS:])
        en, zh = f"… and {rest:,} more calls, {wrong:,} of them wrong", f"……另有{rest:,}次调用，其中{wrong:,}次错误"
        yield Styled(zh if lang == "zh" else en)


def _cells(call: CallRow, lang: str) -> tuple[str | Styled, ...]:
    worst = call.worst
    ratio = number(worst.measured.worst.ratio) if worst.measured and worst.measured.worst else "-"
    colour = "red" if call.is_wrong else "green" if call.is_judged else "yellow"
    result = Styled(verdict(call).say(lang), colour)
    return call.name, worst.dtype or "-", result, ratio, told(call).say(lang) or "-"


def _described(call: CallRow, lang: str) -> Iterator[Styled]:
    first = call.first
    yield Styled.from_markup(f"\n[bold]{escape(call.name)}[/]  {escape(first.operator or '')}")
    if first.line:
        yield Styled(f"  {first.line}: {first.code_line}")
    if first.inherits:
        yield Styled(f"  {inherited(first).say(lang)}")
    for report in call.reports:
        yield from _output(report, lang)


def _output(report: OutputReport, lang: str) -> Iterator[Styled]:
    shape = f"{report.dtype} {list(report.shape)}" if report.dtype else ""
    said = miss_sentence(report)
    if said is None:
        plain = report.why.say(lang) if report.why else RIGHT.say(lang)
        yield Styled(f"  {report.output} {shape}: {plain}".replace(" :", ":"))
        return
    yield Styled(f"  {report.output} {shape}: {said.say(lang)}")
    worst = report.measured.worst if report.measured else None
    if worst is not None:
        target, golden, ratio = f"{worst.target:.9g}", f"{worst.golden:.9g}", number(worst.ratio)
        en = f"worst at {list(worst.index)}: target {target}, golden {golden}, {ratio} times the allowed error"
        zh = f"最差元素{list(worst.index)}：待测{target}，标杆{golden}，误差为允许值的{ratio}倍"
        yield Styled(f"    {zh if lang == 'zh' else en}")
    for note in report.notes:
        yield Styled(f"    {note.say(lang)}")
    for hint in report.hints:
        yield Styled.from_markup(f"    [bold]{escape(hint.says.say(lang))}[/]")
        yield Styled(f"      {hint.proof.say(lang)}")


def reasons(found: DumpComparison) -> list[tuple[Text, list[str]]]:
    """What was not judged, by reason."""
    grouped: dict[Text, list[str]] = {}
    for report in found.unjudged:
        if report.why is not None:
            grouped.setdefault(report.why, []).append(report.label)
    return list(grouped.items())


def _unjudged(found: DumpComparison, lang: str) -> Iterator[Styled]:
    listed = reasons(found)
    if listed:
        yield Styled("\nnot judged:" if lang == "en" else "\n未判断：", "bold")
    for why, names in listed[:_REASONS]:
        more = f" … ({len(names)})" if len(names) > 1 else ""
        yield Styled(f"  {names[0]}{more}")
        yield Styled(f"    {why.say(lang)}")
    if len(listed) > _REASONS:
        rest = len(listed) - _REASONS
        yield Styled(f"  … and {rest} more reasons" if lang == "en" else f"  ……另有{rest}种原因")
