"""Accuracy standards by name: what each one asks of a result, for each element type.

A verdict is exactly what its standard says, however blunt. Whether a result is within what rounding can explain is
another question, answered in sound.py.

NaN equals NaN, and Inf equals Inf of the same sign, at the same place. Anything else is infinitely wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from aclnn.base.status import invalid
from aclnn.golden.texts import Text, number

if TYPE_CHECKING:
    from aclnn.golden.judge.metrics import Measured

TWO_BASELINES = "two-baselines"
SMALL = 1e-7  # relative errors are |a−g| / (|g| + SMALL)


class Criterion(NamedTuple):
    """One thing a standard asks: the value it has, and whether that will do."""

    holds: bool
    text: Text


Asks = tuple[Callable[["Measured"], Criterion], ...]
RuleParts = tuple[float, float, str, Asks]


@dataclass(frozen=True)
class StandardRule:
    """A standard for one element type. An element is in tolerance if |a−g| ≤ atol + rtol·|g|."""

    standard: str
    row: str
    rtol: float
    atol: float
    said: str = ""  # the numbers in force, as reports print them
    asks: Asks = ()

    def criteria(self, found: Measured) -> tuple[Criterion, ...]:
        return tuple(ask(found) for ask in self.asks)

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
    make: Callable[..., RuleParts]  # of the numbers of a row

    def rule(self, row: str) -> StandardRule:
        numbers = self.rows.get(row, self.rows.get("any"))
        if numbers is None:
            others = ", ".join(n for n, s in STANDARDS.items() if "any" in s.rows)
            raise invalid(
                f"standard {self.name} has no row for {row}; choose a row with dtype ({', '.join(self.rows)}) "
                f"or another standard ({others}).",
                "standard",
            )
        return StandardRule(self.name, row, *self.make(*numbers))


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


# What standards ask. Functions of this module with their limits bound, so that rules can go to other processes.


def _share_at_least(least: float, found: Measured) -> Criterion:
    holds = 1000 * found.in_tolerance >= round(1000 * least) * found.count  # in integers: 99 of 100 is 99 %
    share = found.in_tolerance / found.count if found.count else 1.0
    have, need = f"{100 * share:.4g} %", f"{100 * least:g} %"
    if have == need and not holds:
        have = f"{found.in_tolerance} / {found.count}"
    return Criterion(holds, Text(f"in tolerance {have}, must be ≥ {need}", f"容差内占比{have}，要求≥{need}"))


def _below(name: str, limit: float, says: Text, found: Measured) -> Criterion:
    value = getattr(found, name)
    have, need = number(value), number(limit)
    return Criterion(value < limit, Text(f"{says.en} {have}, must be < {need}", f"{says.zh}{have}，要求<{need}"))


def _cosine_at_least(least: float, found: Measured) -> Criterion:
    have = f"{found.cosine:.6f}"
    text = Text(f"cosine similarity {have}, must be ≥ {least:g}", f"余弦相似度{have}，要求≥{least:g}")
    return Criterion(found.cosine >= least, text)


def _all_bits(found: Measured) -> Criterion:
    have = f"{found.same_bits} / {found.count}"
    text = Text(f"same bits in {have} elements, must be all", f"比特一致的元素{have}，要求全部一致")
    return Criterion(found.same_bits == found.count, text)


def _no_misses(found: Measured) -> Criterion:
    have = f"{found.misses:,}"
    return Criterion(not found.misses, Text(f"beyond rounding {have}, must be 0", f"超出舍入误差{have}个，要求为0"))


# What a standard makes of the numbers in a row: rtol, atol, how they are printed, what is asked


def _mixed(rtol: float, atol: float, cap: float) -> RuleParts:
    capped = partial(_below, "max_abs", cap, Text("max |a−g|", "最大绝对误差"))
    said = f"rtol {number(rtol)}, atol {number(atol)}, cap {number(cap)}"
    return rtol, atol, said, (partial(_share_at_least, 0.99), capped)


def _mere_mare(limit: float) -> RuleParts:
    mean = partial(_below, "mean_rel", limit, Text("mean relative error", "平均相对误差"))
    largest = partial(_below, "max_rel", 10 * limit, Text("max relative error", "最大相对误差"))
    return 10 * limit, 10 * limit * SMALL, f"T {number(limit)}", (mean, largest)


def _thousandth(rtol: float, least: float) -> RuleParts:
    return rtol, 0.0, f"rtol {number(rtol)}, share {100 * least:g} %", (partial(_share_at_least, least),)


def _close(rtol: float, atol: float) -> RuleParts:
    return rtol, atol, f"rtol {number(rtol)}, atol {number(atol)}", (partial(_share_at_least, 1.0),)


def _cosine(least: float) -> RuleParts:
    return *_CLOSE, f"cosine {number(least)}", (partial(_cosine_at_least, least),)


def _binary() -> RuleParts:
    return 0.0, 0.0, "", (_all_bits,)


def _sound(rtol: float, atol: float, computed: float, stored: float) -> RuleParts:
    rounding = f" + {number(stored)}·|g|" if stored > computed else ""
    return rtol, atol, f"(8 + √K)·{number(computed)}·Σ|terms|{rounding}", (_no_misses,)


def _two_baselines(*limits: float) -> RuleParts:
    """What it asks is asked when the third party is known (baselines.py)."""
    return *_CLOSE, "max rel ≤ {}×, mean rel ≤ {}×, RMSE ≤ {}×".format(*map(number, limits)), ()


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
