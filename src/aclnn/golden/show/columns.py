"""The numbers of an output: one table that the terminal, the page, csv and json are made from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from aclnn.golden.judge.baselines import Errors
from aclnn.golden.judge.blocks import SPECIALS
from aclnn.golden.judge.metrics import Measured
from aclnn.golden.result import FAIL, PASS, OutputReport
from aclnn.golden.texts import Text, number, percent

SOUND = {True: Text("yes", "是"), False: Text("no", "否"), None: Text("not known", "未知")}
HEAD = (Text("case", "用例"), Text("output", "输出"), Text("verdict", "判定"), Text("sound", "可信"))
TERMINAL, PAGE = "terminal", "page"


class Metric(NamedTuple):
    """One number: its name in files, its head and its cell where people read it, and who shows it beside files."""

    key: str
    value: Callable[[Measured], Any]
    head: Text = Text("", "")
    cell: Callable[[Measured], str | Text] = lambda found: ""
    shown: tuple[str, ...] = ()


def _plain(key: str, en: str, zh: str, *shown: str) -> Metric:
    return Metric(key, lambda m: getattr(m, key), Text(en, zh), lambda m: number(getattr(m, key)), shown)


def _count(key: str, name: str = "") -> Metric:
    return Metric(key, lambda m: getattr(m, name or key))


def _bits(found: Measured) -> str | Text:
    return Text("all", "全部") if math.isinf(found.effective_bits) else f"{found.effective_bits:.1f}"


def _of_worst(name: str) -> Callable[[Measured], Any]:
    return lambda m: getattr(m.worst, name) if m.worst else ""


METRICS = (
    _count("elements", "count"),
    Metric(
        "in_tolerance",
        lambda m: m.in_tolerance,
        Text("in tol.", "容差内"),
        lambda m: percent(m.in_tolerance, m.count) if m.count else "-",
        (TERMINAL, PAGE),
    ),
    _plain("max_abs", "max abs", "最大绝对", TERMINAL, PAGE),
    _plain("mean_abs", "mean abs", "平均绝对", PAGE),
    _plain("max_rel", "max rel", "最大相对", TERMINAL, PAGE),
    _plain("mean_rel", "mean rel", "平均相对", PAGE),
    _plain("rmse", "RMSE", "RMSE", PAGE),
    Metric("cosine", lambda m: m.cosine, Text("cosine", "余弦"), lambda m: f"{m.cosine:.5f}", (TERMINAL, PAGE)),
    Metric("effective_bits", lambda m: m.effective_bits, Text("bits", "有效位"), _bits, (TERMINAL, PAGE)),
    *map(_count, SPECIALS),
    Metric("misses", lambda m: m.misses, Text("misses", "超差数"), lambda m: f"{m.misses:,}", (PAGE,)),
    Metric("worst_index", lambda m: " ".join(map(str, m.worst.index)) if m.worst else ""),
    Metric("worst_target", _of_worst("target")),
    Metric("worst_golden", _of_worst("golden")),
    Metric(
        "worst_ratio",
        _of_worst("ratio"),
        Text("err/allowed", "误差/允许"),
        lambda m: number(m.worst.ratio) if m.worst else "0",
        (TERMINAL, PAGE),
    ),
)


def shown(where: str) -> tuple[Metric, ...]:
    return tuple(metric for metric in METRICS if where in metric.shown)


def row(report: OutputReport) -> dict[str, Any]:
    """One output in one line: the columns of csv and xlsx."""
    found = report.measured
    head = {
        "case": report.case,
        "operator": report.operator or "",
        "output": report.output,
        "verdict": report.status,
        "sound": SOUND[report.sound].en if found or report.missing else "",
        "standard": report.rule.standard if report.rule else "",
        "row": report.rule.row if report.rule else "",
        "tolerances": report.rule.said if report.rule else "",
        "golden": report.golden if found else "",
        "dtype": report.dtype,
        "shape": "x".join(map(str, report.shape)),
    }
    numbers = {metric.key: metric.value(found) if found else "" for metric in METRICS}
    return {**head, **numbers, **_of_a_dump(report), "remarks": remarks(report)}


def _of_a_dump(report: OutputReport) -> dict[str, Any]:
    """What only a call in a dump has."""
    if not report.kind:
        return {}
    also = report.also
    rivals: dict[str, Any] = {f"also_{key}": getattr(also.third, key) if also else "" for key in Errors._fields}
    rivals |= {f"ratio_{key}": getattr(also.ratios, key) if also else "" for key in Errors._fields}
    rivals["two_baselines"] = "" if also is None else PASS if also.holds else FAIL
    told = {"call": report.kind, "order": report.order, "line": report.line, "inherits": report.inherits}
    return told | rivals


def remarks(report: OutputReport) -> str:
    said = [report.why.en] if report.why else []
    said += [c.text.en for c in report.criteria if not c.holds]
    said += [t.en for t in (*report.places, *report.notes)]
    return "; ".join([*said, *(f"{h.says.en} ({h.proof.en})" for h in report.hints)])
