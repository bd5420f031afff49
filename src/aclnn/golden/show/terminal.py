"""A comparison on a terminal: the worst first, as wide as there is room, and at the end what to do next."""

from __future__ import annotations

from rich.console import Group
from rich.markup import escape
from rich.text import Text as Styled

from aclnn.base.language import current
from aclnn.base.layout import fold, table
from aclnn.golden.result import (
    ERROR,
    FAIL,
    PASS,
    SKIPPED,
    STATUS,
    Comparison,
    DumpComparison,
    OutputReport,
    miss_sentence,
    specials_sentence,
    worst_sentence,
)
from aclnn.golden.show import calls
from aclnn.golden.show.columns import HEAD, SOUND, TERMINAL, shown
from aclnn.golden.texts import Text, many

WIDTH = 100  # of what `print` shows, and a log
_ROWS = 40  # outputs in the table
_SHOWN = 12  # outputs that are described in full
_SOUND_COLOURS = {True: "green", False: "red", None: "none"}
_COLOURS = {PASS: "green", FAIL: "red", ERROR: "red", SKIPPED: "yellow"}


def as_text(found: Comparison, lang: str | None = None) -> str:
    """What `print` shows: no colours, always the same width."""
    return "\n".join(line.plain for line in lines(found, current(lang))).rstrip("\n")


def render(found: Comparison, lang: str | None = None, width: int = WIDTH) -> Group:
    return Group(*lines(found, current(lang), width))


def lines(found: Comparison, lang: str, width: int | None = None, has_page: bool = False) -> list[Styled]:
    """All lines, laid out for so many columns."""
    columns = WIDTH if width is None else width
    parts = [*_parts(found, lang, columns), Styled(next_step(found, lang, has_page))]
    return [line for part in parts for line in fold(part, columns, hang=2)]


def _parts(found: Comparison, lang: str, width: int) -> list[Styled]:
    if isinstance(found, DumpComparison):
        return [_heading(found, lang), *calls.lines(found, lang, width)]
    parts = [_heading(found, lang), *_table(found, lang, width), *_rest(found, lang)]
    wanting = [r for r in found.reports if r.status != PASS or not r.sound or r.notes]
    for report in wanting[:_SHOWN]:
        parts += [Styled.from_markup(line) for line in _details(report, lang)]
    if len(wanting) > _SHOWN:
        rest = len(wanting) - _SHOWN
        parts.append(Styled(f"\n… and remarks on {rest} more" if lang == "en" else f"\n……另有{rest}个输出有说明"))
    return parts


def _heading(found: Comparison, lang: str) -> Styled:
    standard, status = found.standard, PASS if found.passed else FAIL
    verdict = f"[{_COLOURS[status]}]{STATUS[status].say(lang).upper()}[/]"
    sound = f"[{_SOUND_COLOURS[found.sound]}]{SOUND[found.sound].say(lang)}[/]"
    first = Text(
        f"verdict ({standard.name}): {verdict}    sound: {sound}",
        f"判定（{standard.name}）：{verdict}    可信：{sound}",
    )
    lines = [first.say(lang), standard.asks.say(lang), *(f"{row}: {said}" for row, said in found.in_force)]
    return Styled.from_markup("\n".join(lines))


def _table(found: Comparison, lang: str, width: int) -> list[Styled]:
    """One line per output; the case stands before it if there are several."""
    rows = found.reports[:_ROWS]
    first = 0 if len({r.case for r in found.reports}) > 1 else 1
    heads = [t.say(lang) for t in (*HEAD, *(metric.head for metric in shown(TERMINAL)))]
    cells: list[list[str | Styled]] = []
    for r in rows:
        verdict = Styled(STATUS[r.status].say(lang), _COLOURS[r.status])
        cells.append([r.case, r.output or ("-" if first == 0 else r.case), verdict, *_numbers(r, lang)])
    numbers = range(len(HEAD) - first, len(heads) - first)
    return table(heads[first:], [row[first:] for row in cells], width, numbers)


def _rest(found: Comparison, lang: str) -> list[Styled]:
    """What the table does not show: never more than a few lines."""
    rest = found.reports[_ROWS:]
    if not rest:
        return []
    right = sum(r.status == PASS and r.sound is True for r in rest)
    if lang == "zh":
        return [Styled(f"……另有{len(rest):,}个输出，其中{right:,}个通过且可信")]
    return [Styled(f"… and {many(len(rest), 'more output')}, of which {right:,} pass and are sound")]


