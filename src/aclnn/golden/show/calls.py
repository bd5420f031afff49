"""The calls of a dump on a terminal: what went wrong first, then every call, then what was not judged and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from rich.markup import escape
from rich.text import Text as Styled

from aclnn.base.layout import table
from aclnn.golden.judge.standards import STANDARDS, TWO_BASELINES
from aclnn.golden.result import (
    FAIL,
    PASS,
    SKIPPED,
    STATUS,
    CallRow,
    DumpComparison,
    OutputReport,
    broken_criterion,
    miss_sentence,
    worst_sentence,
)
from aclnn.golden.texts import Text, many, number

ROWS = 40  # calls in the table
_DESCRIBED = 12  # wrong calls that are described in full
_REASONS = 8  # remarks, and reasons for which calls were not judged
VERDICTS = {FAIL: Text("WRONG", "错误"), PASS: Text("right", "正确"), SKIPPED: Text("not judged", "未判断")}
_COLOURS = {FAIL: "red", PASS: "green", SKIPPED: "yellow"}


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
    wrong, open_ = (sum(c.status == status for c in calls) for status in (FAIL, SKIPPED))
    ratios = [r.worst.ratio for c in calls for r in c.reports if r.worst]
    return OperatorSummary(kind, len(calls) - wrong - open_, wrong, open_, max(ratios, default=0.0))


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


def baselines(call: CallRow) -> Text:
    """Whether a call meets the standard with two baselines, and its worst ratio in units of what is allowed."""
    found = [r.also for r in call.reports if r.also is not None]
    if not found:
        return Text("-", "-")
    limits = STANDARDS[TWO_BASELINES].rows["any"]
    worst = max(ratio / limit for also in found for ratio, limit in zip(also.ratios, limits, strict=True))
    word = STATUS[PASS if all(also.holds for also in found) else FAIL]
    return Text(*(f"{said} {number(worst)}" for said in word))


class CallColumn(NamedTuple):
    """One column of the table of calls."""

    head: Text
    cell: Callable[[CallRow], Text]


def _plain(en: str, zh: str, cell: Callable[[CallRow], str]) -> CallColumn:
    """A column that says the same in both languages."""
    return CallColumn(Text(en, zh), lambda call: Text(*[cell(call)] * 2))


COLUMNS = {
    "call": _plain("call", "调用", lambda call: call.name),
    "result": CallColumn(Text("result", "结论"), lambda call: VERDICTS[call.status]),
    "ratio": _plain("err/allowed", "误差/允许", lambda call: number(w.ratio) if (w := call.worst.worst) else "-"),
    "third": CallColumn(Text("two baselines", "双标杆"), baselines),
    "why": CallColumn(Text("why", "说明"), told),
    "line": _plain("line", "代码行", lambda call: call.first.line.rpartition("/")[2]),
    "type": _plain("dtype", "类型", lambda call: call.worst.dtype),
    "op": _plain("operator", "算子", lambda call: call.first.operator or call.first.kind),
    "shapes": _plain(
        "shapes", "形状", lambda call: ", ".join(f"{r.output} {list(r.shape)}" for r in call.reports if r.measured)
    ),
}


def columns(found: DumpComparison, *keys: str) -> dict[str, CallColumn]:
    """The columns named; that of a third party only where there is one."""
    return {key: COLUMNS[key] for key in keys if key != "third" or found.beside}


def summary(found: DumpComparison) -> Text:
    calls = found.calls
    wrong, judged = len(found.wrong), sum(c.is_judged for c in calls)
    open_ = len(calls) - judged
    return Text(
        f"{many(judged, 'call')} judged, {wrong:,} wrong; {open_:,} not judged",
        f"判断了{judged:,}次调用，其中{wrong:,}次错误；{open_:,}次未判断",
    )


def beside_a_third_party(found: DumpComparison) -> Text:
    met = sum(r.also is not None and r.also.holds for r in found.beside)
    missed = len(found.beside) - met
    return Text(
        f"two baselines: {many(met, 'output')} pass, {missed:,} fail",
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


def _table(found: DumpComparison, lang: str, width: int) -> Iterator[Styled]:
    calls, shown = found.calls, columns(found, "call", "type", "result", "ratio", "third", "why")
    rows = [[_cell(key, call, lang) for key in shown] for call in calls[:ROWS]]
    yield from table([head.say(lang) for head, _ in shown.values()], rows, width, right={3})
    if len(calls) > ROWS:
        rest = len(calls) - ROWS
        wrong = sum(c.is_wrong for c in calls[ROWS:])
        more = Text(f"… and {rest:,} more calls, {wrong:,} of them wrong", f"……另有{rest:,}次调用，其中{wrong:,}次错误")
        yield Styled(more.say(lang))


def _cell(key: str, call: CallRow, lang: str) -> str | Styled:
    said = COLUMNS[key].cell(call).say(lang) or "-"
    return Styled(said, _COLOURS[call.status]) if key == "result" else said


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
        plain = report.why.say(lang) if report.why else VERDICTS[PASS].say(lang)
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
