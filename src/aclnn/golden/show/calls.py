"""The calls of a dump on a terminal: what went wrong first, then every call, then what was not judged and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.markup import escape
from rich.text import Text as Styled

from aclnn.base.layout import table
from aclnn.golden.judge.standards import STANDARDS, TWO_BASELINES
from aclnn.golden.result import (
    FAIL,
    PASS,
    STATUS,
    CallRow,
    DumpComparison,
    OutputReport,
    broken_criterion,
    miss_sentence,
    worst_sentence,
)
from aclnn.golden.texts import Text, number

ROWS = 40  # calls in the table
_DESCRIBED = 12  # wrong calls that are described in full
_REASONS = 8  # remarks, and reasons for which calls were not judged
WRONG, RIGHT, OPEN = Text("WRONG", "错误"), Text("right", "正确"), Text("not judged", "未判断")


class OperatorSummary(NamedTuple):
    """How the calls of one operator did."""

    name: str
    right: int
    wrong: int
    open: int
    worst: float


def operators(found: DumpComparison) -> list[OperatorSummary]:
    """A summary by what torch calls them."""
    kinds: dict[str, list[CallRow]] = {}
    for call in found.calls:
        kinds.setdefault(call.first.kind, []).append(call)
    return [_operator(kind, calls) for kind, calls in kinds.items()]


def _operator(kind: str, calls: list[CallRow]) -> OperatorSummary:
    wrong = sum(c.is_wrong for c in calls)
    open_ = sum(not c.is_wrong and not c.is_judged for c in calls)
    ratios = [r.measured.worst.ratio for c in calls for r in c.reports if r.measured and r.measured.worst]
    return OperatorSummary(kind, len(calls) - wrong - open_, wrong, open_, max(ratios, default=0.0))


def verdict(call: CallRow) -> Text:
    return WRONG if call.is_wrong else RIGHT if call.is_judged else OPEN


def told(call: CallRow) -> Text:
    """The last column: why it is wrong or not judged, or whose wrong result it reads."""
    worst = call.worst
    if call.is_wrong and worst.hints:
        return worst.hints[0].says
    said = miss_sentence(worst) or broken_criterion(worst) if call.is_wrong else None
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


def baselines(call: CallRow) -> tuple[bool, float] | None:
    """Whether a call meets the standard with two baselines, and its worst ratio in units of the limit."""
    found = [r.also for r in call.reports if r.also is not None]
    if not found:
        return None
    limits = STANDARDS[TWO_BASELINES].rows["any"]
    worst = max(ratio / limit for also in found for ratio, limit in zip(also.ratios, limits, strict=True))
    return all(also.holds for also in found), worst


def beside_a_third_party(found: DumpComparison) -> Text:
    met = sum(r.also is not None and r.also.holds for r in found.beside)
    missed = len(found.beside) - met
    return Text(
        f"two baselines: {met:,} {'output' if met == 1 else 'outputs'} pass, {missed:,} fail",
        f"双标杆：{met:,}个输出通过，{missed:,}个不通过",
    )


def lines(found: DumpComparison, lang: str, width: int) -> Iterator[Styled]:
    """Everything between the heading and the last line."""
    yield Styled(summary(found).say(lang), "bold")
    if found.beside:
        yield Styled(beside_a_third_party(found).say(lang))
    if found.wrong:
        yield from _first(found.wrong[0], lang)
    yield Styled("")
    yield from _table(found, lang, width)
    for call in found.wrong[:_DESCRIBED]:
        yield from _described(call, lang)
    if len(found.wrong) > _DESCRIBED:
        rest = len(found.wrong) - _DESCRIBED
        yield Styled(f"\n… and {rest} more wrong calls" if lang == "en" else f"\n……另有{rest}次错误的调用")
    yield from _listed(Text("remarks:", "说明："), remarks(found), lang)
    yield from _listed(Text("not judged:", "未判断："), reasons(found), lang)
    yield from _by_operator(found, lang)


def _by_operator(found: DumpComparison, lang: str) -> Iterator[Styled]:
    yield Styled("\nby operator:" if lang == "en" else "\n按算子统计：", "bold")
    for name, right, wrong, open_, worst in operators(found):
        said = Text(
            f"  {name}: {right:,} right, {wrong:,} wrong, {open_:,} not judged; worst err/allowed {number(worst)}",
            f"  {name}：正确{right:,}，错误{wrong:,}，未判断{open_:,}；最大误差/允许{number(worst)}",
        )
        yield Styled(said.say(lang))


def _first(call: CallRow, lang: str) -> Iterator[Styled]:
    where = f" ({call.first.line})" if call.first.line else ""
    text = f"first wrong: {call.name}{where}" if lang == "en" else f"最先出错：{call.name}{where}"
    yield Styled(text, "bold red")


_HEAD = (
    Text("call", "调用"),
    Text("dtype", "类型"),
    Text("result", "结论"),
    Text("err/allowed", "误差/允许"),
)
BASELINES = Text("two baselines", "双标杆")
_WHY = Text("why", "说明")


def _table(found: DumpComparison, lang: str, width: int) -> Iterator[Styled]:
    calls = found.calls
    beside = bool(found.beside)
    head = [h.say(lang) for h in (*_HEAD, *((BASELINES,) if beside else ()), _WHY)]
    rows = [_cells(call, lang, beside) for call in calls[:ROWS]]
    yield from table(head, rows, width, right={3})
    if len(calls) > ROWS:
        rest = len(calls) - ROWS
        wrong = sum(c.is_wrong for c in calls[ROWS:])
        more = Text(f"… and {rest:,} more calls, {wrong:,} of them wrong", f"……另有{rest:,}次调用，其中{wrong:,}次错误")
        yield Styled(more.say(lang))


def _cells(call: CallRow, lang: str, beside: bool) -> tuple[str | Styled, ...]:
    worst = call.worst
    ratio = number(worst.measured.worst.ratio) if worst.measured and worst.measured.worst else "-"
    colour = "red" if call.is_wrong else "green" if call.is_judged else "yellow"
    third = (baselines_cell(call).say(lang),) if beside else ()
    result = Styled(verdict(call).say(lang), colour)
    return call.name, worst.dtype or "-", result, ratio, *third, told(call).say(lang) or "-"


def baselines_cell(call: CallRow) -> Text:
    """The verdict, and the worst ratio in units of what is allowed."""
    found = baselines(call)
    if found is None:
        return Text("-", "-")
    word = STATUS[PASS if found[0] else FAIL]
    return Text(*(f"{said} {number(found[1])}" for said in word))


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
    said = miss_sentence(report) or (broken_criterion(report) if report.status == FAIL else None)
    if said is None:
        plain = report.why.say(lang) if report.why else RIGHT.say(lang)
        yield Styled(f"  {report.output} {shape}: {plain}".replace(" :", ":"))
        return
    yield Styled(f"  {report.output} {shape}: {said.say(lang)}")
    worst = worst_sentence(report, digits=5 if "16" in report.dtype else 9)
    beside = report.also.criteria if report.also else ()
    broken = (c.text for c in beside if not c.holds and c.text != said)
    for text in (*((worst,) if worst else ()), *broken, *report.notes):
        yield Styled(f"    {text.say(lang)}")
    for hint in report.hints:
        yield Styled.from_markup(f"    [bold]{escape(hint.says.say(lang))}[/]")
        yield Styled(f"      {hint.proof.say(lang)}")


Grouped = list[tuple[Text, list[str]]]  # sentences, each with what it is said of


def reasons(found: DumpComparison) -> Grouped:
    """What was not judged, by reason."""
    return _grouped((r.why, r.label) for r in found.unjudged if r.why is not None)


def remarks(found: DumpComparison) -> Grouped:
    """What is right in a way that is worth a word."""
    return _grouped((note, r.label) for r in found.reports if r.status == PASS for note in r.notes)


def _grouped(said: Iterable[tuple[Text, str]]) -> Grouped:
    grouped: dict[Text, list[str]] = {}
    for text, label in said:
        grouped.setdefault(text, []).append(label)
    return list(grouped.items())


def _listed(head: Text, listed: Grouped, lang: str) -> Iterator[Styled]:
    if listed:
        yield Styled(f"\n{head.say(lang)}", "bold")
    for text, names in listed[:_REASONS]:
        more = f" … ({len(names):,})" if len(names) > 1 else ""
        yield Styled(f"  {text.say(lang)}")
        yield Styled(f"    {names[0]}{more}")
    if len(listed) > _REASONS:
        rest = len(listed) - _REASONS
        yield Styled(f"  … and {rest:,} more" if lang == "en" else f"  ……另有{rest:,}种")
