"""How the weight of a convolution is packed for tiles before a pass runs: panels of terms, see source/panels.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.kernels.convolution.boxes import Pass
from aclnn.kernels.convolution.padding import Order, in_order
from aclnn.kernels.convolution.shape import Shape, tap_places
from aclnn.kernels.matmul.tiles import columns, packed_columns, panels_of
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import FAR_WEIGHTS, NO_PLACE, NO_TAP
from aclnn.kernels.native.threads import worth
from aclnn.kernels.shared.launch import Launch, Room
from aclnn.kernels.shared.workspace import LINE_ELEMENTS, gap_behind

PER_THREAD = 32768  # elements to pack that pay for waking a thread
# Up to so many threads, each has its own copy of a packed weight that is near: where cores have different last caches,
# to write a line that another one has read takes five times as long as to pack it.
MOST_COPIES = 8


class PackedPass(NamedTuple):
    """Where the weight of a pass lies when it is packed."""

    place: int
    terms: int  # of a panel: those of all passes that are packed together
    first: int  # of them that is this pass's
    copy: int  # elements from a lot's own copy to the next lot's; 0 if there is one for all


class WeightPacking(NamedTuple):
    """A weight that is packed for a result."""

    shape: Shape
    onto_wide: bool
    each: int  # terms of a sum in an element that is packed: 1, or 2 as a pair of channels
    name: str | None  # of the weight
    found: str | None  # where what is not finite in it is said, or too small for pairs, if that is asked
    threads: int  # that will make the result
    room: Room
    launches: list[Launch]

    def of_passes(self, overs: Sequence[Pass], orders: Sequence[Order]) -> list[PackedPass]:
        """Launches the packing of all taps, together unless positions are joined to blocks; says where they go."""
        places = list(map(self._places_of_taps, overs, orders))
        alone = [p[0] for p, over in zip(places, overs, strict=True) if over.block == 1]
        together, first, found = self._pack_taps(np.concatenate([*alone, np.zeros(0, np.int64)])), 0, []
        for p, over in zip(places, overs, strict=True):
            if over.block > 1:
                terms = p.shape[1] // self.each
                found.append(self._pack("panels.pack_blocks", terms, p.ravel(), over.block, p.shape[1]))
            else:
                found.append(together._replace(first=first))
                first += p.shape[1] // self.each
        return found

    def _pack_taps(self, places: Array) -> PackedPass:
        """Launches the packing of terms at some places: in the order in which these lie in memory, if the first of a
        pair comes before the second so. One that is not there is left out."""
        backwards = self.each > 1 and self._to_next_channel < 0
        rows = np.arange(places.size) if backwards else np.argsort(places, kind="stable")
        rows = rows[places[rows] > NO_PLACE]
        given = np.concatenate([places[rows], rows])
        return self._pack("panels.pack_taps", places.size // self.each, given, 1, rows.size)

    @property
    def _to_next_channel(self) -> int:
        narrow_stride, wide_stride = self.shape.weight.strides[:2]
        return narrow_stride if self.onto_wide else wide_stride

    def _places_of_taps(self, over: Pass, order: Order) -> Array:
        """Where the terms of a pass lie in the weight, [position of a block][term]; those of a pair come together."""
        inputs = self.shape.source_and_result(self.onto_wide)[0].shape[1] // self.shape.groups
        channels = np.arange(inputs) * self._to_next_channel
        in_pairs = np.append(channels, [NO_TAP] * (-inputs % self.each)).reshape(-1, self.each)
        halves = [self._places_of_channels(of_each, over, order) for of_each in in_pairs.T]
        return np.stack(halves, 2).reshape(over.block, -1)

    def _places_of_channels(self, channels: Array, over: Pass, order: Order) -> Array:
        taps = tap_places(self.shape.weight, over)
        places = [in_order(channels[:, None] + of_position, over, order.axes).ravel() for of_position in taps]
        there: Array = np.maximum(np.stack(places), NO_TAP)
        return there

    def _pack(self, kernel: str, terms: int, places: Array, block: int, given: int) -> PackedPass:
        """Launches the packing of so many terms, of which as many elements are given; says where they go."""
        weight, groups, put = self.shape.weight, self.shape.groups, self.room.numbers.put
        outputs = self.shape.source_and_result(self.onto_wide)[1].shape[1] // groups
        columns_made = block * outputs
        elements = groups * packed_columns(columns_made) * terms
        copies = self.threads if 1 < self.threads <= MOST_COPIES and elements < FAR_WEIGHTS else 1
        apart = elements + gap_behind(elements, terms) if copies > 1 else 0
        place = self.room.arena.reserve(4 * max(elements, apart * copies))
        if elements:
            narrow_stride, wide_stride = weight.strides[:2]
            across = wide_stride if self.onto_wide else narrow_stride
            strides = (weight.shape[0] // groups * narrow_stride, across, groups, apart, given)
            threads = copies if copies > 1 else worth(elements, PER_THREAD, self.room.threads)
            strip = strip_for(columns_made, groups * copies, threads)
            items = copies * groups * (panels_of(columns_made) if block > 1 else -(-columns_made // strip))
            numbers = (columns_made, terms, put(places), put(strides), outputs if block > 1 else strip)
            kinds = jit.POINTER[weight.dtype] + jit.factors(self.each) + "IiiIIi"
            operands = (self.name, place, self.found)
            self.launches.append(Launch(kernel, kinds, items, operands, numbers, threads))
        return PackedPass(place, terms, 0, apart)


def strip_for(made: int, groups: int, threads: int) -> int:
    """How many columns are packed together: panels, or narrower strips where threads would not share those evenly."""
    return columns() if panels_of(made) * groups % threads == 0 else min(columns(), LINE_ELEMENTS)
