"""Accuracy standards by name: what each one asks of a result, for each element type.

A verdict is exactly what its standard says, however blunt. Whether a result is within what rounding can explain is
another question, answered in sound.py.

NaN equals NaN, and Inf equals Inf of the same sign, at the same place. Anything else is infinitely wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from aclnn.base.status import invalid
from aclnn.golden.texts import Text, number

TWO_BASELINES = "two-baselines"
SMALL = 1e-7  # relative errors are |a−g| / (|g| + SMALL)


@dataclass(frozen=True)
class Summary:
    """What standards look at."""

    count: int
    in_tolerance: int
    max_abs: float
    mean_rel: float
    max_rel: float
    cosine: float
    same_bits: int
    misses: int = 0  # elements beyond what rounding can explain

    @property
    def share(self) -> float:
        return self.in_tolerance / self.count if self.count else 1.0


class Criterion(NamedTuple):
    """One thing a standard asks: the value it has, and whether that will do."""

    holds: bool
    text: Text


@dataclass(frozen=True)
class StandardRule:
    """A standard for one element type. An element is in tolerance if |a−g| ≤ atol + rtol·|g|."""

    standard: str
    row: str
    rtol: float
    atol: float
    criteria: Callable[[Summary], tuple[Criterion, ...]]
    said: str = ""  # the numbers in force, as reports print them

    @property
    def counts_bits(self) -> bool:
        return self.standard == "binary"


@dataclass(frozen=True)
class Standard:
    """A named standard: where its numbers come from, since when, and how it makes the rule of an element type."""

    name: str
    asks: Text
    source: Text
    since: str
    rows: Mapping[str, tuple[float, ...]]  # by element type; the key "any" serves all
    make: Callable[[str, tuple[float, ...]], StandardRule]

    def rule(self, row: str) -> StandardRule:
        numbers = self.rows.get(row, self.rows.get("any"))
        if numbers is None:
            others = ", ".join(n for n, s in STANDARDS.items() if "any" in s.rows)
            raise invalid(
                f"standard {self.name} has no row for {row}; choose a row with dtype ({', '.join(self.rows)}) "
                f"or another standard ({others}).",
                "standard",
            )
        return self.make(row, numbers)


Limit = float | Mapping[str, float] | None  # for all outputs, or by their names; "" stands for the others


@dataclass(frozen=True)
class Tolerances:
    """Numbers of one's own in place of those of `mixed`."""

    rtol: Limit = None
    atol: Limit = None
    cap: Limit = None

    @property
    def any_given(self) -> bool:
        return any(limit is not None for limit in (self.rtol, self.atol, self.cap))

    def applied(self, standard: Standard, output: str) -> Standard:
        """The standard as it is meant for one output."""
        given = [_limit(limit, output) for limit in (self.rtol, self.atol, self.cap)]
        if all(value is None for value in given):
            return standard
        rows = {
            row: tuple(old if new is None else new for old, new in zip(numbers, given, strict=True))
            for row, numbers in standard.rows.items()
        }
        return replace(standard, rows=rows)

    def refuse_others(self, standard: Standard) -> None:
        if self.any_given and standard.name != "mixed":
            raise invalid(f"rtol, atol and cap belong to the standard mixed; the standard is {standard.name}.", "rtol")
        for name, limit in (("rtol", self.rtol), ("atol", self.atol), ("cap", self.cap)):
            for value in limit.values() if isinstance(limit, Mapping) else (limit,):
                if value is not None and not (isinstance(value, (int, float)) and value >= 0):
                    raise invalid(f"{name} is {value!r}; it must be a number that is not negative.", name)


def _limit(limit: Limit, output: str) -> float | None:
    if not isinstance(limit, Mapping):
        return limit
    whole = output.partition("[")[0]
    return next((limit[name] for name in (output, whole, "") if name in limit), None)


def find(name: str) -> Standard:
    """A standard by name."""
    found = STANDARDS.get(str(name).strip().lower())
    if found is None:
        raise invalid(f"there is no standard {name!r}; choose one of {', '.join(STANDARDS)}.", "standard")
    return found


