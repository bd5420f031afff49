"""What a comparison found: one report per output, and the answer of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aclnn.base import exit_codes
from aclnn.base.language import asked
from aclnn.base.text import visible
from aclnn.golden.judge.baselines import Beside, in_force
from aclnn.golden.judge.blocks import Miss
from aclnn.golden.judge.metrics import Measured
from aclnn.golden.judge.slices import Slice
from aclnn.golden.judge.standards import TWO_BASELINES, Criterion, Standard, StandardRule
from aclnn.golden.texts import Text, many, number, percent
from aclnn.golden.why.explain import Hint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, Group

PASS, FAIL, SKIPPED, ERROR = "pass", "fail", "skipped", "error"
WHOLE = (1, 1)  # a dump that is not cut into parts
ORDERS = 10**7  # of several dumps each has as many places in the order of execution
STATUS = {
    PASS: Text("pass", "通过"),
    FAIL: Text("fail", "不通过"),
    SKIPPED: Text("skipped", "跳过"),
    ERROR: Text("error", "错误"),
}


@dataclass
class OutputReport:
    """One output of one case."""

    case: str
    output: str
    status: str
    why: Text | None = None  # of skipped, of error, and of what is missing
    operator: str | None = None
    product: str = ""
    attributes: str = ""  # of the call: "alpha=1.0 isResult=False"
    dtype: str = ""
    shape: tuple[int, ...] = ()
    rule: StandardRule | None = None
    criteria: tuple[Criterion, ...] = ()
    measured: Measured | None = None
    golden: str = "computed"
    sound: bool | None = None  # None: it cannot be told without the operator's inputs
    axes: tuple[Text, ...] = ()
    places: tuple[Text, ...] = ()
    hints: tuple[Hint, ...] = ()
    notes: tuple[Text, ...] = ()
    slice: Slice | None = None
    code: int = 0  # of an error: the return code that it came with
    order: int = 0  # of a call in a dump: its place in the order of execution …
    kind: str = ""  # … what torch calls it …
    line: str = ""  # … the user's line that made it …
    code_line: str = ""
    inherits: str = ""  # … the earlier call whose wrong output it reads …
    reads: tuple[str, ...] = ()  # … by which it is known: digests of what it reads …
    content: str = ""  # … and of this output, if it is wrong …
    also: Beside | None = None  # … and how far a third party's result is from what it must be

    def __post_init__(self) -> None:
        self.case, self.output = visible(self.case), visible(self.output)  # names that others chose

    @property
    def label(self) -> str:
        return f"{self.case}: {self.output}" if self.output else self.case

    @property
    def is_wrong(self) -> bool:
        return self.status in (FAIL, ERROR)

    @property
    def missing(self) -> bool:
        """Whether the output should be there and is not."""
        return self.status == FAIL and self.measured is None

    @property
    def badness(self) -> tuple[int, float]:
        """By this the worst comes first."""
        order = {ERROR: 3, FAIL: 2, PASS: 1, SKIPPED: 0}[self.status]
        return max(order, 2 if self.sound is False else 0), self.worst.ratio if self.worst else 0.0

    @property
    def worst(self) -> Miss | None:
        """The element that is furthest off."""
        return self.measured.worst if self.measured else None


class Worst(NamedTuple):
    """The worst element of a comparison."""

    case: str
    output: str
    where: tuple[int, ...]
    target: float
    golden: float
    ratio: float  # |target − golden| in units of the allowed error


@dataclass
class Comparison:
    """The answer: `passed` is what the named standard says, `sound` is our own bound, `worst` the worst element."""

    standard: Standard
    reports: list[OutputReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        worst: dict[str, tuple[int, float]] = {}  # of each case, so that its outputs stay together
        for report in self.reports:
            worst[report.case] = max(report.badness, worst.get(report.case, report.badness))
        self.reports.sort(key=lambda r: (worst[r.case], r.case, r.badness), reverse=True)

    @property
    def compared(self) -> list[OutputReport]:
        return [r for r in self.reports if r.measured is not None]

    @property
    def errors(self) -> list[OutputReport]:
        return [r for r in self.reports if r.status == ERROR]

    @property
    def missing(self) -> list[OutputReport]:
        return [r for r in self.reports if r.missing]

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """The numbers of the standard by element type, and by output where somebody said others for it."""
        rules = {(r.rule.row, r.rule.said): r.output for r in self.compared if r.rule and r.rule.said}
        many = {row for row, _ in rules if sum(row == other for other, _ in rules) > 1}
        return [(f"{row} ({output})" if row in many else row, said) for (row, said), output in rules.items()]

    @property
    def passed(self) -> bool:
        """Whether every output meets the standard."""
        return bool(self.compared) and all(r.status in (PASS, SKIPPED) for r in self.reports)

    @property
    def sound(self) -> bool | None:
        """Whether every element is within what rounding can explain; None if that cannot be told."""
        found = [r.sound for r in (*self.compared, *self.missing)]
        if False in found:
            return False
        return None if None in found or self.errors or not found else True

    @property
    def worst(self) -> Worst | None:
        """The worst element of all outputs."""
        found = [(r, r.worst) for r in self.reports if r.worst]
        if not found:
            return None
        report, miss = max(found, key=lambda pair: pair[1].ratio)
        return Worst(report.case, report.output, miss.index, miss.target, miss.golden, miss.ratio)

    @property
    def misses(self) -> list[tuple[OutputReport, Miss]]:
        """The elements beyond the sound bound, worst first; at most a thousand of each output."""
        found = [(r, miss) for r in self.compared if r.measured for miss in r.measured.listed]
        return sorted(found, key=lambda pair: -pair[1].ratio)

    def assert_right(self, strict: bool = False) -> None:
        """Raises AssertionError with the whole report unless everything is right: for tests."""
        if self.exit_code(strict) != exit_codes.RIGHT:
            raise AssertionError(f"the target is not right\n{self}")

    def exit_code(self, strict: bool = False) -> int:
        """0 right, 1 wrong, 2 could not be judged, 3 we failed; by the standard, or `strict`ly by soundness."""
        if any(r.sound is False if strict else r.status == FAIL for r in self.reports):
            return exit_codes.MISMATCH
        if self.errors:
            return exit_codes.worst(exit_codes.of(r.code) if r.code else exit_codes.BAD_INPUT for r in self.errors)
        known = bool(self.compared) and not (strict and self.sound is None)
        return exit_codes.RIGHT if known else exit_codes.BAD_INPUT

    def save(self, path: str | Path, lang: str | None = None) -> list[Path]:
        """Writes a report: .html, .csv, .json, .xml (JUnit) or .xlsx; a folder gets the first four."""
        from aclnn.golden.show.files import save

        return save(self, Path(path), lang or asked())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Group]:
        from aclnn.golden.show.terminal import render

        yield render(self, width=options.max_width)

    def __str__(self) -> str:
        from aclnn.golden.show.terminal import as_text

        return as_text(self)

    __repr__ = __str__


class CallRow(NamedTuple):
    """One call of a dump with all its outputs."""

    name: str
    reports: tuple[OutputReport, ...]

    @property
    def first(self) -> OutputReport:
        return self.reports[0]

    @property
    def is_wrong(self) -> bool:
        return any(r.is_wrong for r in self.reports)

    @property
    def is_judged(self) -> bool:
        return any(r.measured is not None for r in self.reports)

    @property
    def status(self) -> str:
        return FAIL if self.is_wrong else PASS if self.is_judged else SKIPPED

    @property
    def worst(self) -> OutputReport:
        """The output that is furthest off; of a call that was not judged, what there is."""
        return max(self.reports, key=lambda r: r.badness)


@dataclass
class DumpComparison(Comparison):
    """The calls of a dump: the wrong ones first, all in order of execution."""

    source: str = ""
    shard: tuple[int, int] = WHOLE  # which part of how many

    def __post_init__(self) -> None:
        wrong = {r.case for r in self.reports if r.is_wrong}
        self.reports.sort(key=lambda r: (r.case not in wrong, r.order))

    def exit_code(self, strict: bool = False) -> int:
        """As of any comparison; a part of a dump that fell out empty is right."""
        return exit_codes.RIGHT if not self.reports and self.shard != WHOLE else super().exit_code(strict)

    @property
    def calls(self) -> list[CallRow]:
        rows: dict[str, list[OutputReport]] = {}
        for report in self.reports:
            rows.setdefault(report.case, []).append(report)
        return [CallRow(name, tuple(found)) for name, found in rows.items()]

    @property
    def beside(self) -> list[OutputReport]:
        """The outputs beside which a third party's stand."""
        return [r for r in self.reports if r.also is not None]

    @property
    def in_force(self) -> list[tuple[str, str]]:
        numbers = super().in_force
        return [*numbers, in_force()] if self.beside and self.standard.name != TWO_BASELINES else numbers

    @property
    def wrong(self) -> list[CallRow]:
        """The wrong calls; the first is where to look."""
        return [call for call in self.calls if call.is_wrong]

    @property
    def unjudged(self) -> list[OutputReport]:
        """What could not be judged: whole calls, and outputs that are not in the dump."""
        return [r for r in self.reports if r.status == SKIPPED]


