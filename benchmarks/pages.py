"""The generated parts of the READMEs and of the page on performance: what the rows in benchmarks/results say.

python -m benchmarks.pages [--check]: writes them, or says which pages are stale (exit 1). A part stands between
`<!-- speed: written by make bench -->` and `<!-- end -->`.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aclnn.gen.tables import markdown
from benchmarks import table
from benchmarks.rows import Row, read
from benchmarks.shapes import OPERATORS
from benchmarks.table import VERDICTS, Group, Line, duration, short
from benchmarks.targets import SHARE, STREAMS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = {
    ROOT / "README.md": "en",
    ROOT / "README.zh.md": "zh",
    ROOT / "docs/en/performance.md": "en",
    ROOT / "docs/zh/performance.md": "zh",
}
_MARKED = re.compile(r"(<!-- (\w+): written by make bench -->\n).*?(<!-- end -->)", re.DOTALL)
_WORDS = {
    "operator": "算子",
    "dtype": "数据类型",
    "shape": "形状",
    "outputs given": "给定输出",
    "fresh outputs": "新分配输出",
    "target": "目标",
    "ahead": "领先",
    "tie": "持平",
    "behind": "落后",
    "ahead, tie, behind": "领先、持平、落后",
    "time": "耗时",
    "share of the limit": "占上限比例",
    "others": "与其他实现之比",
    "call": "调用",
    "times PyTorch's": "与PyTorch之比",
    "size": "规模",
    "1 thread": "单线程",
    "all threads": "全部线程",
    "PyTorch, 1 thread": "PyTorch单线程",
    "PyTorch, all threads": "PyTorch全部线程",
    "PyTorch": "PyTorch",
    "two streams, one thread each": "两个stream，各一个线程",
    "of one after the other": "（与依次执行之比）",
    "aclnn": "aclnn",
    "program": "程序",
    "peak memory": "峰值内存",
    "Nothing is measured yet: `make bench` measures and fills this in.": "尚无数据：运行`make bench`即可测量并填入。",
}


def main(arguments: list[str]) -> int:
    rows = read(RESULTS)
    stale = [page for page, lang in PAGES.items() if page.read_text(encoding="utf-8") != render(page, lang, rows)]
    for page in stale:
        if "--check" not in arguments:
            page.write_text(render(page, PAGES[page], rows), encoding="utf-8")
        print(("stale: " if "--check" in arguments else "wrote ") + str(page.relative_to(ROOT)))
    return 1 if stale and "--check" in arguments else 0


def render(page: Path, lang: str, rows: list[Row]) -> str:
    """The page with its generated parts as the rows say them now."""
    return _MARKED.sub(lambda m: m[1] + part(m[2], lang, rows) + m[3], page.read_text(encoding="utf-8"))


def part(name: str, lang: str, rows: list[Row]) -> str:
    written = _PARTS[name](rows, lang)
    if not written:
        written = say("Nothing is measured yet: `make bench` measures and fills this in.", lang) + "\n"
    return written


def whole_table(rows: list[Row]) -> str:
    """Every part, one after the other: benchmarks/results/table.md."""
    return "\n".join(text for name in _PARTS if (text := _PARTS[name](rows, "en")))


def say(word: str, lang: str) -> str:
    return word if lang == "en" else _WORDS[word]


def _table(head: Iterable[str], body: Sequence[tuple[str, ...]], lang: str) -> str:
    return markdown((tuple(say(word, lang) for word in head), list(body))) if body else ""


def _speed(rows: list[Row], lang: str) -> str:
    """One line per operator and dtype: the geometric mean over its shapes, in both columns."""
    by_name: dict[tuple[str, str], dict[str, Group]] = {}
    for group in table.groups(table.lines(rows)):
        by_name.setdefault((group.operator, group.dtype), {})[group.column] = group
    body = []
    for (operator, dtype), columns in by_name.items():
        given, fresh = columns.get("given"), columns.get("fresh")
        counted = given or fresh
        assert counted is not None
        counts = ", ".join(str(counted.count(verdict)) for verdict in VERDICTS)
        target = f"≤ {given.target:.2f}" if given and given.target else ""
        body.append((operator, dtype, _mean(given), target, counts, _mean(fresh)))
    head = ("operator", "dtype", "outputs given", "target", "ahead, tie, behind", "fresh outputs")
    return _table(head, body, lang) + (f"\n{table.conditions(rows)}\n" if body else "")


def _mean(group: Group | None) -> str:
    return f"**{short(group.mean)}**" if group else ""


def _shapes(rows: list[Row], lang: str) -> str:
    by_name: dict[tuple[str, str, str], dict[str, Line]] = {}
    for group in table.groups(table.lines(rows)):
        for line in group.lines:
            by_name.setdefault((line.operator, line.shape, line.dtype), {})[line.column] = line
    body = [(*name, *_both(columns, lang)) for name, columns in by_name.items()]
    head = ("operator", "shape", "dtype", "outputs given", "fresh outputs", "time", "share of the limit", "others")
    return _images(rows, "ratio-given", "ratio-fresh") + _table(head, body, lang)


def _both(columns: dict[str, Line], lang: str) -> tuple[str, ...]:
    either = columns.get("given") or columns["fresh"]
    ratios = tuple(_ratio(columns[column], lang) if column in columns else "" for column in table.TITLES)
    others = ", ".join(f"{name} {short(ratio)}" for name, ratio in either.others.items())
    return *ratios, duration(either.seconds), _share(either), others


def _ratio(line: Line, lang: str) -> str:
    return f"{short(line.ratio)} ({short(line.low)}–{short(line.high)}) {say(line.verdict, lang)}"


def _share(line: Line) -> str:
    if math.isnan(line.share):
        return ""
    target = SHARE.get((line.operator, line.dtype, line.shape))
    return f"{100 * line.share:.0f} %" + (f" (≥ {100 * target:.0f} %)" if target else "")


def _calls(rows: list[Row], lang: str) -> str:
    body = []
    for line in table.lines(rows):
        if line.operator == "calls":
            target = table.call_target(line)
            ratio = f"{short(line.ratio)} ({short(line.low)}–{short(line.high)})"
            body.append((line.shape, duration(line.seconds), ratio, f"≤ {target:g}" if target else ""))
    return _table(("call", "time", "times PyTorch's", "target"), body, lang)


def _growth(rows: list[Row], lang: str) -> str:
    found: dict[tuple[str, str], dict[tuple[str, int], float]] = {}
    grown = sorted((r for r in rows if r["column"] == "growth"), key=lambda r: OPERATORS.index(r["operator"]))
    for row in grown:
        for provider, times in row["times"].items():
            found.setdefault((row["operator"], row["shape"]), {})[provider, row["threads"]] = times[1]
    most = max((row["threads"] for row in grown), default=1)
    order = [(provider, threads) for provider in ("aclnn", "torch") for threads in (1, most)]
    body = [(*name, *(duration(of[key]) if key in of else "" for key in order)) for name, of in found.items()]
    head = ("operator", "size", "1 thread", "all threads", "PyTorch, 1 thread", "PyTorch, all threads")
    return _images(rows, "growth") + _table(head, body, lang) if body else ""


def _memory(rows: list[Row], lang: str) -> str:
    found: dict[tuple[str, str], dict[str, str]] = {}
    measured = sorted((r for r in rows if r["column"] == "memory"), key=lambda r: OPERATORS.index(r["operator"]))
    for row in measured:
        size = f"{row['peak'] / 2**20:.1f} MiB"
        found.setdefault((row["operator"], row["shape"]), {})[row["provider"]] = size
    body = [(*name, of.get("aclnn", ""), of.get("torch", "")) for name, of in found.items()]
    return _images(rows, "memory") + _table(("operator", "shape", "aclnn", "PyTorch"), body, lang) if body else ""


def _programs(rows: list[Row], lang: str) -> str:
    body = [
        (f"`{line.shape}`", duration(line.seconds), _ratio(line, lang), "")
        for line in table.lines(rows)
        if line.operator == "training"
    ]
    for row in rows:
        if row["column"] == "once":
            body.append(_program(row, lang))
    return _table(("program", "time", "times PyTorch's", "peak memory"), body, lang)


def _program(row: Row, lang: str) -> tuple[str, str, str, str]:
    memory = f"{row['peak'] / 2**20:.0f} MiB"
    if "serial" in row:
        ratio = f"{row['seconds'] / row['serial']:.2f} {say('of one after the other', lang)} (≤ {STREAMS})"
        return say(row["shape"], lang), duration(row["seconds"]), ratio, memory
    return f"`aclnn compare`, {row['shape']}", f"{row['seconds']} s", "", memory


def _images(rows: list[Row], *names: str) -> str:
    """The plots that are there, as the pages in docs/<language> see them."""
    if not rows:
        return ""
    return "".join(f"![{name}](../../benchmarks/results/{name}.svg)\n\n" for name in names if _drawn(name))


def _drawn(name: str) -> bool:
    return (RESULTS / f"{name}.svg").is_file()


_PARTS: dict[str, Callable[[list[Row], str], str]] = {
    "speed": _speed,
    "shapes": _shapes,
    "calls": _calls,
    "growth": _growth,
    "memory": _memory,
    "programs": _programs,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
