"""A target and its golden, block by block: each block small enough for the cache, NaN and Inf sorted out."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from aclnn.base.dtype import DType
from aclnn.base.geometry import Array
from aclnn.base.tolerance import Precision, Terms, allowed_error, error_ratio
from aclnn.golden.judge.sound import Box, Truth

SPECIALS = ("nan_target", "nan_golden", "inf_target", "inf_golden", "special_misses", "documented")
"""What is counted of NaN and Inf; the last two: where the sides do not agree, and where documents allow that."""

BLOCK = 24 * 1024  # elements: a dozen float64 arrays of this size stay in the cache


@dataclass(frozen=True)
class Miss:
    """An element, and how far off it is in units of the allowed error; beyond 1 it is a miss."""

    index: tuple[int, ...]
    target: float
    golden: float
    ratio: float


@dataclass(frozen=True)
class TargetPair:
    """A target and what it is compared with: a golden from a file, the truth as computed here, or both."""

    target: Array
    dtype: DType
    golden: Array | None = None
    truth: Truth | None = None
    nan_for_inf: bool = False  # the documents of the operator say NaN where IEEE says Inf

    def block(self, where: Box) -> Block:
        target = np.asarray(self.target[where])
        if self.golden is not None:
            return Block(self, where, target, np.asarray(self.golden[where]))
        assert self.truth is not None
        return Block(self, where, target, self.truth.rounded(where))

    def element(self, index: tuple[int, ...], ratio: float) -> Miss:
        """One element, beside what it is compared with."""
        golden = self.truth.exact if self.truth is not None else self.golden
        assert golden is not None
        return Miss(index, float(self.target[index]), float(golden[index]), ratio)

    def forget(self) -> None:
        """Gives back the memory of mapped files; what is needed again is read again."""
        for array in (self.target, self.golden):
            mapped = getattr(array, "_mmap", None)
            if mapped is not None and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)


def blocks(shape: tuple[int, ...]) -> Iterator[Box]:
    """Boxes of at most BLOCK elements that tile an array, in its own order."""
    if 0 in shape:
        return
    inner = len(shape)  # the axes from here on fit into a block as they are
    while inner > 0 and math.prod(shape[inner - 1 :]) <= BLOCK:
        inner -= 1
    whole = tuple(slice(0, n) for n in shape[inner:])
    if inner == 0:
        yield whole
        return
    step = BLOCK // math.prod(shape[inner:])
    for outer in np.ndindex(shape[: inner - 1]):
        for start in range(0, shape[inner - 1], step):
            stop = min(start + step, shape[inner - 1])
            yield (*(slice(i, i + 1) for i in outer), slice(start, stop), *whole)


@dataclass
class Block:
    """One block, widened to float64.

    Where either side is NaN or Inf, `wide_target` and `wide_golden` are 0 and `error` is 0 (they agree) or Inf.
    """

    pair: TargetPair
    where: Box
    target: Array
    golden: Array  # as a golden file holds it

    def __post_init__(self) -> None:
        self.wide_target, self.wide_golden = self.target.astype(np.float64), self.golden.astype(np.float64)
        self.error = np.abs(self.wide_target - self.wide_golden)
        self.worst_error = float(self.error.max())
        self.specials: dict[str, int] = {}
        if not math.isfinite(self.worst_error):
            self._sort_out_specials()
        self.magnitude = np.abs(self.wide_golden)

    def _sort_out_specials(self) -> None:
        t, g = self.wide_target, self.wide_golden
        nan_t, nan_g, inf_t, inf_g = np.isnan(t), np.isnan(g), np.isinf(t), np.isinf(g)
        special = nan_t | nan_g | inf_t | inf_g
        self.documented = (nan_t & inf_g) if self.pair.nan_for_inf else np.zeros_like(nan_t)
        disagree = special & ~((nan_t & nan_g) | (t == g) | self.documented)
        masks = (nan_t, nan_g, inf_t, inf_g, disagree, self.documented)
        self.specials = {name: int(np.count_nonzero(mask)) for name, mask in zip(SPECIALS, masks, strict=True)}
        self.error = np.where(special, np.where(disagree, np.inf, 0.0), self.error)
        self.worst_error = float(self.error.max())
        self.wide_target, self.wide_golden = np.where(special, 0.0, t), np.where(special, 0.0, g)

    def ratio(self) -> Array:
        """|target − golden| in units of the allowed error."""
        truth = self.pair.truth
        return self._ratio_to_file() if truth is None else self._pardoned(truth.ratio(self.target, self.where))

    def _ratio_to_file(self) -> Array:
        """Against a golden from a file nothing is known of its sums, so only Σ|terms| ≥ |golden| is used."""
        if self.worst_error == 0:
            return self.error
        dtype = self.pair.dtype
        precision = Precision(dtype.compute, (dtype,))
        if not self.specials and float(self.magnitude.max()) < precision.largest / 2:  # error_ratio, the short way
            return self.error / allowed_error(self.magnitude, Terms(self.magnitude), precision)
        exact = self.golden.astype(np.float64)
        return self._pardoned(error_ratio(self.target, exact, Terms(np.abs(exact)), precision))

    def _pardoned(self, ratio: Array) -> Array:
        return np.where(self.documented, 0.0, ratio) if self.specials.get("documented") else ratio

    def same_bits(self) -> int:
        """How many elements are the same bit by bit; any NaN equals any NaN."""
        golden = self.golden.astype(self.target.dtype, copy=False)
        same = _bits(self.target, "u") == _bits(golden, "u")
        if self.specials:
            both = np.isnan(self.target.astype(np.float64)) & np.isnan(golden.astype(np.float64))
            same |= both.reshape(-1)
        return int(np.count_nonzero(same))

    def ulp_distance(self) -> Array:
        """How many numbers of their type lie between the finite elements of both, from their bits."""
        golden = self.golden.astype(self.target.dtype, copy=False)
        first, second = _bits(self.target, "i"), _bits(golden, "i")
        gap: Array = np.abs(first - second).view(f"u{first.itemsize}")  # of one sign, floats are ordered as their bits
        opposite = (first ^ second) < 0
        if opposite.any():
            largest = np.array(np.iinfo(first.dtype).max, first.dtype)
            apart = (first & largest).view(gap.dtype) + (second & largest).view(gap.dtype)
            gap[opposite] = apart[opposite]
        if self.specials:
            finite = np.isfinite(self.target.astype(np.float64)) & np.isfinite(golden.astype(np.float64))
            return gap[finite.reshape(-1)]
        return gap


def _bits(array: Array, kind: str) -> Array:
    raw: Array = np.ascontiguousarray(array).reshape(-1).view(f"{kind}{array.itemsize}")
    return raw