def miss_sentence(report: OutputReport) -> Text | None:
    """How many elements are beyond rounding, and where."""
    found = report.measured
    if found is None or not found.misses:
        return None
    share = percent(found.misses, found.count)
    return Text(
        f"{many(found.misses, 'element')} ({share}) beyond rounding" + "".join(f", {p.en}" for p in report.places),
        f"{found.misses:,}个元素（{share}）超出舍入误差" + "".join(f"，{p.zh}" for p in report.places),
    )


def worst_sentence(report: OutputReport, digits: int = 9) -> Text | None:
    """The worst element, and how far off it is."""
    worst = report.worst
    if worst is None:
        return None
    target, golden, ratio = f"{worst.target:.{digits}g}", f"{worst.golden:.{digits}g}", number(worst.ratio)
    return Text(
        f"worst at {list(worst.index)}: target {target}, golden {golden}, {ratio} times the allowed error",
        f"最差元素{list(worst.index)}：待测{target}，标杆{golden}，误差为允许值的{ratio}倍",
    )


def specials_sentence(report: OutputReport) -> Text | None:
    """How many elements are NaN or Inf, and of how many the two sides say different things."""
    found = report.measured
    if found is None or not (found.nan_target or found.nan_golden or found.inf_target or found.inf_golden):
        return None
    counts = (found.nan_target, found.inf_target, found.nan_golden, found.inf_golden, found.special_misses)
    return Text(
        "target NaN {:,} Inf {:,}, golden NaN {:,} Inf {:,}, {:,} do not agree".format(*counts),
        "待测NaN {:,} Inf {:,}，标杆NaN {:,} Inf {:,}，不一致{:,}".format(*counts),
    )


