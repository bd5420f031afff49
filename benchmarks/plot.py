"""Plots of the measurements, as SVG: ratio to PyTorch per shape and against size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.patches import Patch

from benchmarks.rows import Row
from benchmarks.table import TITLES, Group, groups, lines, short

COLORS = {"ahead": "#2a9d5c", "tie": "#8a8f98", "behind": "#c8433a"}
DOORS = {"given": "#1f5fa8", "fresh": "#2a9d5c", "out": "#d9772b", "torch": "#8e4fa8"}
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
        found = groups(lines(rows))
        if given := [group for group in found if group.column == "given"]:
            _save(_ratios(given), folder / "ratio-given")
        if doors := [group for group in found if group.column in DOORS and group.operator != "unseen"]:
            _save(_against_size(doors), folder / "doors")


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path.with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def _ratios(found: list[Group]) -> Any:
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
    figure.suptitle("Gradients beside PyTorch, outputs given", x=0.02, ha="left", fontsize=11)
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
    title = f"{group.name}, {group.dtype}: geometric mean {short(group.mean)}{target}"
    axes.set_title(title, fontsize=8, loc="left", fontweight="bold")
    axes.grid(axis="x", alpha=0.25)


def _against_size(found: list[Group]) -> Any:
    """A panel per operator, float32: the ratio of every shape against its work, a line per door."""
    names = list(dict.fromkeys(group.operator for group in found))
    figure, panels = plt.subplots(1, len(names), figsize=(2.4 * len(names) + 0.4, 3.4), sharey=True, squeeze=False)
    for axes, name in zip(panels[0], names, strict=True):
        for group in found:
            if (group.operator, group.dtype) == (name, "float32"):
                points = sorted((line.work, line.ratio) for line in group.lines)
                color, title = DOORS[group.column], TITLES[group.column].replace("`", "")
                axes.plot(*zip(*points, strict=True), marker="o", markersize=3, color=color, label=title)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set(xscale="log", yscale="log", title=name)
        axes.grid(alpha=0.25)
    shown = [line.ratio for group in found for line in group.lines if group.dtype == "float32"]
    ticks = [t for t in TICKS if 0.5 * min(shown, default=1) <= t <= 2 * max(shown, default=1)]
    panels[0, 0].set_yticks(ticks, [f"{t:g}" for t in ticks])
    panels[0, 0].minorticks_off()
    panels[0, 0].set_ylabel("our time ÷ PyTorch's time (below 1: faster)")
    figure.supxlabel("operations, or bytes that move", y=0.08, fontsize=8)
    handles = {
        label: handle for axes in panels[0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="lower center", ncols=max(1, len(handles)), frameon=False)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    return figure