def _numbers(report: OutputReport, lang: str) -> tuple[str, ...]:
    found, metrics = report.measured, shown(TERMINAL)
    if found is None:
        return (SOUND[False].say(lang) if report.missing else "-",) + ("-",) * len(metrics)
    sound = {"en": "?", "zh": "？"}[lang] if report.sound is None else SOUND[report.sound].say(lang)
    cells = (metric.cell(found) for metric in metrics)
    return sound, *(cell.say(lang) if isinstance(cell, Text) else cell for cell in cells)


def _details(report: OutputReport, lang: str) -> list[str]:
    """The lines that say what is wrong with one output, or remarkable about it."""
    kind = f"  {report.dtype} {escape(str(list(report.shape)))}" if report.dtype else ""
    lines = [f"\n[bold]{escape(report.label)}[/]{kind}"]
    if report.why is not None:
        lines.append(f"  {STATUS[report.status].say(lang)}: {escape(report.why.say(lang))}")
    lines += [f"  {escape(c.text.say(lang))}" for c in report.criteria if not c.holds]
    misses = miss_sentence(report)
    said = (misses, worst_sentence(report) if misses else None, specials_sentence(report), *report.notes)
    lines += [f"  {escape(text.say(lang))}" for text in said if text is not None]
    for hint in report.hints:
        lines.append(f"  [bold]{escape(hint.says.say(lang))}[/]")
        lines.append(f"    {escape(hint.proof.say(lang))}")
    return lines


def next_step(found: Comparison, lang: str = "en", has_page: bool = False) -> str:
    """The last line: what to do now; not to make the page for who has it."""
    en, zh = _next_step(found)
    if has_page:
        en, zh = en.partition("; -o report.html")[0], zh.partition("；-o report.html")[0]
    return f"\nnext: {en}" if lang == "en" else f"\n下一步：{zh}"


def _next_step(found: Comparison) -> tuple[str, str]:
    given = any(r.golden == "given" for r in found.compared)
    if isinstance(found, DumpComparison) and (found.wrong or not found.compared):
        return _next_step_in_a_dump(found)
    if found.errors:
        first = found.errors[0]
        return f"repair the input {first.label!r}, then compare again", f"修正输入{first.label!r}后重新比对"
    if found.missing:
        names = ", ".join(r.output for r in found.missing[:3])
        return (
            f"add {names} to the target, or name what to compare with --only",
            f"补全{names}，或用--only指定要比对的输出",
        )
    hinted = next((r for r in found.reports if r.hints), None)
    if hinted is not None:
        return f"follow the hint for {hinted.output}, then compare again", f"按{hinted.output}的提示修正后重新比对"
    if found.passed and given and found.sound is not False:
        return "nothing; the target agrees with the golden given", "无需处理，结果与给定的标杆一致"
    if found.sound and found.passed:
        return "nothing; the target is right", "无需处理，结果正确"
    if found.sound:
        return (
            "the target is right as far as rounding goes; choose another standard, or --strict",
            "结果在舍入误差之内；可换用其他标准或使用--strict",
        )
    worst = found.worst
    if found.sound is None:
        return (
            "compare a case file with the operator's inputs to find out whether this is rounding",
            "用包含算子输入的用例文件比对，以判断是否属于舍入误差",
        )
    if worst is None:
        return "give a target with outputs", "提供包含输出的待测数据"
    where = f"{worst.output}{list(worst.where)}"
    return (
        f"look at {where} first; -o report.html shows where the errors are",
        f"先查看{where}；-o report.html显示误差分布",
    )


def _next_step_in_a_dump(found: DumpComparison) -> tuple[str, str]:
    if not found.wrong:
        return (
            "nothing could be judged; dump with task tensor and level mix",
            "没有可判断的调用；请以task tensor、level mix采集",
        )
    first = found.wrong[0]
    where = f" ({first.first.line})" if first.first.line else ""
    return (
        f"look at {first.name}{where} first; -o report.html shows where its errors are",
        f"先查看{first.name}{where}；-o report.html显示其误差分布",
    )
