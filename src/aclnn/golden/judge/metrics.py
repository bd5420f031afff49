"""Everything a report says about one output, measured in one pass.

Blocks are read, measured and forgotten, so arrays may be mapped from files larger than memory. One thread does it all:
a block is small enough for the cache, and two threads would hand the interpreter to each other at every step of it
(a pair of 1 GB takes twice as long with two threads as with one).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.judge.blocks import Block, Miss, TargetPair, blocks
from aclnn.golden.judge.sound import Box
from aclnn.golden.judge.standards import SMALL, StandardRule

MOST_BINS = 4096  # indexes of one axis that are told apart; longer axes are binned
MOST_LISTED = 1000  # misses that are listed one by one
ULP_BINS = 66  # 0, 1, 2, 3–4, 5–8 … units in the last place
_PORTION = 128  # blocks after which mapped memory is given back: 12 MB of float32
_AT_HAND = 2**24  # bytes that malloc shall keep for the arrays of the next block


@dataclass
class Measured:
    """What was found out about one output."""

    shape: tuple[int, ...]
    boxes: Array  # misses inside each of the boxes asked for
    count: int = 0
    nan_target: int = 0
    nan_golden: int = 0
    inf_target: int = 0
    inf_golden: int = 0
    special_misses: int = 0  # NaN or Inf on one side only, or of another sign
    documented: int = 0  # NaN for Inf where the operator's documents say so
    in_tolerance: int = 0
    same_bits: int = 0
    max_abs: float = 0.0
    sum_abs: float = 0.0
    max_rel: float = 0.0
    sum_rel: float = 0.0
    squares: float = 0.0
    dots: Array = field(default_factory=lambda: np.zeros(3))  # target·golden, target·target, golden·golden
    ulps: Array = field(default_factory=lambda: np.zeros(ULP_BINS, np.int64))
    largest_golden_outside: float = 0.0  # the largest |golden| of an element out of tolerance
    misses: int = 0
    worst: Miss | None = None
    worst_misses: WorstMisses = field(default_factory=lambda: WorstMisses())
    listed: list[Miss] = field(default_factory=list)  # the worst of them, one by one
    strips: list[Array] = field(default_factory=list)  # by axis: the worst ratio per index (or bin of indexes)
    miss_strips: list[Array] = field(default_factory=list)  # by axis: how many misses per index (or bin)

    @property
    def mean_abs(self) -> float:
        return self.sum_abs / self.count if self.count else 0.0

    @property
    def mean_rel(self) -> float:
        return self.sum_rel / self.count if self.count else 0.0

    @property
    def rmse(self) -> float:
        return math.sqrt(self.squares / self.count) if self.count else 0.0

    @property
    def cosine(self) -> float:
        """The cosine of the angle between the two; NaN if NaN or Inf do not agree."""
        dot, tt, gg = map(float, self.dots)
        if self.special_misses:
            return math.nan
        if tt == 0 or gg == 0:
            return 1.0 if tt == gg else 0.0
        return min(1.0, dot / math.sqrt(tt) / math.sqrt(gg))

    @property
    def effective_bits(self) -> float:
        """How many leading bits agree: −log2 of the root mean square error over that of the golden."""
        if self.squares == 0:
            return math.inf
        golden = float(self.dots[2])
        return max(0.0, 0.5 * (math.log2(golden) - math.log2(self.squares))) if golden else 0.0

    def width(self, axis: int) -> int:
        """How many neighbouring indexes of an axis share one entry of its strips."""
        return -(-max(self.shape[axis], 1) // MOST_BINS)

    def take(self, block: Block, rule: StandardRule, boxes: Sequence[Box]) -> None:
        """Measures one block."""
        self.count += block.target.size
        for name, count in block.specials.items():
            setattr(self, name, getattr(self, name) + count)
        self._take_errors(block, rule)
        self._take_ulps(block)
        if rule.counts_bits:
            self.same_bits += block.same_bits()
        ratio = np.asarray(block.ratio())
        highest = int(ratio.argmax())
        top = float(ratio.reshape(-1)[highest])
        if self.worst is None or top > self.worst.ratio:
            inside = np.unravel_index(highest, ratio.shape)
            index = tuple(int(i) + s.start for i, s in zip(inside, block.where, strict=True))
            self.worst = block.pair.element(index, top)
        if top > 0:
            self._take_strips(self.strips, np.maximum, ratio, block.where)
        if top > 1:
            self._take_misses(block, ratio, boxes)

    def _take_errors(self, block: Block, rule: StandardRule) -> None:
        error, magnitude = block.error.reshape(-1), block.magnitude.reshape(-1)
        t, g = block.wide_target.reshape(-1), block.wide_golden.reshape(-1)
        self.dots += (_dot(t, g), _dot(t, t), _dot(g, g))
        outside = error > rule.atol + rule.rtol * magnitude
        count = int(np.count_nonzero(outside))
        self.in_tolerance += error.size - count
        if count:
            self.largest_golden_outside = max(self.largest_golden_outside, float(magnitude[outside].max()))
        if block.worst_error == 0:
            return
        relative = error / (magnitude + SMALL)
        self.max_abs = max(self.max_abs, block.worst_error)
        self.max_rel = max(self.max_rel, float(relative.max()))
        self.sum_abs += float(error.sum())
        self.sum_rel += float(relative.sum())
        self.squares += _dot(error, error)

    def _take_ulps(self, block: Block) -> None:
        if block.worst_error == 0 and not block.specials:
            self.ulps[0] += block.target.size
            return
        distance = block.ulp_distance()
        left = distance.size
        for bin_, upper in enumerate((0, *(2**k for k in range(8 * distance.itemsize)))):
            if not left:
                return
            beyond = int(np.count_nonzero(distance > upper))
            self.ulps[bin_] += left - beyond
            left = beyond

    def _take_misses(self, block: Block, ratio: Array, boxes: Sequence[Box]) -> None:
        missed = ratio > 1
        self.misses += int(np.count_nonzero(missed))
        for i, box in enumerate(boxes):
            self.boxes[i] += np.count_nonzero(missed[_within(box, block.where)])
        self._take_strips(self.miss_strips, np.add, missed.astype(np.int64), block.where)
        self.worst_misses.take(ratio, missed, block.where, self.shape)

    def _take_strips(self, strips: list[Array], join: np.ufunc, values: Array, where: Box) -> None:
        for axis in reversed(range(values.ndim)):  # the last axis first, so that the others see less
            others = tuple(k for k in range(values.ndim) if k != axis)
            profile = join.reduce(values, axis=others).reshape(-1)
            bins = (where[axis].start + np.arange(profile.size)) // self.width(axis)
            join.at(strips[axis], bins, profile)
            values = join.reduce(values, axis=axis, keepdims=True)


@dataclass
class WorstMisses:
    """The misses that are worth a list: their ratios, and their numbers in the flat array."""

    ratios: Array = field(default_factory=lambda: np.empty(0))
    numbers: Array = field(default_factory=lambda: np.empty(0, np.int64))

    def take(self, ratio: Array, missed: Array, where: Box, shape: tuple[int, ...]) -> None:
        least = self.ratios.min() if self.ratios.size >= MOST_LISTED else 1.0
        flat = np.flatnonzero(missed & (ratio >= least)) if least > 1 else np.flatnonzero(missed)
        if not ratio.ndim or not flat.size:
            self.add(ratio.reshape(-1)[flat], flat)
            return
        inside = np.unravel_index(flat, ratio.shape)
        index = tuple(i + s.start for i, s in zip(inside, where, strict=True))
        self.add(ratio.reshape(-1)[flat], np.ravel_multi_index(index, shape))

    def add(self, ratios: Array, numbers: Array) -> None:
        if not ratios.size:
            return
        ratios, numbers = np.concatenate([self.ratios, ratios]), np.concatenate([self.numbers, numbers])
        kept = np.lexsort((numbers, -ratios))[:MOST_LISTED]  # the worst, and of equals the first
        self.ratios, self.numbers = ratios[kept], numbers[kept]

    def listed(self, pair: TargetPair) -> list[Miss]:
        shape = pair.target.shape
        found = zip(self.ratios.tolist(), self.numbers.tolist(), strict=True)
        return [pair.element(tuple(map(int, np.unravel_index(n, shape))) if shape else (), r) for r, n in found]


def measure(pair: TargetPair, rule: StandardRule, boxes: Sequence[Box] = ()) -> Measured:
    """Measures target against golden under a rule; counts misses in the given boxes too."""
    np.empty(_AT_HAND, np.uint8)  # once freed, malloc no longer returns arrays up to this size to the system (1.4×)
    found = Measured(pair.target.shape, np.zeros(len(boxes), np.int64))
    lengths = [-(-size // found.width(axis)) for axis, size in enumerate(found.shape)]
    found.strips = [np.zeros(n) for n in lengths]
    found.miss_strips = [np.zeros(n, np.int64) for n in lengths]
    with np.errstate(all="ignore"):
        for count, where in enumerate(blocks(found.shape), 1):
            found.take(pair.block(where), rule, boxes)
            if count % _PORTION == 0:
                pair.forget()
    pair.forget()
    found.listed = found.worst_misses.listed(pair)
    return found


def _dot(a: Array, b: Array) -> float:
    return float(np.einsum("i,i->", a, b))  # no BLAS: its threads cost more than a block


def _within(box: Box, where: Box) -> Box:
    """The part of a box that lies in a block, in the block's own indexes."""
    return tuple(
        slice(max(wanted.start - have.start, 0), max(min(wanted.stop, have.stop) - have.start, 0))
        for wanted, have in zip(box, where, strict=True)
    )
