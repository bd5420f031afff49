"""What reports say, in both languages."""

from __future__ import annotations

import math

from aclnn.base.language import Text

__all__ = ["Text", "many", "number", "percent"]


def number(value: float) -> str:
    """A number as short as people read it.

    >>> number(0.0009765625), number(0.0), number(12), number(float("inf"))
    ('0.000977', '0', '12', 'inf')
    """
    return f"{value:.3g}" if math.isfinite(value) else str(float(value))


def percent(part: int, whole: int) -> str:
    """A share that is never rounded up to all or down to nothing.

    >>> percent(1, 3), percent(99999, 100000), percent(100, 100), percent(1, 10**6), percent(0, 3)
    ('33.3 %', '99.99 %', '100 %', '0.01 %', '0 %')
    """
    if part == whole:
        return "100 %"
    if part == 0:
        return "0 %"
    share = 100 * part / whole
    if share > 99.9:
        return f"{min(share, 99.99):.2f} %"
    return f"{max(share, 0.01):.3g} %"


def many(count: int, noun: str) -> str:
    """'1 element', '1,234 elements'."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
