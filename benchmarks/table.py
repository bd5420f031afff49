"""Rows of measurements as a table: ratios to PyTorch, judged by their range over the processes.

A ratio is ours ÷ PyTorch's, medians of one process, turn by turn. Its row has the median over the processes and the
range. Ahead: the whole range is below 1. Behind: the whole range is above 1. A tie: it contains 1.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

TITLES = {"given": "outputs given", "fresh": "fresh outputs"}


class Line(NamedTuple):
    """One shape."""

    operator: str
    shape: str
    dtype: str
    column: str
    ratio: float
    low: float
    high: float
    milliseconds: float
    others: dict[str, float]  # ratio of ours to further providers
    limit: float  # share of what the machine can do

    @property
    def verdict(self) -> str:
        return "ahead" if self.high < 1 else "behind" if self.low > 1 else "tie"


def read(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def lines(rows: Iterable[dict[str, Any]]) -> list[Line]:
    grouped: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if "times" in row and "torch" in row["times"] and not row["growth"]:
            key = row["operator"], row["shape"], row["dtype"], row["column"]
            grouped.setdefault(key, []).append(row)
    return [_line(key, found) for key, found in grouped.items()]


def _line(key: tuple[str, ...], rows: list[dict[str, Any]]) -> Line:
    def ratios(provider: str) -> list[float]:
        with_it = [row["times"] for row in rows if provider in row["times"]]
        return [t["aclnn"]["p50"] / t[provider]["p50"] for t in with_it]

    to_torch = ratios("torch")
    others = {p: statistics.median(ratios(p)) for p in rows[0]["times"] if p not in ("aclnn", "torch")}
    taken = statistics.median(row["times"]["aclnn"]["p50"] for row in rows)
    share = statistics.median(_share(row) for row in rows)
    operator, shape, dtype, column = key
    median = statistics.median(to_torch)
    return Line(operator, shape, dtype, column, median, min(to_torch), max(to_torch), 1e3 * taken, others, share)


def _share(row: dict[str, Any]) -> float:
    """Of the float32 product, or of the triad, of the same process."""
    (kind, amount), seconds = next(iter(row["work"].items())), row["times"]["aclnn"]["p50"]
    return float(amount / seconds / row["sgemm" if kind == "flops" else "triad"])


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def text(rows: list[dict[str, Any]]) -> str:
    """For a terminal."""
    found = lines(rows)
    width = max((len(line.shape) for line in found), default=0)
    shown = []
    for (operator, dtype, column), group in _groups(found).items():
        mean = geometric_mean(line.ratio for line in group)
        shown.append(f"\n{operator}, {dtype}, {TITLES[column]}: {mean:.2f} of PyTorch's time")
        for line in group:
            others = "".join(f"  {name} {ratio:.2f}" for name, ratio in line.others.items())
            range_ = f"{line.ratio:5.2f} [{line.low:.2f}, {line.high:.2f}] {line.verdict:6}"
            took = f"{line.milliseconds:9.3f} ms  {100 * line.limit:3.0f} % of the limit"
            shown.append(f"  {line.shape:{width}}  {range_} {took}{others}")
    return "\n".join(shown)


def markdown(rows: list[dict[str, Any]]) -> str:
    """For documents: one row per operator, dtype and column."""
    shown = [
        "| operator | dtype | outputs | of PyTorch's time | ahead | tie | behind |",
        "|---|---|---|---|---|---|---|",
    ]
    for (operator, dtype, column), group in _groups(lines(rows)).items():
        verdicts = [line.verdict for line in group]
        counts = " | ".join(str(verdicts.count(v)) for v in ("ahead", "tie", "behind"))
        mean = geometric_mean(line.ratio for line in group)
        low, high = min(line.ratio for line in group), max(line.ratio for line in group)
        shown.append(f"| {operator} | {dtype} | {column} | {mean:.2f} ({low:.2f} to {high:.2f}) | {counts} |")
    return "\n".join([*shown, "", _conditions(rows), ""])


def _conditions(rows: list[dict[str, Any]]) -> str:
    """What the rows were measured on."""
    row = next((r for r in rows if "times" in r), None)
    if row is None:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
    return f"{row['processor']}, {row['threads']} threads; {versions}."


def _groups(found: Iterable[Line]) -> dict[tuple[str, str, str], list[Line]]:
    grouped: dict[tuple[str, str, str], list[Line]] = {}
    for line in found:
        grouped.setdefault((line.operator, line.dtype, line.column), []).append(line)
    return dict(sorted(grouped.items()))
