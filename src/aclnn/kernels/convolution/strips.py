"""Results of few channels in strips of positions: where that can be, and what it costs. See source/convolve_few.py."""

from __future__ import annotations

import math

from aclnn.base.tensor import TensorSpec
from aclnn.kernels.convolution.boxes import Pass, as_five, must_copy
from aclnn.kernels.matmul.tiles import columns
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import ROWS

# What reading an element costs on tiles of one vector of channels, beside what is multiplied by it. With AVX-512 on
# Zen 5, these reach 0.75 of the multipliers' rate, strips 1.0: of 4 to 16 channels they take 0.53 to 0.83 of the time,
# of 20 to 50 that do not fill vectors 0.6 to 0.95. With AVX2 0.56 to 0.99 of up to 12 channels.
NARROW = 0.5
LEAST_ROWS = 4  # of a tile; from there on any even number is made without a row that is idle
# Below these, what each run of neighbours costs to be written is more than strips save: terms of a sum, how much of the
# strips are positions, and how much of a strip a row fills.
FEW_TERMS, LEAST_FILLED, LEAST_ROW = 32, 0.7, 0.5


def cost(over: Pass, source: TensorSpec, out: TensorSpec, inputs: int, channels: int) -> float:
    """Of a position and a term of its sum, in multiplications of vectors: channels ÷ lanes where no place of a strip is
    idle. inf where strips cannot be made (positions are joined to blocks or do not lie side by side in the picture and
    in the result, a strip is longer than a plane, or channels are more than a panel has columns), or do not pay."""
    lanes, along = jit.vectors().lanes, over.axes[2]
    side_by_side = along.stride * as_five(source).strides[4] == along.step * as_five(out).strides[4] == 1
    if over.block > 1 or channels > columns() or not over.shifts or not side_by_side:
        return math.inf
    filled = _filled(over, source)
    if inputs * len(over.shifts) < FEW_TERMS or filled < LEAST_FILLED or along.size < LEAST_ROW * lanes:
        return math.inf
    return max(LEAST_ROWS, channels + channels % 2) / lanes / filled


def cost_of_tiles(channels: int) -> float:
    """The same on tiles."""
    vectors = -(-channels // jit.vectors().lanes)
    return vectors + (NARROW if vectors == 1 else 0)


def rows_kept() -> int:
    """Positions whose sums have as much room as those of all channels in strips, in whole tiles; a tile's comes behind
    them."""
    return -(-columns() // ROWS) * ROWS


def _filled(over: Pass, source: TensorSpec) -> float:
    """How much of the strips of a plane are positions: a strip goes over the end of a row where the next one begins
    within its reach."""
    _, down, along = over.axes
    lanes, picture = jit.vectors().lanes, as_five(source)
    copied = must_copy(source, any(axis.pads(size) for axis, size in zip(over.axes, picture.sizes, strict=True)))
    pitch = down.stride * (along.met(along.size) if copied else picture.strides[3])
    reach = (down.size - 1) * pitch + along.size
    strips = -(-reach // lanes) if 0 <= pitch - along.size < lanes else down.size * -(-along.size // lanes)
    return down.size * along.size / (strips * lanes) if reach >= lanes else 0.0
