"""Pictures as inline SVG: how large the errors are, and where. Colours are classes, so that the page can be dark."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.judge.metrics import Measured
from aclnn.golden.judge.slices import Slice
from aclnn.golden.texts import Text, number

LEVELS = (0.1, 0.3, 1, 3, 10, 100, 1e4)  # of error / allowed; up to 1 is rounding
_WIDTH = 640
_STRIP_CELLS = 160


def both(text: Text, position: str = "") -> str:
    """A text of a picture in both languages; the page shows one of them."""
    return "".join(
        f'<text class="{lang}" {position}>{escape(said)}</text>' for lang, said in (("en", text.en), ("zh", text.zh))
    )


def _svg(width: int, height: int, label: Text, body: str, kind: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg class="picture {kind}" role="img" aria-label="{escape(label.en, quote=True)}" {size}>{body}</svg>'


def histogram(found: Measured) -> str:
    """How many elements are how many units in the last place off; bars grow with the logarithm of the count."""
    top = int(found.ulps.nonzero()[0].max()) + 1 if found.ulps.any() else 1
    counts = found.ulps[: max(top, 6)]
    height, base = 150, 118
    step = min(64.0, (_WIDTH - 30) / len(counts))
    tallest = np.log10(float(counts.max()) + 1) or 1.0
    bars = []
    for i, count in enumerate(counts.tolist()):
        tall = 100 * np.log10(count + 1) / tallest
        x = 5 + i * step
        name = _bin_name(i)
        if count:
            shape = f'x="{x + 1:.1f}" y="{base - tall:.1f}" width="{step - 2:.1f}" height="{max(tall, 1):.1f}"'
            bars.append(f'<rect class="bar" {shape}><title>{name} ULP: {count:,}</title></rect>')
        if i % -(-len(counts) // 10) == 0:
            bars.append(f'<text x="{x + step / 2:.1f}" y="{base + 14}" text-anchor="middle">{name}</text>')
    axis = both(
        Text("units in the last place; height is log10 of the count", "ULP误差；高度为元素个数的log10"),
        f'x="5" y="{height - 4}"',
    )
    line = f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{base}" y2="{base}"/>'
    return _svg(_WIDTH, height, Text("error histogram", "误差直方图"), "".join(bars) + line + axis, "histogram")


def _bin_name(i: int) -> str:
    """The units in the last place that a bin of the histogram holds.

    >>> [_bin_name(i) for i in range(5)]
    ['0', '1', '2', '3–4', '5–8']
    """
    if i < 3:
        return str(i)
    upper = 2 ** (i - 1)
    return f"{upper // 2 + 1}–{upper}" if i < 10 else f"≤2^{i - 1}"


def strips(found: Measured, axes: tuple[Text, ...]) -> str:
    """For every axis, the worst error at each of its indexes, and below it how many misses there are."""
    shown = [axis for axis, size in enumerate(found.shape) if size > 1]
    line = 62 if found.misses else 40
    rows = []
    for i, axis in enumerate(shown):
        y, last = 6 + line * i, found.shape[axis] - 1
        title = Text(f"{axes[axis].en} (0 to {last})", f"{axes[axis].zh}（0到{last}）")
        rows.append(both(title, f'x="0" y="{y + 8}"'))
        rows += _strip(found.strips[axis], found.miss_strips[axis], found.width(axis), y + 14)
    return (
        _svg(_WIDTH, line * len(shown) + 6, Text("error by axis", "各轴误差"), "".join(rows), "strips") if shown else ""
    )


def _strip(worst: Array, misses: Array, width: int, y: int) -> Iterator[str]:
    starts = np.unique(np.linspace(0, len(worst), _STRIP_CELLS + 1)[:-1].astype(int))
    ends = [*starts[1:].tolist(), len(worst)]
    scale, most = _WIDTH / len(worst), max(int(np.add.reduceat(misses, starts).max()), 1)
    pooled = zip(np.maximum.reduceat(worst, starts).tolist(), np.add.reduceat(misses, starts).tolist(), strict=True)
    for first, end, (value, count) in zip(starts.tolist(), ends, pooled, strict=True):
        where = f"{first * width}" if (end - first) * width == 1 else f"{first * width}–{end * width - 1}"
        across = f'x="{first * scale:.2f}" width="{(end - first) * scale:.2f}"'
        title = f"<title>{where}: {number(value)} ({count:,})</title>"
        yield f'<rect class="h{level(value)}" {across} y="{y}" height="14">{title}</rect>'
        if count:
            yield f'<rect class="bar" {across} y="{y + 16}" height="{max(1, 18 * count / most):.1f}">{title}</rect>'


def heatmap(plane: Slice, axes: tuple[Text, ...]) -> str:
    """The plane through the worst element, neighbours of one colour drawn as one."""
    rows, columns = plane.cells.shape
    size = min(22.0, 384 / max(rows, columns))
    body = []
    for i in range(rows):
        levels = [level(v) for v in plane.cells[i].tolist()]
        start = 0
        for j in range(1, columns + 1):
            if j == columns or levels[j] != levels[start]:
                shape = (
                    f'x="{start * size:.2f}" y="{i * size:.2f}" width="{(j - start) * size:.2f}" height="{size:.2f}"'
                )
                body.append(f'<rect class="h{levels[start]}" {shape}/>')
                start = j
    body.append(_cross(plane, size))
    down, across = (axes[a] for a in plane.axes)
    text = Text(f"down: {down.en}, across: {across.en}", f"纵向：{down.zh}，横向：{across.zh}")
    width, height = max(7 * len(text.en), int(columns * size) + 1), int(rows * size) + 20  # room for the caption
    body.append(both(text, f'x="0" y="{height - 4}"'))
    return _svg(width, height, Text("the slice of the worst element", "最差元素所在切片"), "".join(body), "heatmap")


def _cross(plane: Slice, size: float) -> str:
    """A ring around the cell of the worst element."""
    at = []
    for axis, window, cells in zip(plane.axes, plane.window, plane.cells.shape, strict=True):
        at.append((plane.through[axis] - window.start) * cells // (window.stop - window.start))
    i, j = at
    shape = f'x="{j * size:.2f}" y="{i * size:.2f}" width="{size:.2f}" height="{size:.2f}"'
    return f'<rect class="ring" {shape}/>'


def legend() -> str:
    """The colours and what they mean."""
    limits = [f"{v:g}" for v in LEVELS]
    names = [*(f"≤{limit}" for limit in limits), f">{limits[-1]}"]
    cells = []
    for i, name in enumerate(names):
        cells.append(f'<rect class="h{i}" x="{i * 62}" y="0" width="60" height="12"/>')
        cells.append(f'<text x="{i * 62 + 30}" y="26" text-anchor="middle">{name}</text>')
    return _svg(62 * len(names), 30, Text("error / allowed error", "误差/允许误差"), "".join(cells), "legend")


def level(value: float) -> int:
    """The colour of an error: 0 to 2 are within rounding."""
    return int(np.searchsorted(LEVELS, value)) if value == value else len(LEVELS)
