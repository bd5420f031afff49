"""Which multiplications with padding are left out, and in what order a sum goes for that.

A sum over channels and taps is cut into blocks, one after the other. Where the shifts along some axes come first, a
block has one shift along each of these, and many positions meet nothing but padding there: tiles of such positions
leave it out. Positions that meet the same are of one kind, which has a mask: a bit for every shift.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.kernels.convolution.boxes import WORTH_LEAVING_OUT, Pass, Triple
from aclnn.kernels.matmul.tiles import columns, even_chain, least_block
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import MOST_KINDS, NEAR

MOST_SHIFTS = 62  # with a bit each
LONGEST = 1024  # positions along an axis: of more, padding is little, and to look at each takes long
MIXED = 0.002  # of all multiplications are made for every kind, in tiles that have others too: where rows are cut
# What an axis whose shifts come first costs, as a part of the time and times (stride ÷ vectors across)²: neighbouring
# terms lie farther apart, and narrow tiles wait for them. With AVX2, 128 channels: 1.5 % with stride 1, 6 % with 2.
SCATTERED = 0.06
MANY_CHANNELS = 128  # of which that is so; of fewer, less
TOGETHER = 1200  # terms of neighbouring blocks, so that results are met less often (2 %)
FAR_CHANNELS = 256  # whose blocks are not added up together: their terms would not stay near; nor would whole planes'
NEAR_MANY = 128  # terms of so many channels: else their weights, or a line of each, fill a first cache
LONG = 512  # terms of one tap, from which on that is so with wide panels
# Blocks of several taps may be shorter (Zen 5: 0.86 to 1.0 of the time). Panels of 64 columns: a first cache then has
# their weights. Narrower ones, small pictures: it has the part of the picture that all panels meet.
WIDE, NEAR_WIDE = 64, 64
SMALL_PICTURE, NEAR_SMALL = 300, 32  # positions; terms, and as many more as taps of a channel lie in a block
CHAIN_END = 3  # terms that could be added while the sum of a chain is put away


class Order(NamedTuple):
    """In which order the sum of a pass is made, and how it is cut."""

    axes: tuple[int, ...]  # whose shifts come first, before channels
    shifts: int  # along these, all combinations
    per_shift: int  # blocks of the sum for each
    together: int  # neighbouring blocks that are added up before the result takes them
    chain: int  # how many terms are added one by one
    in_strips: bool = False  # of positions, not on tiles: see source/convolve_few.py

    @property
    def blocks(self) -> int:
        return self.shifts * self.per_shift

    def terms_together(self, terms: int) -> int:
        """How many of a sum's terms are added up before the result takes them, at most."""
        return -(-terms // max(1, self.blocks)) * self.together

    def cost(self, over: Pass, sizes: Triple, channels: int) -> float:
        """Of a position's sum, in terms."""
        terms = channels * len(over.shifts) / max(1, self.blocks)
        met = math.prod(float(over.axes[d].meets(sizes[d]).mean()) for d in self.axes)
        kinds = math.prod(_kinds_of(over.axes[d].meets(sizes[d])) for d in self.axes)
        mixed = 1 + MIXED * kinds * (2 in self.axes)
        apart = SCATTERED * len(self.axes) * (over.axes[2].stride / jit.vectors().across) ** 2
        scattered = 1 + apart * min(1.0, channels / MANY_CHANNELS)
        return scattered * mixed * met * self.blocks * (terms + CHAIN_END * math.ceil(terms / self.chain))

    def kinds(self, over: Pass, sizes: Triple) -> Array:
        """The masks of the kinds, as many as there can be; then what to add up for the kind of a position, by its place
        along each of the three axes."""
        bits = (1 << np.arange(self.shifts)).reshape([len(over.axes[d].shifts) for d in self.axes])
        kinds: list[Array] = []
        masks = np.array([-1])
        for d, (axis, size) in enumerate(zip(over.axes, sizes, strict=True)):
            mask_of = np.full(axis.size, -1)
            if d in self.axes:
                of_shifts = np.moveaxis(bits, self.axes.index(d), 0).reshape(len(axis.shifts), -1).sum(1)
                mask_of = axis.meets(size) @ of_shifts
            distinct = {mask: i for i, mask in enumerate(dict.fromkeys(mask_of.tolist()))}  # neighbours stay neighbours
            kinds = [*(len(distinct) * k for k in kinds), np.array([distinct[mask] for mask in mask_of.tolist()])]
            masks = np.bitwise_and.outer(masks, list(distinct)).ravel()
        return np.concatenate([masks, np.zeros(MOST_KINDS - masks.size, np.int64), *kinds])


class Read(NamedTuple):
    """How tiles meet a picture."""

    is_packed: bool = False  # for them, block by block
    has_lines: bool = False  # of channels: these lie side by side
    each: int = 1  # terms of a sum in what is a channel: two in a pair of them


IN_PLACE = Read()


def order_of(over: Pass, sizes: Triple, channels: int, read: Read = IN_PLACE, *, in_strips: bool = False) -> Order:
    """The order in which a sum over so many channels, of a picture of these sizes, takes the least. Strips
    have positions of neighbouring rows, which are of one kind then."""
    few = [d for d, axis in enumerate(over.axes[:1] if in_strips else over.axes) if axis.size <= LONGEST]
    met = {d: over.axes[d].meets(sizes[d]) for d in few}
    worth = [d for d, m in met.items() if over.block == 1 and m.size and m.mean() <= 1 - WORTH_LEAVING_OUT]
    choices = itertools.chain.from_iterable(itertools.combinations(worth, n) for n in range(len(worth) + 1))
    few_kinds = (axes for axes in choices if math.prod(_kinds_of(met[d]) for d in axes) <= MOST_KINDS)
    orders = [_order(over, channels, axes, read) for axes in few_kinds if _are_long(over, channels, axes, read)]
    best = min((o for o in orders if o.shifts <= MOST_SHIFTS), key=lambda order: order.cost(over, sizes, channels))
    return best._replace(in_strips=in_strips)


def _kinds_of(met: Array) -> int:
    """How many of its positions meet something else. np.unique would import numpy.ma, half of which a process forked
    meanwhile would have for ever."""
    return len({row.tobytes() for row in met})


def _are_long(over: Pass, channels: int, axes: tuple[int, ...], read: Read) -> bool:
    """Whether the terms of a shift are enough for a block, if some axes come first."""
    shifts = math.prod(len(over.axes[d].shifts) for d in axes)
    least = least_block(channels * over.most_taps, each=read.each)
    return not axes or channels * len(over.shifts) // shifts >= least


def _order(over: Pass, channels: int, axes: tuple[int, ...], read: Read) -> Order:
    counts = [len(over.axes[d].shifts) for d in axes]
    shifts = math.prod(counts)
    counted, length = channels * len(over.shifts), channels * over.most_taps
    terms = counted // shifts
    most = max(1, terms // least_block(length, counted, read.each))
    per_shift = min(-(-terms // _near(over, channels, axes, read)), most)
    block = -(-terms // per_shift) if per_shift else 1
    chain = even_chain(length, block, counted, read.each)
    last = counts[-1] if counts else 1
    near = TOGETHER if channels < FAR_CHANNELS and 0 not in axes[-1:] else NEAR
    # Chains begin where blocks do; and who meets one block alone has several chains, as who meets two: bits would else
    # depend on what stands beside a position, see source.indirect.
    fits = per_shift == 1 and block % chain == 0 and block > chain and last * block <= near
    return Order(axes, shifts, per_shift, last if fits else 1, chain)


def _near(over: Pass, channels: int, axes: tuple[int, ...], read: Read) -> int:
    """How many terms of a sum are brought near at a time. Where lines have channels, only weights drive each other out
    of a first cache, and those of narrow panels do not (conv_tbc with AVX2: 0.97 of the time)."""
    is_wide, is_small = columns() >= WIDE, math.prod(over.sizes) <= SMALL_PICTURE
    has_many, has_taps = channels >= FAR_CHANNELS, over.most_taps > 1
    is_long = has_many and (has_taps or (is_wide and channels >= LONG))
    if read.has_lines:
        return NEAR_MANY if is_wide and is_long else NEAR
    if has_taps and not read.is_packed and (is_small or (is_wide and has_many)):
        taps = math.prod(len(axis.shifts) for d, axis in enumerate(over.axes) if d not in axes)
        return NEAR_WIDE if is_wide else min(NEAR, NEAR_SMALL * taps)
    return NEAR_MANY if is_long else NEAR


def in_order(of_channels: Array, over: Pass, axes: tuple[int, ...]) -> Array:
    """What is given for (channel, tap) in the order of sums: (shifts along some axes, channel, other shifts)."""
    by_axis = of_channels.reshape(len(of_channels), *(len(axis.shifts) for axis in over.axes))
    others = [1 + d for d in range(3) if d not in axes]
    ordered: Array = by_axis.transpose([*(1 + d for d in axes), 0, *others])
    return ordered.reshape(math.prod(by_axis.shape[1 + d] for d in axes), len(of_channels), -1)
