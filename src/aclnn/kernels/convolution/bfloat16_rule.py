"""Whether oneDNN computes a convolution of bfloat16 sooner than tiles do, on processors with AMX, as its shape says."""

from __future__ import annotations

import math
from typing import NamedTuple

from aclnn.base.dtype import BFLOAT16, DType, promote
from aclnn.contract.call import Call
from aclnn.kernels.convolution.call import INPUTS, sides, window_of
from aclnn.kernels.onednn import library as onednn

FEW_CHANNELS, FEW_MULTIPLICATIONS = 4, 2_000_000  # with less, tiles are ahead
FEW_TERMS = 64  # of a sum, if there are few channels
PATCH = 3  # a stride by which a picture is cut into patches
VECTOR = 16  # channels that it multiplies together


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

    def fill_its_tiles(self) -> bool:
        """Whether it is ahead (Xeon, two threads, 300 shapes both ways; tiles of ours multiplied float32 then): AMX
        multiplies up to six times as fast, 1.4 times in the mean, up to 4. Groups must fill its tiles, or they are made
        by another implementation, in up to 6 times what ours take. What it lays out anew takes it long where there is
        little to multiply: one tap in groups, or of 16 channels and fewer, 0.9; forwards of less than 4 channels and up
        to 64 terms, and what has less than 4 channels with strides from 3 on, 0.3 to 1. What is chosen so takes 1.04 of
        the time of what is best."""
        if self.groups > 1 and (self.has_one_tap or self.made % VECTOR > 0 or self.of % VECTOR > 0):
            return False
        if self.has_one_tap and min(self.made, self.of) <= VECTOR:
            return False
        few_terms = self.is_forward and self.of < FEW_CHANNELS and self.of * math.prod(self.taps) <= FEW_TERMS
        if few_terms or (self.made < FEW_CHANNELS and min(self.stride) >= PATCH):
            return False
        return self.multiplications >= FEW_MULTIPLICATIONS


def is_ahead(call: Call) -> str | None:
    """Why tiles wait for oneDNN, if they do."""
    library = onednn.installed()
    if library is None or not library.has_amx or dtype_of(call) is not BFLOAT16:
        return None
    fast = Bfloat16Counts.of_call(call).fill_its_tiles()
    return "oneDNN multiplies bfloat16 faster on this processor" if fast else None


def dtype_of(call: Call) -> DType:
    """What a call is computed in."""
    return promote(call[n].dtype for n in (*INPUTS, "input") if n in call.values)
