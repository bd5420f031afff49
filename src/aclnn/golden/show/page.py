"""The html report: one file, no network, English and Chinese, light and dark."""

from __future__ import annotations

import platform
import time
from html import escape
from importlib import resources
from string import Template

import numpy as np

from aclnn._version import __version__
from aclnn.golden.result import (
    FAIL,
    PASS,
    SKIPPED,
    STATUS,
    Comparison,
    DumpComparison,
    OutputReport,
    miss_sentence,
    specials_sentence,
)
from aclnn.golden.show import dump_page, pictures
from aclnn.golden.show.columns import HEAD, PAGE, SOUND
from aclnn.golden.show.columns import shown as columns
from aclnn.golden.show.html import badge, both, bullets, row
from aclnn.golden.show.terminal import next_step
from aclnn.golden.texts import Text, number

_SHOWN = 50  # outputs with pictures; the table has all of them
_LISTED = 10  # misses listed for each

_STRIPS = Text(
    "by axis: the worst error at each index; bars: how many elements there are beyond rounding",
    "各轴：每个位置的最大误差；柱：该位置超出舍入误差的元素个数",
)


def render(found: Comparison, lang: str = "en") -> str:
    if isinstance(found, DumpComparison):
        return _filled(found, lang, **dump_page.parts(found, section))
    shown = [r for r in found.reports if r.measured is not None or r.why is not None][:_SHOWN]
    rest = len(found.reports) - len(shown)
    return _filled(
        found,
        lang,
        table=_table(found),
        sections="".join(section(r) for r in shown),
        rest=both(Text(f"{rest} more outputs are in the table only.", f"另有{rest}个输出仅列于表中。")) if rest else "",
    )


def _filled(found: Comparison, lang: str, **parts: str) -> str:
    template = Template(resources.files("aclnn.golden.show").joinpath("page.html").read_text(encoding="utf-8"))
    verdict = PASS if found.passed else FAIL
    return template.substitute(
        lang="zh" if lang == "zh" else "en",
        verdict=badge(verdict, STATUS[verdict], "verdict"),
        sound=badge({True: PASS, False: FAIL, None: SKIPPED}[found.sound], SOUND[found.sound], "sound"),
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


def _standard(found: Comparison) -> Text:
    s = found.standard
    numbers = "".join(f" {row}: {said}." for row, said in found.in_force)
    return Text(
        f"{s.name}: {s.asks.en} ({s.source.en}, {s.since}).{numbers}",
        f"{s.name}：{s.asks.zh}（{s.source.zh}，{s.since}）。{numbers}",
    )


def _table(found: Comparison) -> str:
    head = row((both(name) for name in (*HEAD, *(metric.head for metric in columns(PAGE)))), tag="th")
    return f"<table><thead>{head}</thead><tbody>{''.join(_row(r) for r in found.reports)}</tbody></table>"


def _row(report: OutputReport) -> str:
    found = report.measured
    cells = [escape(report.case), escape(report.output), badge(report.status, STATUS[report.status])]
    if found is None:
        why = both(report.why) if report.why else ""
        return row(cells, f'<td colspan="{1 + len(columns(PAGE))}">{why}</td>')
    numbers = (metric.cell(found) for metric in columns(PAGE))
    cells += [both(SOUND[report.sound]), *(both(n) if isinstance(n, Text) else n for n in numbers)]
    return row(cells)


def section(report: OutputReport) -> str:
    found = report.measured
    opened = " open" if report.status != PASS or report.sound is not True else ""
    title = f"{escape(report.label)} <small>{escape(report.dtype)} {escape(str(list(report.shape)))}</small>"
    verdict = badge(report.status, STATUS[report.status])
    parts = [_call(report), f"<p>{both(report.why)}</p>" if report.why else ""]
    asked = dict.fromkeys((*report.criteria, *(report.also.criteria if report.also else ())))
    parts.append(bullets("criteria", [f"{'✓' if c.holds else '✗'} {both(c.text)}" for c in asked]))
    said = miss_sentence(report)
    parts.append(bullets("places", [] if said is None else [both(said)]))
    parts.append(bullets("notes", [both(n) for n in report.notes]))
    for hint in report.hints:
        parts.append(f'<p class="hint"><b>{both(hint.says)}</b><br>{both(hint.proof)}</p>')
    if found is not None and found.count:
        specials = specials_sentence(report)
        parts += [f"<p>{both(specials)}</p>" if specials else "", _pictures(report), _misses(report)]
    return f'<details class="output"{opened}><summary>{verdict} {title}</summary>{"".join(parts)}</details>'


def _call(report: OutputReport) -> str:
    """Which call it was an output of."""
    said = " · ".join(part for part in (report.operator, report.product, report.attributes) if part)
    return f'<p class="call">{escape(said)}</p>' if said else ""


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
    shown = found.listed[:_LISTED]
    rows = "".join(row([str(list(m.index)), repr(m.target), repr(m.golden), number(m.ratio)]) for m in shown)
    caption = Text(
        f"{len(shown)} worst of {found.misses:,} elements beyond rounding",
        f"{found.misses:,}个超出舍入误差的元素中最差的{len(shown)}个",
    )
    return f'<table class="misses"><caption>{both(caption)}</caption>{row(map(both, names), tag="th")}{rows}</table>'
