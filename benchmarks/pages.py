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
from benchmarks import table, targets
from benchmarks.rows import Row, machines, of
from benchmarks.shapes import OPERATORS
from benchmarks.table import BESIDE, VERDICTS, Group, Line, duration, short
from benchmarks.targets import BUSY, SHARE, STREAMS

Machines = dict[str, list[Row]]
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = {
    ROOT / "README.md": "en",
    ROOT / "README.zh.md": "zh",
    ROOT / "docs/en/performance.md": "en",
    ROOT / "docs/zh/performance.md": "zh",
}
ISAS = {"avx2": "AVX2", "avx512": "AVX-512"}
_OF_ISA = ("outputs given", "ahead, tie, behind")
_MARKED = re.compile(r"(<!-- (\w+): written by make bench -->\n).*?(<!-- end -->)", re.DOTALL)
_WORDS = {
    "operator": "算子",
    "dtype": "数据类型",
    "shape": "形状",
    "outputs given": "给定输出",
    "fresh outputs": "新分配输出",
    "target": "目标",
    "`out=`": "`out=`",
    "torch tensors": "torch张量",
    "C": "C",
    "forward": "前向",
    "training step": "训练一步",
    "convolution, unseen shapes": "convolution，未见过的形状",
    "AVX2: outputs given": "AVX2：给定输出",
    "AVX-512: outputs given": "AVX-512：给定输出",
    "AVX2: ahead, tie, behind": "AVX2：领先、持平、落后",
    "AVX-512: ahead, tie, behind": "AVX-512：领先、持平、落后",
    BESIDE: "PyTorch只在elu的给定输出、`out=`、C与前向中写入给定的内存，其余各行都自行分配输出。"
    "lstm_cell：除训练一步外，PyTorch一侧是由多个算子组成的公式。lstm：其梯度来自自动求导，计算图被保留。训练一步自0.2.0起在`aclnn.torch.build()`之后测得。",
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
    "of its slowdown": "（减速倍数之比）",
    "a convolution beside busy loops": "与忙循环争用核时的卷积",
    "a training step beside busy loops": "与忙循环争用核时的训练一步",
    "aclnn": "aclnn",
    "program": "程序",
    "peak memory": "峰值内存",
    "Nothing is measured yet: `make bench` measures and fills this in.": "尚无数据：运行`make bench`即可测量并填入。",
}


def main(arguments: list[str]) -> int:
    found = machines(RESULTS)
    stale = [page for page, lang in PAGES.items() if page.read_text(encoding="utf-8") != render(page, lang, found)]
    for page in stale:
        if "--check" not in arguments:
            page.write_text(render(page, PAGES[page], found), encoding="utf-8")
        print(("stale: " if "--check" in arguments else "wrote ") + str(page.relative_to(ROOT)))
    return 1 if stale and "--check" in arguments else 0


def render(page: Path, lang: str, found: Machines) -> str:
    """The page with its generated parts as the rows say them now."""
    return _MARKED.sub(lambda m: m[1] + part(m[2], lang, found) + m[3], page.read_text(encoding="utf-8"))


def part(name: str, lang: str, found: Machines) -> str:
    """What a part says of every machine; the first table is of the newest one, all instruction sets side by side."""
    written = _speed(found, lang) if name == "speed" else ""
    for folder, rows in found.items() if name != "speed" else ():
        if text := _PARTS[name](rows, lang):
            images = "".join(_image(folder, plot) for plot in _PLOTS.get(name, ()))
            written += ("\n" if written else "") + f"**{folder}**\n\n{images}{text}"
    if not written:
        return say("Nothing is measured yet: `make bench` measures and fills this in.", lang) + "\n"
    return written + (f"\n{say(BESIDE, lang)}\n" if name not in ("memory", "programs") else "")


def say(word: str, lang: str) -> str:
    return word if lang == "en" or word in OPERATORS else _WORDS[word]


def _table(head: Iterable[str], body: Sequence[tuple[str, ...]], lang: str) -> str:
    return markdown((tuple(say(word, lang) for word in head), list(body))) if body else ""


def _speed(found: Machines, lang: str) -> str:
    """One line per operator and dtype, outputs given, and one for all forwards and all steps."""
    newest = {name: rows for name, rows in found.items() if of(name) == of(next(iter(found)))}
    by_isa = {rows[0]["isa"]: _summed(table.groups(table.lines(rows))) for rows in newest.values()}
    kinds = list(dict.fromkeys(kind for groups in by_isa.values() for kind in groups))
    body = []
    for kind in sorted(kinds, key=lambda kind: kind[0] in table.TITLES.values()):
        of_isa = [by_isa.get(isa, {}).get(kind) for isa in ISAS]
        cells = [cell for group in of_isa for cell in (_mean(group), _counts(group))]
        body.append((say(kind[0], lang), kind[1], *cells, _targets(next(g for g in of_isa if g))))
    head = ("operator", "dtype", *(f"{isa}: {what}" for isa in ISAS.values() for what in _OF_ISA), "target")
    return _table(head, body, lang) + f"\n{table.conditions(next(iter(newest.values())))}\n" if body else ""


