"""Roundings: of the inputs, as cubeMathType makes them, and of the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.rounding import to_fp16
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.why.hypotheses.model import Recomputed, computed_as, every_array, setting

HF32_UNIT = 2.0**-12


def cube(other: int, *same: int) -> Callable[[LoadedCase], Iterator[Recomputed]]:
    """Another cubeMathType than the one that was asked for, or than those that do the same."""

    def recomputed(case: LoadedCase) -> Iterator[Recomputed]:
        asked = case.call["cubeMathType"]
        if computed_as(case) is FLOAT32 and asked not in (other, *same):
            yield Recomputed(setting("cube_math_type", other), words={"asked": asked})

    return recomputed


def inputs_in_float16(case: LoadedCase) -> Iterator[Recomputed]:
    """Without a cubeMathType nothing asks for HF32, but a kernel may be made for float16 alone."""
    if computed_as(case) is FLOAT32:
        yield Recomputed(every_array(_in_float16))


def _in_float16(case: LoadedCase, name: str, values: Array) -> Array:
    return to_fp16(values) if values.dtype == np.float32 else values


def matmul_in_hf32(case: LoadedCase) -> Iterator[Recomputed]:
    """Matrix products of an operator that has no cubeMathType to ask for them."""
    if computed_as(case) is FLOAT32:
        yield Recomputed(unit=HF32_UNIT)


def narrow(sums: bool) -> Callable[[LoadedCase], Iterator[Recomputed]]:
    """Coarser arithmetic inside, of sums or of what is made element by element."""

    def recomputed(case: LoadedCase) -> Iterator[Recomputed]:
        dtype = computed_as(case)
        if dtype in (FLOAT32, FLOAT16, BFLOAT16):
            coarse = BFLOAT16 if dtype is BFLOAT16 else FLOAT16
            explains = _is_a_sum if sums else _is_no_sum
            yield Recomputed(unit=coarse.unit, explains=explains, words={"narrow": coarse})

    return recomputed


def _is_a_sum(case: LoadedCase, output: str) -> bool:
    """Whether an output adds up products with a weight, or rows of a batch; all others are made element by element."""
    return bool({"weight", "params"} & case.op.by_name.keys()) or output == "gradBiasOut"


def _is_no_sum(case: LoadedCase, output: str) -> bool:
    return not _is_a_sum(case, output)
