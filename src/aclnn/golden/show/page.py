"""The html report: one file, no network, English and Chinese, light and dark."""

from __future__ import annotations

import platform
import time
from html import escape
from importlib import resources
from string import Template

import numpy as np

from aclnn._version import __version__
from aclnn.golden.result import FAIL, PASS, STATUS, Comparison, DumpComparison, OutputReport, miss_sentence
from aclnn.golden.show import dump_page, pictures
from aclnn.golden.show.columns import PAGE, SOUND
from aclnn.golden.show.columns import shown as columns
from aclnn.golden.show.terminal import next_step
from aclnn.golden.texts import Text, number

_SHOWN = 50  # outputs with pictures; the table has all of them
_LISTED = 10  # misses listed for each

_HEAD = (Text("case", "用例"), Text("output", "输出"), Text("verdict", "判定"), Text("sound", "可信"))
_STRIPS = Text(
    "by axis: the worst error at each index; bars: how many elements there are beyond rounding",
    "各轴：每个位置的最大误差；柱：该位置超出舍入误差的元素个数",
)


def render(found: Comparison, lang: str = "en") -> str:
    if isinstance(found, DumpComparison):
        return _filled(found, lang, **dump_page.parts(found, both, section))
    shown = [r for r in found.reports if r.measured is not None or r.why is not None][:_SHOWN]
    return _filled(
        found,
        lang,
        table=_table(found),
        sections="".join(section(r) for r in shown),
        rest=both(_rest(len(found.reports) - len(shown))),
    )


def _filled(found: Comparison, lang: str, **parts: str) -> str:
    template = Template(resources.files("aclnn.golden.show").joinpath("page.html").read_text(encoding="utf-8"))
    verdict = PASS if found.passed else FAIL
    return template.substitute(
        lang="zh" if lang == "zh" else "en",
        verdict=_badge("verdict", verdict, STATUS[verdict]),
        sound=_badge("sound", {True: "pass", False: "fail", None: "skipped"}[found.sound], SOUND[found.sound]),
        standard=both(_standard(found)),
        legend=pictures.legend(),
        width="1500px" if isinstance(found, DumpComparison) else "1180px",
        **parts,
        next=both(Text(*(next_step(found, lang, has_page=True).strip() for lang in ("en", "zh")))),
        version=escape(_made_with()),
    )


def _made_with() -> str:
    python = f"Python {platform.python_version()}, numpy {np.__version__}"
    return f"aclnn-cpu {__version__}, {python}, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}"


def both(text: Text) -> str:
    if text.en == text.zh:
        return escape(text.en)
    return f'<span class="en" lang="en">{escape(text.en)}</span><span class="zh" lang="zh">{escape(text.zh)}</span>'


def _badge(identity: str, kind: str, text: Text) -> str:
    return f'<b id="{identity}" class="badge {kind}">{both(text)}</b>'


def _standard(found: Comparison) -> Text:
    s = found.standard
    numbers = "".join(f" {row}: {said}." for row, said in found.in_force)
    return Text(
        f"{s.name}: {s.asks.en} ({s.source.en}, {s.since}).{numbers}",
        f"{s.name}：{s.asks.zh}（{s.source.zh}，{s.since}）。{numbers}",
    )


def _rest(count: int) -> Text:
    return (
        Text(f"{count} more outputs are in the table only.", f"另有{count}个输出仅列于表中。")
        if count
        else Text("", "")
    )


