"""Rows of measurements as lines of a table: ratios to PyTorch, judged by their range over the processes.

A ratio is ours ÷ PyTorch's, medians of one process, turn by turn. Its line has the median over the processes and the
range. Ahead: the whole range is below 1. Behind: the whole range is above 1. A tie: it contains 1.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks import targets
from benchmarks.rows import Row
from benchmarks.shapes import OPERATORS, shapes_of

VERDICTS = ("ahead", "tie", "behind")
TITLES = {
    "given": "outputs given",
    "fresh": "fresh outputs",
    "out": "`out=`",
    "torch": "torch tensors",
    "c": "C",
    "forward": "forward",
    "step": "training step",
}
NAMES = {"unseen": "convolution, unseen shapes"}
BESIDE = (
    "PyTorch writes into given memory for elu (outputs given, `out=`, C, forward) and allocates its outputs in all "
    "other rows. lstm_cell: PyTorch's side is a formula of several operators, but for the training step. lstm: its "
    "gradients are autograd's, on a graph that is kept. Training steps, since 0.2.0: after `aclnn.torch.build()`."
)
DISTURBED = 0.5  # cores that others used


class Line(NamedTuple):
    """One shape."""

    operator: str
    shape: str
    dtype: str
    column: str
    ratio: float
    low: float
    high: float
    seconds: float
    others: dict[str, float]  # ratio of ours to further providers
    share: float  # of what the machine can do; NaN where that says nothing
    work: float  # operations, or bytes that move; NaN where there are none to speak of
    isa: str
    kernel: str  # that serves; nothing in rows of before

    @property
    def verdict(self) -> str:
        return "ahead" if self.high < 1 else "behind" if self.low > 1 else "tie"


class Group(NamedTuple):
    """The lines of one operator, dtype and column."""

    operator: str
    dtype: str
    column: str
    lines: list[Line]

    @property
    def name(self) -> str:
        return NAMES.get(self.operator, self.operator)

    @property
    def mean(self) -> float:
        return geometric_mean(line.ratio for line in self.lines)

    @property
    def target(self) -> float | None:
        return targets.geometric_mean(self.operator, self.dtype, self.column, self.lines[0].isa)

    def count(self, verdict: str) -> int:
        return sum(line.verdict == verdict for line in self.lines)


def lines(rows: Iterable[Row]) -> list[Line]:
    """Every shape that was timed beside PyTorch."""
    grouped: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if "times" in row and row["column"] in TITLES:
            key = row["operator"], row["shape"], row["dtype"], row["column"]
            grouped.setdefault(key, []).append(row)
    quiet = {key: undisturbed(found) for key, found in grouped.items()}
    return [_line(key, found) for key, found in quiet.items() if any("torch" in row["times"] for row in found)]


def undisturbed(rows: list[Row]) -> list[Row]:
    """Without the rows during which other programs were busy, unless most are such."""
    quiet = [row for row in rows if row["load"] <= DISTURBED]
    complete = any("torch" in row["times"] for row in quiet)
    return quiet if complete and 2 * len(quiet) > len(rows) else rows


def groups(found: Iterable[Line]) -> list[Group]:
    grouped: dict[tuple[str, str, str], list[Line]] = {}
    for line in found:
        if line.operator in OPERATORS:
            grouped.setdefault((line.operator, line.dtype, line.column), []).append(line)
    ordered = sorted(grouped, key=lambda key: (OPERATORS.index(key[0]), list(TITLES).index(key[2])))
    return [Group(*key, grouped[key]) for key in ordered]


def _line(key: tuple[str, ...], rows: list[Row]) -> Line:
    """Ratios to PyTorch are made within a process, those to others, which have processes of their own, of medians."""
    medians = [{provider: times[1] for provider, times in row["times"].items()} for row in rows]
    to_torch = [m["aclnn"] / m["torch"] for m in medians if "torch" in m]
    seconds = statistics.median(m["aclnn"] for m in medians if "aclnn" in m)
    further = sorted({provider for m in medians for provider in m} - {"aclnn", "torch", "limit"})
    others = {p: seconds / statistics.median(m[p] for m in medians if p in m) for p in further}
    share = statistics.median(_share(row) for row in rows if "aclnn" in row["times"])
    operator, shape, dtype, column = key
    work = float(next(iter(rows[0]["work"].values()), math.nan))
    spread = statistics.median(to_torch), min(to_torch), max(to_torch)
    told = rows[0].get("isa", ""), rows[0].get("kernel", "")
    return Line(operator, shape, dtype, column, *spread, seconds, others, share, work, *told)


def _share(row: Row) -> float:
    """Of a large product, or of a triad, that took turns with it: see machine.limit."""
    if "limit" not in row:
        return math.nan
    (work,) = row["work"].values()
    return float(work / row["times"]["aclnn"][1] / (row["limit"] / row["times"]["limit"][1]))


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def call_target(line: Line) -> float | None:
    """How many of PyTorch's calls a tiny one may cost."""
    target: float | None = shapes_of("calls").get(line.shape, {}).get("target")
    return target