def _share_at_least(summary: Summary, least: float) -> Criterion:
    holds = 1000 * summary.in_tolerance >= round(1000 * least) * summary.count  # in integers: 99 of 100 is 99 %
    have, need = f"{100 * summary.share:.4g} %", f"{100 * least:g} %"
    if have == need and not holds:
        have = f"{summary.in_tolerance} / {summary.count}"
    return Criterion(holds, Text(f"in tolerance {have}, must be ≥ {need}", f"容差内占比{have}，要求≥{need}"))


def _below(value: float, limit: float, en: str, zh: str) -> Criterion:
    have, need = number(value), number(limit)
    return Criterion(value < limit, Text(f"{en} {have}, must be < {need}", f"{zh}{have}，要求<{need}"))


def _mixed(row: str, numbers: tuple[float, ...]) -> StandardRule:
    rtol, atol, cap = numbers

    def criteria(s: Summary) -> tuple[Criterion, ...]:
        return _share_at_least(s, 0.99), _below(s.max_abs, cap, "max |a−g|", "最大绝对误差")

    said = f"rtol {number(rtol)}, atol {number(atol)}, cap {number(cap)}"
    return StandardRule("mixed", row, rtol, atol, criteria, said)


def _mere_mare(row: str, numbers: tuple[float, ...]) -> StandardRule:
    (limit,) = numbers

    def criteria(s: Summary) -> tuple[Criterion, ...]:
        mean = _below(s.mean_rel, limit, "mean relative error", "平均相对误差")
        return mean, _below(s.max_rel, 10 * limit, "max relative error", "最大相对误差")

    return StandardRule("mere-mare", row, 10 * limit, 10 * limit * SMALL, criteria, f"T {number(limit)}")


def _thousandth(row: str, numbers: tuple[float, ...]) -> StandardRule:
    rtol, least = numbers
    said = f"rtol {number(rtol)}, share {100 * least:g} %"
    return StandardRule("thousandth", row, rtol, 0.0, lambda s: (_share_at_least(s, least),), said)


def _close(row: str, numbers: tuple[float, ...]) -> StandardRule:
    rtol, atol = numbers
    said = f"rtol {number(rtol)}, atol {number(atol)}"
    return StandardRule("close", row, rtol, atol, lambda s: (_share_at_least(s, 1.0),), said)


def _cosine(row: str, numbers: tuple[float, ...]) -> StandardRule:
    (least,) = numbers

    def criteria(s: Summary) -> tuple[Criterion, ...]:
        have = f"{s.cosine:.6f}"
        text = Text(f"cosine similarity {have}, must be ≥ {least:g}", f"余弦相似度{have}，要求≥{least:g}")
        return (Criterion(s.cosine >= least, text),)

    return StandardRule("cosine", row, *_CLOSE, criteria, f"cosine {number(least)}")


def _binary(row: str, numbers: tuple[float, ...]) -> StandardRule:
    def criteria(s: Summary) -> tuple[Criterion, ...]:
        have = f"{s.same_bits} / {s.count}"
        text = Text(f"same bits in {have} elements, must be all", f"比特一致的元素{have}，要求全部一致")
        return (Criterion(s.same_bits == s.count, text),)

    return StandardRule("binary", row, 0.0, 0.0, criteria)


def _sound(row: str, numbers: tuple[float, ...]) -> StandardRule:
    rtol, atol, computed, stored = numbers
    rounding = f" + {number(stored)}·|g|" if stored > computed else ""
    said = f"(8 + √K)·{number(computed)}·Σ|terms|{rounding}"

    def criteria(s: Summary) -> tuple[Criterion, ...]:
        have = f"{s.misses:,}"
        return (Criterion(not s.misses, Text(f"beyond rounding {have}, must be 0", f"超出舍入误差{have}个，要求为0")),)

    return StandardRule("sound", row, rtol, atol, criteria, said)


def said_ratios(numbers: tuple[float, ...]) -> str:
    return "max rel ≤ {}×, mean rel ≤ {}×, RMSE ≤ {}×".format(*map(number, numbers))


