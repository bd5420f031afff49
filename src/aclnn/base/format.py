"""Tensor formats: what the axes of a tensor are called."""

from __future__ import annotations

from enum import IntEnum


class Format(IntEnum):
    """aclFormat numbers."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NDHWC = 27
    NCDHW = 30
    NC = 35
    NCL = 47

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def by_number(number: int) -> Format | None:
    try:
        return Format(number)
    except ValueError:
        return None


def by_name(name: str) -> Format | None:
    return Format.__members__.get(name.upper())