def text(rows: list[Row]) -> str:
    """For a terminal."""
    found = lines(rows)
    width = max((len(line.shape) for line in found), default=0)
    shown = []
    for group in groups(found):
        target = f", target {group.target}" if group.target else ""
        title = f"{group.name}, {group.dtype}, {TITLES[group.column]}"
        shown.append(f"\n{title}: {short(group.mean)} of PyTorch's time{target}")
        shown += [_terminal(line, width) for line in group.lines]
    further = [line for line in found if line.operator not in OPERATORS]
    shown += (
        ["\nfixed cost of a call; a training step", *(_terminal(line, width) for line in further)] if further else []
    )
    return "\n".join([*shown, "", *_once(rows), conditions(rows), BESIDE.replace("`", "")])


def _terminal(line: Line, width: int) -> str:
    others = "".join(f"  {name} {short(ratio)}" for name, ratio in line.others.items())
    share = "" if math.isnan(line.share) else f"{100 * line.share:4.0f} % of the limit"
    target = call_target(line)
    judged = f"target {target}" if target else line.verdict
    took = f"{duration(line.seconds):>9}"
    ratio = f"{short(line.ratio):>6} [{short(line.low)}, {short(line.high)}]"
    return f"  {line.shape:{width}}  {ratio} {judged:10} {took}{share}{others}"


def _once(rows: list[Row]) -> list[str]:
    found = [row for row in rows if "seconds" in row]
    return [f"{r['operator']}, {r['shape']}: {r['seconds']} s, {beside(r)}" for r in found]


def beside(row: Row) -> str:
    """What else is said of a program: against the same jobs one after the other, against PyTorch, or its memory."""
    if "slower" in row:
        return f"{slowdown(row)} as much slower as PyTorch (target {targets.BUSY})"
    if "serial" in row:
        return f"{row['seconds'] / row['serial']:.2f} of one after the other (target {targets.STREAMS})"
    return f"{row['peak'] / 2**20:.0f} MiB"


def slowdown(row: Row) -> str:
    """How many times slower than alone, ours ÷ PyTorch's."""
    slower = row["slower"]
    return short(slower["aclnn"] / slower["torch"]) if "torch" in slower else ""


def short(ratio: float) -> str:
    """Two digits at least."""
    return f"{ratio:.2f}" if ratio >= 0.0995 else f"{ratio:.2g}"


def duration(seconds: float) -> str:
    """With three digits, in the unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            return f"{seconds / size:#.3g} {unit}".replace(". ", " ")
    raise AssertionError


def conditions(rows: list[Row]) -> str:
    """What the rows were measured on."""
    row = next((r for r in rows if "times" in r), None)
    if row is None:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
    return f"{row['processor']}, {row['cores']} cores; {versions}."