def _two_baselines(row: str, numbers: tuple[float, ...]) -> StandardRule:
    """What it asks is asked when the third party is known (baselines.py)."""
    return StandardRule(TWO_BASELINES, row, *_CLOSE, lambda s: (), said_ratios(numbers))


_CLOSE = (1e-5, 1e-8)
_MIXED = {
    "float16": (2**-9, 2**-9, 1e-1),
    "bfloat16": (2**-6, 2**-6, 1.0),
    "float32": (2**-10, 2**-16, 1e-2),
    "hf32": (2**-9, 2**-10, 1e-1),
}
_SOUND = {
    row: (*_MIXED.get(row, _MIXED["float32"])[:2], dtype.compute.unit, dtype.unit)
    for row, dtype in (*((d.name, d) for d in (FLOAT16, BFLOAT16, FLOAT32)), ("hf32", FLOAT32), ("float64", FLOAT64))
}
_PRACTICE = Text("practice of operator testers on Ascend", "昇腾算子测试实践")
_OURS = Text("this project", "本项目")

STANDARDS: dict[str, Standard] = {
    s.name: s
    for s in (
        Standard(
            "mixed",
            Text(
                "|a−g| ≤ atol + rtol·|g| for at least 99 % of the elements, and the largest |a−g| under a cap",
                "至少99 %的元素满足|a−g| ≤ atol + rtol·|g|，且最大绝对误差低于上限",
            ),
            _PRACTICE,
            "2026-11",
            _MIXED,
            _mixed,
        ),
        Standard(
            "mere-mare",
            Text(
                "mean and maximum of |a−g| / (|g| + 1e-7) below T and 10·T",
                "|a−g| / (|g| + 1e-7)的平均值和最大值分别低于T和10·T",
            ),
            _PRACTICE,
            "2026-11",
            {"float16": (2**-10,), "bfloat16": (2**-7,), "float32": (2**-13,), "hf32": (2**-11,)},
            _mere_mare,
        ),
        Standard(
            "thousandth",
            Text("at least 99.9 % of the elements within 0.1 %", "至少99.9 %的元素相对误差在0.1 %以内"),
            _PRACTICE,
            "2026-11",
            {"any": (1e-3, 0.999)},
            _thousandth,
        ),
        Standard(
            "close",
            Text("every element within 1e-8 + 1e-5·|g|", "每个元素的误差都在1e-8 + 1e-5·|g|以内"),
            Text("numpy.isclose with its default tolerances", "numpy.isclose的默认容差"),
            "numpy 1.26",
            {"any": _CLOSE},
            _close,
        ),
        Standard(
            "cosine",
            Text("cosine similarity of at least 0.99", "余弦相似度不低于0.99"),
            _OURS,
            "2026-11",
            {"any": (0.99,)},
            _cosine,
        ),
        Standard(
            "binary",
            Text("the same bits in every element (any NaN equals any NaN)", "每个元素比特一致（NaN视为相等）"),
            _OURS,
            "2026-11",
            {"any": ()},
            _binary,
        ),
        Standard(
            "sound",
            Text(
                "every element within what rounding can explain: (8 + √K)·u·Σ|terms| for a sum of K terms, u the unit "
                "of float32, and half a unit of the result's type",
                "每个元素都在舍入误差可解释的范围内：K项求和为(8 + √K)·u·Σ|terms|，u为float32的单位，"
                "另加结果类型的半个单位",
            ),
            _OURS,
            "2026-11",
            _SOUND,
            _sound,
        ),
        Standard(
            TWO_BASELINES,
            Text(
                "maximum and mean of |a−g| / (|g| + 1e-7) and the root mean square of a−g, g of float64: at most 10, 2 "
                "and 2 times those of a third party's result, which count as at least half a unit of the type",
                "|a−g| / (|g| + 1e-7)的最大值、平均值及a−g的均方根（均相对float64）分别不超过第三方结果的10、2、2倍，"
                "第三方误差至少按结果类型的半个单位计",
            ),
            _PRACTICE,
            "2026-11",
            {"any": (10.0, 2.0, 2.0)},
            _two_baselines,
        ),
    )
}
