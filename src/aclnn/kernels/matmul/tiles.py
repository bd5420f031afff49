"""Sizes that every matrix on tiles has: panels of columns, whole vectors of them, and how long sums may be."""

from __future__ import annotations

import math

from aclnn.base.dtype import DType
from aclnn.kernels.native import jit

# How long a chain is, for sums of fewer terms.
CHAINS = ((16, 64), (32, 256), (64, 1024), (96, 2048), (128, 4096), (192, math.inf))
MOST_OF_ALLOWED = 0.95  # that equal terms may err
SHORT = 64  # terms: of fewer, those that are equal in part may err as much, too, which is a half of a chain


def columns() -> int:
    vectors = jit.vectors()
    return vectors.lanes * vectors.across


def chain(length: int) -> int:
    """How many of so many terms are added one by one. Equal terms err by a third of that, in units of u·Σ|terms|,
    and (8 + √length) are allowed."""
    return next(most for most, below in CHAINS if length < below)


def even_chain(length: int, block: int, counted: int = 0, each: int = 1) -> int:
    """The same where sums are cut into blocks: chains of one length each, as few as err no more than is allowed. Their
    sums are added one by one too. Where source.indirect begins and ends with half a chain there is one more, but short
    chains err less: (½, 1, …, 1, ½)·most has Σ chain²/length = most − most²/(2·length).

    More terms may be counted than there are, if the others are 0: their chains are added all the same. And terms may
    come together, two as a pair: each of them is added."""
    times = max(1.0, counted / max(1, length))
    longest = math.ceil(chain(each * length) * times / each)
    for count in range(1, -(-block // longest) + 1):
        most = -(-block // count)
        if each * most / times + length * times / most <= _most_added(each * length):
            return most
    return min(most, longest)


def least_block(length: int, counted: int = 0, each: int = 1) -> int:
    """How long the blocks of so many terms have to be at least, so that to add their sums one by one errs no more than
    is allowed; terms that may come together, as above."""
    most, times = _most_added(each * length), max(1.0, counted / max(1, length))
    return max(1, math.ceil(times * (most - math.sqrt(most**2 - 4 * each * length)) / (2 * each)))


def _most_added(length: int) -> float:
    """How many numbers may be added one by one for a sum of so many terms: those of a chain, and chains."""
    return (2 if length < SHORT else 3) * MOST_OF_ALLOWED * (8 + math.sqrt(length))


def panels_of(channels: int) -> int:
    """How many panels so many columns have."""
    return -(-channels // columns())


def packed_columns(channels: int) -> int:
    """The columns of all panels together: whole vectors."""
    lanes = jit.vectors().lanes
    return -(-channels // lanes) * lanes


def put_of(dtype: DType, how: str = "put") -> tuple[int, int]:
    """What writes rows of such a result, by its name in source/results.py, and the bytes of an element. Raises
    NoNativeCodeError."""
    last = "I" if how == "put_blocks" else "i"
    return jit.load(f"results.{how}", "F" + jit.POINTER[dtype] + "Iiii" + last + "IF").address, dtype.itemsize