def _table(found: Comparison) -> str:
    names = (*_HEAD, *(metric.head for metric in columns(PAGE)))
    head = "".join(f"<th>{both(name)}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(_row(r) for r in found.reports)}</tbody></table>"


def _row(report: OutputReport) -> str:
    found = report.measured
    badge = f'<b class="badge {report.status}">{both(STATUS[report.status])}</b>'
    cells = [escape(report.case), escape(report.output), badge]
    if found is None:
        why = both(report.why) if report.why else ""
        return f'<tr>{"".join(f"<td>{c}</td>" for c in cells)}<td colspan="{1 + len(columns(PAGE))}">{why}</td></tr>'
    numbers = (metric.cell(found) for metric in columns(PAGE))
    cells += [both(SOUND[report.sound]), *(both(n) if isinstance(n, Text) else n for n in numbers)]
    return f"<tr>{''.join(f'<td>{c}</td>' for c in cells)}</tr>"


def section(report: OutputReport) -> str:
    found = report.measured
    opened = " open" if report.status != PASS or report.sound is not True else ""
    title = f"{escape(report.label)} <small>{escape(report.dtype)} {escape(str(list(report.shape)))}</small>"
    badge = f'<b class="badge {report.status}">{both(STATUS[report.status])}</b>'
    parts = [_call(report), f"<p>{both(report.why)}</p>" if report.why else ""]
    asked = dict.fromkeys((*report.criteria, *(report.also.criteria if report.also else ())))
    parts.append(_list("criteria", [f"{'✓' if c.holds else '✗'} {both(c.text)}" for c in asked]))
    said = miss_sentence(report)
    parts.append(_list("places", [] if said is None else [both(said)]))
    parts.append(_list("notes", [both(n) for n in report.notes]))
    for hint in report.hints:
        parts.append(f'<p class="hint"><b>{both(hint.says)}</b><br>{both(hint.proof)}</p>')
    if found is not None and found.count:
        parts += [_specials(report), _pictures(report), _misses(report)]
    return f'<details class="output"{opened}><summary>{badge} {title}</summary>{"".join(parts)}</details>'


def _call(report: OutputReport) -> str:
    """Which call it was an output of."""
    said = " · ".join(part for part in (report.operator, report.product, report.attributes) if part)
    return f'<p class="call">{escape(said)}</p>' if said else ""


def _list(kind: str, items: list[str]) -> str:
    return f'<ul class="{kind}">{"".join(f"<li>{item}</li>" for item in items)}</ul>' if items else ""


def _specials(report: OutputReport) -> str:
    found = report.measured
    assert found is not None
    counts = (found.nan_target, found.inf_target, found.nan_golden, found.inf_golden, found.special_misses)
    if not any(counts):
        return ""
    en = "target NaN {:,} Inf {:,}; golden NaN {:,} Inf {:,}; {:,} do not agree".format(*counts)
    zh = "待测NaN {:,} Inf {:,}；标杆NaN {:,} Inf {:,}；不一致{:,}".format(*counts)
    return f"<p>{both(Text(en, zh))}</p>"


def _pictures(report: OutputReport) -> str:
    found = report.measured
    assert found is not None
    drawn = [(Text("error histogram", "误差直方图"), pictures.histogram(found))]
    if found.strips:
        drawn.append((_STRIPS, pictures.strips(found, report.axes)))
    if report.slice is not None:
        others = list(report.slice.through)
        name = Text(f"slice through the worst element {others}", f"最差元素{others}所在切片")
        drawn.append((name, pictures.heatmap(report.slice, report.axes)))
    figures = (f"<figure><figcaption>{both(name)}</figcaption>{svg}</figure>" for name, svg in drawn if svg)
    return f'<div class="pictures">{"".join(figures)}</div>'


def _misses(report: OutputReport) -> str:
    found = report.measured
    assert found is not None
    if not found.listed:
        return ""
    names = (
        Text("index", "位置"),
        Text("target", "待测"),
        Text("golden", "标杆"),
        Text("error / allowed", "误差/允许"),
    )
    head = "".join(f"<th>{both(n)}</th>" for n in names)
    rows = "".join(
        f"<tr><td>{list(m.index)}</td><td>{m.target!r}</td><td>{m.golden!r}</td><td>{number(m.ratio)}</td></tr>"
        for m in found.listed[:_LISTED]
    )
    caption = Text(
        f"{min(_LISTED, len(found.listed))} worst of {found.misses:,} elements beyond rounding",
        f"{found.misses:,}个超出舍入误差的元素中最差的{min(_LISTED, len(found.listed))}个",
    )
    return f'<table class="misses"><caption>{both(caption)}</caption><tr>{head}</tr>{rows}</table>'
