"""Plots of the measurements, as SVG: ratio to PyTorch per shape and against size."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.rows import Row
from benchmarks.shapes import OPERATORS
from benchmarks.table import TITLES, Group, groups, lines, short

COLORS = {"ahead": "#2a9d5c", "tie": "#8a8f98", "behind": "#c8433a"}
DOORS = {"given": "#1f5fa8", "fresh": "#2a9d5c", "out": "#d9772b", "torch": "#8e4fa8"}
DOORS |= {"c": "#c8433a", "forward": "#12878a", "step": "#6b6f76"}
MARKERS = {"numpy": "^", "numba": "o", "direct": "s", "tiles": "D", "onednn": "P"}
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
        for operator in OPERATORS:
            doors = [g for g in found if (g.operator, g.dtype) == (operator, "float32") and g.column in DOORS]
            if doors and operator != "unseen":
                _save(_against_size(doors), folder / f"size-{operator}")


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
    """One operator, float32: the ratio of every shape against its work, a line per door. A marker says which kernel
    serves, and where the next larger shape has another one stands a dotted line."""
    figure, axes = plt.subplots(figsize=(8, 4.2))
    for group in found:
        points = sorted(group.lines, key=lambda line: line.work)
        sizes, ratios = [line.work for line in points], [line.ratio for line in points]
        axes.plot(sizes, ratios, color=DOORS[group.column], linewidth=1, label=TITLES[group.column].replace("`", ""))
        for line in points:
            axes.plot(line.work, line.ratio, MARKERS.get(line.kernel, "."), color=DOORS[group.column], markersize=4)
    _mark_hand_overs(axes, found[0])
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="operations, or bytes that move")
    axes.set_ylabel("our time ÷ PyTorch's time (below 1: faster)")
    axes.set_title(f"{found[0].name}, float32: ratio against size", loc="left", fontsize=11)
    shown = [line.ratio for group in found for line in group.lines]
    ticks = [t for t in TICKS if 0.5 * min(shown) <= t <= 2 * max(shown)]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    figure.tight_layout()
    _legends(figure, axes, found)
    return figure


def _mark_hand_overs(axes: Any, group: Group) -> None:
    """Between neighbouring shapes that different kernels serve."""
    points = sorted((line for line in group.lines if line.kernel), key=lambda line: line.work)
    for one, other in itertools.pairwise(points):
        if one.kernel != other.kernel and one.work < other.work:
            axes.axvline(math.sqrt(one.work * other.work), color="black", linewidth=0.8, linestyle=":")


def _legends(figure: Any, axes: Any, found: list[Group]) -> None:
    """The doors, and below them the kernels that serve."""
    style: Any = {"frameon": False, "alignment": "left", "bbox_transform": axes.transAxes}
    figure.legend(loc="upper left", bbox_to_anchor=(1.01, 1), title="door", **style)
    kernels = sorted({line.kernel for group in found for line in group.lines if line.kernel})
    if kernels:
        shown = [Line2D([], [], color="black", marker=MARKERS.get(k, "."), linestyle="", markersize=4) for k in kernels]
        shown.append(Line2D([], [], color="black", linewidth=0.8, linestyle=":"))
        named = [*kernels, "hand-over"]
        figure.legend(shown, named, loc="lower left", bbox_to_anchor=(1.01, 0), title="kernel", **style)
