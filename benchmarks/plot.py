"""Plots of the measurements, as PNG and SVG: ratio to PyTorch per shape, time against size, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from benchmarks import table
from benchmarks.table import Line, lines

COLORS = {"ahead": "#2a9d5c", "tie": "#8a8f98", "behind": "#c8433a"}
PROVIDERS = {"aclnn": "#1f5fa8", "torch": "#d9772b", "torch.compile": "#e0a94f", "jax": "#8a8f98"}


def draw(rows: list[dict[str, Any]], folder: Path) -> None:
    for column in ("given", "fresh"):
        shown = [line for line in lines(rows) if line.column == column]
        if shown:
            _save(_ratios(shown, table.TITLES[column]), folder / f"ratio-{column}")
    if any(row.get("growth") for row in rows):
        _save(_growth(rows), folder / "growth")
    if any("peak" in row for row in rows):
        _save(_memory(rows), folder / "memory")


def _save(figure: Any, path: Path) -> None:
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=130, bbox_inches="tight")
    plt.close(figure)


def _ratios(shown: list[Line], title: str) -> Any:
    """A bar per shape from 1, the range over the processes as a whisker."""
    shown = sorted(shown, key=lambda line: (line.operator, line.dtype, line.ratio), reverse=True)
    figure, axes = plt.subplots(figsize=(9, 0.23 * len(shown) + 1.2))
    for y, line in enumerate(shown):
        axes.barh(y, line.ratio - 1, left=1, color=COLORS[line.verdict], height=0.72)
        axes.plot([line.low, line.high], [y, y], color="black", linewidth=1)
        axes.text(max(line.high, 1) * 1.04, y, f"{line.ratio:.2f}", va="center", fontsize=7)
    axes.set_yticks(range(len(shown)), [f"{n.operator}  {n.shape}  {n.dtype}" for n in shown], fontsize=7)
    axes.set_xscale("log")
    ticks = [
        t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5) if t >= 0.8 * min(n.low for n in shown)
    ]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_xlabel("time ÷ PyTorch's time (below 1: faster)")
    axes.set_title(f"Gradients beside PyTorch, {title}")
    _frame(axes)
    return figure


def _growth(rows: list[dict[str, Any]]) -> Any:
    """Time against size, one panel per operator; one thread dashed."""
    operators = sorted({row["operator"] for row in rows if row.get("growth")})
    figure, panels = plt.subplots(1, len(operators), figsize=(3.3 * len(operators), 3.4), squeeze=False)
    for axes, operator in zip(panels[0], operators, strict=True):
        found = [r for r in rows if r.get("growth") and r["operator"] == operator]
        names = list(dict.fromkeys(r["shape"] for r in found))
        for threads in sorted({r["threads"] for r in found}):
            for provider in ("aclnn", "torch"):
                of_it = [r for r in found if r["threads"] == threads and provider in r["times"]]
                times = [1e3 * r["times"][provider]["p50"] for r in of_it]
                style = {"linestyle": "--" if threads == 1 else "-", "marker": "o", "markersize": 3}
                label = f"{provider}, {threads} thread{'s' if threads > 1 else ''}"
                axes.plot(range(len(times)), times, color=PROVIDERS[provider], label=label, **style)
        axes.set_xticks(range(len(names)), names, fontsize=7)
        axes.set_yscale("log")
        axes.set_title(operator, fontsize=9)
        _frame(axes)
    panels[0][0].set_ylabel("milliseconds")
    panels[0][0].legend(fontsize=6, frameon=False)
    figure.tight_layout()
    return figure


def _memory(rows: list[dict[str, Any]]) -> Any:
    """Peak memory of both, shape by shape."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.get("peak"):
            found.setdefault(f"{row['operator']}  {row['shape']}", {})[row["provider"]] = row["peak"] / 2**20
    both = {name: peaks for name, peaks in found.items() if len(peaks) == 2}
    figure, axes = plt.subplots(figsize=(8, 0.3 * len(both) + 1.2))
    for y, (name, peaks) in enumerate(reversed(both.items())):
        axes.barh(y + 0.19, peaks["aclnn"], height=0.36, color=PROVIDERS["aclnn"], label="aclnn" if y == 0 else None)
        axes.barh(y - 0.19, peaks["torch"], height=0.36, color=PROVIDERS["torch"], label="torch" if y == 0 else None)
    axes.set_yticks(range(len(both)), list(reversed(both)), fontsize=7)
    axes.set_xlabel("growth of the process, MiB")
    axes.set_title("Peak memory of three calls with fresh outputs")
    axes.legend(fontsize=7, frameon=False)
    _frame(axes)
    return figure


def _frame(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
