"""Whether tiles or oneDNN compute a convolution of bfloat16 sooner, as its shape and the instructions there are say."""

from __future__ import annotations

import math
from typing import NamedTuple

from aclnn.base.dtype import BFLOAT16, DType, promote
from aclnn.contract.call import Call
from aclnn.kernels.convolution.call import INPUTS, sides, window_of
from aclnn.kernels.onednn import library as onednn

FEW_CHANNELS, FEW_MULTIPLICATIONS = 4, 3_000_000  # with less, tiles are ahead
FEW_FOR_TILES = 2_000_000  # multiplications, where the others are done by AMX
FEW_TERMS = 64  # of a sum, if there are few channels
PATCH = 3  # a stride by which a picture is cut into patches
VECTOR = 16  # channels that oneDNN multiplies together


class Bfloat16Counts(NamedTuple):
    """What the speed of a call depends on: channels of a group of its result, and of what that is made of, by its
    forward or gradInput; taps; and multiplications in all."""

    made: int
    of: int
    groups: int
    taps: tuple[int, ...]
    stride: tuple[int, ...]
    multiplications: int
    is_forward: bool

    @classmethod
    def of_call(cls, call: Call) -> Bfloat16Counts:
        weight, groups, is_forward = call["weight"], call["groups"], "output" in call.values
        narrow, wide, taps = weight.shape[0] // groups, weight.shape[1], weight.shape[2:]
        made, of = (narrow, wide) if is_forward != call["transposed"] else (wide, narrow)
        multiplications = call[sides(call)[1]].size * wide * math.prod(taps)
        return cls(made, of, groups, taps, window_of(call).stride, multiplications, is_forward)

    @property
    def has_one_tap(self) -> bool:
        return math.prod(self.taps) == 1

    def fill_its_vectors(self) -> bool:
        """Whether oneDNN is ahead with AVX512-BF16 (Zen 4, two threads, 200 shapes): its matmuls of bfloat16 are twice
        as fast as those of float32, but it fills vectors of 16 channels. The time of tiles ÷ its own: results of 1 to 3
        channels 0.34 to 1.2 (three dimensions to 1.4), of 6 to 15 channels made of 48 up to 2.7. Of gradients whose
        channels do not fill vectors: less than 16 made of such 0.3 to 0.9, groups of several taps 0.34 to 1.3 (the mean
        0.65), of one tap 0.9 to 1.5. With 2 million multiplications both take the same, with 0.3 million tiles take 0.4
        of its time.
        """
        few = self.made < FEW_CHANNELS and len(self.taps) < 3
        ragged_groups = self.groups > 1 and not self.has_one_tap and (self.made % VECTOR > 0 or self.of % VECTOR > 0)
        ragged = ragged_groups or (self.made < VECTOR and self.of % VECTOR > 0)
        return not few and (self.is_forward or not ragged) and self.multiplications >= FEW_MULTIPLICATIONS

    def fill_its_tiles(self) -> bool:
        """Whether it is ahead with AMX (Xeon, two threads, 300 shapes both ways), whose tiles multiply up to six times
        as fast: 1.4 times in the mean, up to 4. Groups must fill them, or they are made by another implementation, in
        up to 6 times what tiles of ours take. What it lays out anew takes it long where there is little to multiply:
        one tap in groups, or of 16 channels and fewer, 0.9; forwards of less than 4 channels and up to 64 terms, and
        what has less than 4 channels with strides from 3 on, 0.3 to 1. What is chosen so takes 1.04 of the time of
        what is best."""
        if self.groups > 1 and (self.has_one_tap or self.made % VECTOR > 0 or self.of % VECTOR > 0):
            return False
        if self.has_one_tap and min(self.made, self.of) <= VECTOR:
            return False
        few_terms = self.is_forward and self.of < FEW_CHANNELS and self.of * math.prod(self.taps) <= FEW_TERMS
        if few_terms or (self.made < FEW_CHANNELS and min(self.stride) >= PATCH):
            return False
        return self.multiplications >= FEW_FOR_TILES


def is_ahead(call: Call) -> str | None:
    """Why tiles wait for oneDNN, if they do."""
    library = onednn.installed()
    if library is None or not library.has_bfloat16 or dtype_of(call) is not BFLOAT16:
        return None
    counts = Bfloat16Counts.of_call(call)
    if not (library.has_amx and counts.fill_its_tiles()):
        return None
    return "oneDNN multiplies bfloat16 faster on this processor"


def dtype_of(call: Call) -> DType:
    """What a call is computed in."""
    return promote(call[n].dtype for n in (*INPUTS, "input") if n in call.values)