def broken_criterion(report: OutputReport) -> Text | None:
    """The first thing that a standard asks and an output does not have."""
    return next((c.text for c in report.criteria if not c.holds), None)


def disagreement(report: OutputReport) -> Text | None:
    """The sentence for where the standard and the sound bound part."""
    found, rule = report.measured, report.rule
    if found is None or rule is None or report.sound is None:
        return None
    if report.status == FAIL and report.sound:
        return _fails_though_sound(found, rule, report)
    if report.status == PASS and not report.sound:
        en = f"passes {rule.standard} although {many(found.misses, 'element')} " + (
            "is beyond rounding" if found.misses == 1 else "are beyond rounding"
        )
        return Text(en, f"{rule.standard}判定通过，但有{found.misses:,}个元素超出舍入误差")
    return None


def _fails_though_sound(found: Measured, rule: StandardRule, report: OutputReport) -> Text:
    outside = found.count - found.in_tolerance
    if not outside:
        broken = broken_criterion(report) or Text("", "")
        return Text(
            f"fails {rule.standard}: {broken.en}; every element is within rounding",
            f"{rule.standard}判定不通过：{broken.zh}；但每个元素都在舍入误差之内",
        )
    bound = _next_power_of_ten(found.largest_golden_outside)
    return Text(
        f"fails {rule.standard}: {many(outside, 'element')} with |g| < {bound}; every element is within rounding",
        f"{rule.standard}判定不通过：{outside:,}个|g| < {bound}的元素；但每个元素都在舍入误差之内",
    )


def _next_power_of_ten(value: float) -> str:
    if not 0 < value < np.inf:
        return "inf" if value else "1e-300"
    return f"1e{int(np.floor(np.log10(value))) + 1}"
