"""Plots of the measurements, as PNG and SVG: ratio to PyTorch per shape, time against size, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.patches import Patch

from benchmarks.rows import Row
from benchmarks.shapes import OPERATORS
from benchmarks.table import TITLES, Group, groups, lines, short

COLORS = {"ahead": "#2a9d5c", "tie": "#8a8f98", "behind": "#c8433a"}
PROVIDERS = {"aclnn": "#1f5fa8", "torch": "#d9772b"}
TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
STYLE: Any = {
    "svg.fonttype": "none",  # letters stay letters: smaller, and found by a search
    "svg.hashsalt": "aclnn",  # the same rows give the same file
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(rows: list[Row], folder: Path) -> None:
    with matplotlib.rc_context(STYLE):
        for column in TITLES:
            found = [group for group in groups(lines(rows)) if group.column == column]
            if found:
                _save(_ratios(found, TITLES[column]), folder / f"ratio-{column}")
        if any(row["column"] == "growth" for row in rows):
            _save(_growth(rows), folder / "growth")
        if any(row["column"] == "memory" for row in rows):
            _save(_memory(rows), folder / "memory")


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path.with_suffix(".png"), dpi=130, bbox_inches="tight")
    figure.savefig(path.with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def _ratios(found: list[Group], title: str) -> Any:
    """A panel per operator and dtype, a bar per shape from 1, the range over the processes as a whisker."""
    heights = [len(group.lines) + 1.6 for group in found]
    figure, panels = plt.subplots(
        len(found), 1, figsize=(8, 0.19 * sum(heights) + 1.1), sharex=True, height_ratios=heights, squeeze=False
    )
    for axes, group in zip(panels[:, 0], found, strict=True):
        _panel(axes, group)
    shown = [line for group in found for line in group.lines]
    low, high = min(line.low for line in shown), max(line.high for line in shown)
    ticks = [t for t in TICKS if 0.7 * low <= t <= 1.5 * high]
    axes = panels[-1, 0]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_xlim(0.8 * low, max(1.5, 1.6 * high))
    axes.set_xlabel("our time ÷ PyTorch's time, logarithmic (left of 1: faster)")
    handles = [Patch(color=color) for color in COLORS.values()]
    figure.legend(handles, list(COLORS), loc="upper right", ncols=3, frameon=False)
    figure.suptitle(f"Gradients beside PyTorch, {title}", x=0.02, ha="left", fontsize=11)
    inches = float(figure.get_figheight())
    figure.tight_layout(h_pad=0.4, rect=(0, 0, 1, 1 - 0.3 / inches))  # the title has a line of its own
    return figure


def _panel(axes: Any, group: Group) -> None:
    shown = sorted(group.lines, key=lambda line: -line.ratio)
    for y, line in enumerate(shown):
        axes.barh(y, line.ratio - 1, left=1, color=COLORS[line.verdict], height=0.7)
        axes.plot([line.low, line.high], [y, y], color="black", linewidth=0.9)
        axes.annotate(
            short(line.ratio), (max(line.high, 1), y), (4, 0), textcoords="offset points", va="center", fontsize=7
        )
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), [line.shape for line in shown], fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.axvline(1, color="black", linewidth=0.8)
    target = ""
    if group.target:
        axes.axvline(group.target, color="black", linewidth=0.8, linestyle=":")
        target = f", target {group.target} (dotted)"
    title = f"{group.operator}, {group.dtype}: geometric mean {short(group.mean)}{target}"
    axes.set_title(title, fontsize=8, loc="left", fontweight="bold")
    axes.grid(axis="x", alpha=0.25)


def _growth(rows: list[Row]) -> Any:
    """Time against size, one panel per operator; one thread dashed."""
    grown = [row for row in rows if row["column"] == "growth"]
    operators = [name for name in OPERATORS if any(row["operator"] == name for row in grown)]
    figure, panels = plt.subplots(1, len(operators), figsize=(2.4 * len(operators) + 0.4, 3.4), squeeze=False)
    for axes, operator in zip(panels[0], operators, strict=True):
        _curves(axes, [row for row in grown if row["operator"] == operator])
        axes.set_title(operator, fontsize=9, fontweight="bold")
    panels[0, 0].set_ylabel("milliseconds, logarithmic")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    return figure


def _curves(axes: Any, found: list[Row]) -> None:
    names = list(dict.fromkeys(row["shape"] for row in found))
    for threads in sorted({row["threads"] for row in found}):
        for provider, color in PROVIDERS.items():
            of_it = [row for row in found if row["threads"] == threads and provider in row["times"]]
            times = [1e3 * row["times"][provider][1] for row in of_it]
            label = f"{provider}, {threads} thread{'s' if threads > 1 else ''}"
            style = "--" if threads == 1 else "-"
            axes.plot(range(len(times)), times, style, marker="o", markersize=3, color=color, label=label)
    axes.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names], fontsize=7)
    axes.set_yscale("log")
    axes.grid(alpha=0.25)


def _memory(rows: list[Row]) -> Any:
    """Peak memory of both, shape by shape."""
    found: dict[str, dict[str, float]] = {}
    for operator in OPERATORS:
        for row in rows:
            if row["column"] == "memory" and row["operator"] == operator:
                found.setdefault(f"{operator}  {row['shape']}", {})[row["provider"]] = row["peak"] / 2**20
    names = list(reversed(found))
    figure, axes = plt.subplots(figsize=(7, 0.27 * len(names) + 1))
    for offset, (provider, color) in zip((0.19, -0.19), PROVIDERS.items(), strict=True):
        peaks = [found[name].get(provider, 0) for name in names]
        axes.barh([y + offset for y in range(len(names))], peaks, height=0.36, color=color, label=provider)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_xlabel("growth of the process, MiB")
    axes.set_title("Peak memory of three calls with fresh outputs, float32", loc="left", fontsize=9, fontweight="bold")
    axes.legend(frameon=False)
    axes.grid(axis="x", alpha=0.25)
    return figure
