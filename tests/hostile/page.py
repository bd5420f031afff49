"""`python -m tests.hostile.page` writes the figures of the result files into both reliability pages."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from tests.hostile.soak import Row, slope

RESULTS = Path(__file__).parent / "results"
PAGES = {lang: Path(__file__).parents[2] / "docs" / lang / "reliability.md" for lang in ("en", "zh")}
MARKED = re.compile(r"(<!-- (\w+): written by tests\.hostile\.page -->\n).*?(<!-- end -->)", re.DOTALL)

SOAK = {
    "en": ("minutes", "calls through Python", "calls through C", "judged by the reference", "wrong results")
    + ("resident memory after a fifth, at the end (MiB)", "growth (MiB per minute)", "live handles", "open files"),
    "zh": ("分钟", "经Python的调用", "经C的调用", "由参考实现判定", "错误结果")
    + ("五分之一处与结束时的常驻内存（MiB）", "增长（MiB/分钟）", "存活句柄", "打开的文件"),
}
FUZZ = {
    "en": ("operator calls", "computed, nothing found", "refused with a sentence", "other answers")
    + ("seconds", "seconds of processor"),
    "zh": ("算子调用", "已计算，未发现问题", "拒绝并有说明", "其他应答", "秒", "处理器时间（秒）"),
}
INTERRUPTS = {
    "en": ("interrupts", "processes", "hangs", "other faults"),
    "zh": ("中断", "进程", "挂起", "其他故障"),
}
COLD = {
    "en": ("processes through Python", "processes through PyTorch", "threads each", "failures"),
    "zh": ("经Python的进程", "经PyTorch的进程", "每个进程的线程", "失败"),
}
FILES = {
    "en": ("files", "compared", "refused with a sentence", "tracebacks, crashes, failures of our own")
    + ("most memory (MB)", "longest time (s)"),
    "zh": ("文件", "完成比对", "拒绝并有说明", "异常栈、崩溃或自身故障", "最大内存（MB）", "最长时间（秒）"),
}


def rows_of(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def soak(lang: str) -> str:
    rows = [Row._make(map(type_of, row.values())) for row in rows_of("soak.csv")]
    warm, last = rows[len(rows) // 5], rows[-1]
    figures = (f"{last.minutes:g}", last.python_calls, last.c_calls, last.judged, last.wrong)
    memory = (f"{warm.rss_mib:g}, {last.rss_mib:g}", f"{slope(rows):.2f}")
    return table(SOAK[lang], [*figures, *memory, last.handles, last.files])


def type_of(value: str) -> float | int:
    return float(value) if "." in value else int(value)


def fuzz(lang: str) -> str:
    (row,) = rows_of("c_fuzz.csv")
    return table(FUZZ[lang], list(row.values()))


def interrupts(lang: str) -> str:
    (row,) = rows_of("interrupts.csv")
    return table(INTERRUPTS[lang], list(row.values()))


def cold(lang: str) -> str:
    (row,) = rows_of("cold.csv")
    return table(COLD[lang], list(row.values()))


def files(lang: str) -> str:
    (row,) = rows_of("files.csv")
    return table(FILES[lang], list(row.values()))


def table(heads: tuple[str, ...], figures: list[object]) -> str:
    lines = (f"| {head} | {figure} |" for head, figure in zip(heads, figures, strict=True))
    return "\n".join(["| | |", "|---|---:|", *lines, ""])


def written(text: str, lang: str) -> str:
    """The page with every marked part made anew."""
    parts = {"soak": soak, "fuzz": fuzz, "interrupts": interrupts, "cold": cold, "files": files}
    return MARKED.sub(lambda found: found[1] + parts[found[2]](lang) + found[3], text)


if __name__ == "__main__":
    for lang, path in PAGES.items():
        path.write_text(written(path.read_text(encoding="utf-8"), lang), encoding="utf-8")