def _summed(groups: list[Group]) -> dict[tuple[str, str], Group]:
    """Those of given outputs as they are, forwards and steps of all operators in one."""
    found = {(group.name, group.dtype): group for group in groups if group.column == "given"}
    for column in ("forward", "step"):
        for dtype in dict.fromkeys(group.dtype for group in groups if group.column == column):
            lines = [line for g in groups if (g.column, g.dtype) == (column, dtype) for line in g.lines]
            found[table.TITLES[column], dtype] = Group("", dtype, column, lines)
    return found


def _mean(group: Group | None) -> str:
    return f"**{short(group.mean)}**" if group else ""


def _counts(group: Group | None) -> str:
    return ", ".join(str(group.count(verdict)) for verdict in VERDICTS) if group else ""


def _targets(group: Group) -> str:
    found = [targets.geometric_mean(group.operator, group.dtype, group.column, isa) for isa in ISAS]
    return " / ".join(dict.fromkeys(f"≤ {target:.2f}" for target in found if target))


def _doors(rows: list[Row], lang: str) -> str:
    """The geometric means of every column."""
    groups = table.groups(table.lines(rows))
    found: dict[tuple[str, ...], dict[str, Group]] = {}
    for group in groups:
        found.setdefault((say(group.name, lang), group.dtype), {})[group.column] = group
    columns = _columns(groups)
    body = [(*name, *(_door(of_it.get(column)) for column in columns)) for name, of_it in found.items()]
    return (
        _table(("operator", "dtype", *columns.values()), body, lang) + f"\n{table.conditions(rows)}\n" if body else ""
    )


def _door(group: Group | None) -> str:
    return f"{_mean(group)} ({_counts(group)})" if group else ""


def _columns(groups: list[Group]) -> dict[str, str]:
    """Those that were measured."""
    return {c: title for c, title in table.TITLES.items() if any(group.column == c for group in groups)}


def _shapes(rows: list[Row], lang: str) -> str:
    found: dict[tuple[str, ...], dict[str, Line]] = {}
    groups = table.groups(table.lines(rows))
    for group in groups:
        for line in group.lines:
            found.setdefault((say(group.name, lang), line.shape, line.dtype), {})[line.column] = line
    columns, body = _columns(groups), []
    for name, of_it in found.items():
        first = next(iter(of_it.values()))
        ratios = (_ratio(of_it[column], lang) if column in of_it else "" for column in columns)
        others = ", ".join(f"{other} {short(ratio)}" for other, ratio in first.others.items())
        body.append((*name, *ratios, duration(first.seconds), _share(first), others))
    head = ("operator", "shape", "dtype", *columns.values(), "time", "share of the limit", "others")
    return _table(head, body, lang)


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
    return _table(head, body, lang)


def _memory(rows: list[Row], lang: str) -> str:
    found: dict[tuple[str, str], dict[str, str]] = {}
    measured = sorted((r for r in rows if r["column"] == "memory"), key=lambda r: OPERATORS.index(r["operator"]))
    for row in measured:
        size = f"{row['peak'] / 2**20:.1f} MiB"
        found.setdefault((row["operator"], row["shape"]), {})[row["provider"]] = size
    body = [(*name, of.get("aclnn", ""), of.get("torch", "")) for name, of in found.items()]
    return _table(("operator", "shape", "aclnn", "PyTorch"), body, lang)


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
    if "slower" in row:
        times = " ÷ ".join(f"{row['slower'][name]:.1f}" for name in row["slower"])
        ratio = f"{table.slowdown(row)} {say('of its slowdown', lang)} ({times}; ≤ {BUSY})"
        return say(row["shape"], lang), duration(row["seconds"]), ratio, memory
    return f"`aclnn compare`, {row['shape']}", f"{row['seconds']} s", "", memory


def _image(folder: str, name: str) -> str:
    """The plot, if it is there, as the pages in docs/<language> see it."""
    is_drawn = (RESULTS / folder / f"{name}.svg").is_file()
    return f"![{name}](../../benchmarks/results/{folder}/{name}.svg)\n\n" if is_drawn else ""


_PARTS: dict[str, Callable[[list[Row], str], str]] = {
    "doors": _doors,
    "shapes": _shapes,
    "calls": _calls,
    "growth": _growth,
    "memory": _memory,
    "programs": _programs,
}
_PLOTS = {"doors": [f"size-{operator}" for operator in OPERATORS], "shapes": ["ratio-given"]}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
