"""Roundings: of the inputs, as cubeMathType makes them, and of the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.rounding import ALLOW_DOWN_PRECISION, KEEP, USE_FP16, USE_HF32, to_fp16
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Arguments, Before, Hypothesis, computed_as, setting

HF32_UNIT = 2.0**-12


def of_cube(case: LoadedCase) -> Iterator[Hypothesis]:
    asked = case.call["cubeMathType"]
    if computed_as(case) is not FLOAT32:
        return
    if asked not in (ALLOW_DOWN_PRECISION, USE_HF32):
        yield Hypothesis(
            "hf32",
            Text(
                f"the inputs were rounded to HF32, as cubeMathType 1 or 3 asks for; cubeMathType is {asked}",
                f"输入被舍入为HF32（cubeMathType为1或3时的行为），而cubeMathType是{asked}",
            ),
            Text("with HF32 inputs", "以HF32输入重算"),
            setting("cube_math_type", USE_HF32),
        )
    if asked != USE_FP16:
        yield Hypothesis(
            "float16",
            Text(
                f"the inputs were rounded to float16, as cubeMathType 2 asks for; cubeMathType is {asked}",
                f"输入被舍入为float16（cubeMathType为2时的行为），而cubeMathType是{asked}",
            ),
            Text("with float16 inputs", "以float16输入重算"),
            setting("cube_math_type", USE_FP16),
        )
    if asked != KEEP:
        yield Hypothesis(
            "float32",
            Text(
                f"the inputs were not rounded, though cubeMathType is {asked}",
                f"cubeMathType是{asked}，但输入没有被舍入",
            ),
            Text("with inputs as they are", "以未舍入的输入重算"),
            setting("cube_math_type", KEEP),
        )


def _every_tensor(change: Callable[[Array], Array]) -> Before:
    def one(value: Any) -> Any:
        if isinstance(value, list):
            return [one(v) for v in value]
        return change(value) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value

    def before(case: LoadedCase, arguments: Arguments) -> Arguments:
        return {name: one(value) for name, value in arguments.items()}

    return before


def of_inputs(case: LoadedCase) -> Iterator[Hypothesis]:
    """Without a cubeMathType nothing asks for HF32, but a kernel may be made for float16 alone."""
    if computed_as(case) is FLOAT32:
        yield Hypothesis(
            "float16",
            Text("the inputs were rounded to float16", "输入被舍入为float16"),
            Text("with float16 inputs", "以float16输入重算"),
            _every_tensor(to_fp16),
        )


def of_products(case: LoadedCase) -> Iterator[Hypothesis]:
    """Matrix products of an operator that has no cubeMathType to ask for them."""
    if computed_as(case) is FLOAT32:
        text = Text("the matrix products were made in HF32", "矩阵乘以HF32进行")
        yield Hypothesis("hf32", text, Text("with the roundings of HF32", "按HF32的舍入误差"), unit=HF32_UNIT)


def of_arithmetic(case: LoadedCase) -> Iterator[Hypothesis]:
    """Coarser arithmetic inside: of sums, or where there are none of each element."""
    dtype = computed_as(case)
    if dtype not in (FLOAT32, FLOAT16, BFLOAT16):
        return
    narrow = BFLOAT16 if dtype is BFLOAT16 else FLOAT16
    yield Hypothesis(
        f"{narrow}-accumulation",
        Text(f"the sums were accumulated in {narrow} instead of float32", f"累加使用了{narrow}而不是float32"),
        Text(f"with the roundings of {narrow} accumulation", f"按{narrow}累加的舍入误差"),
        unit=narrow.unit,
        explains=_is_a_sum,
    )
    yield Hypothesis(
        f"{narrow}-arithmetic",
        Text(f"each element was computed in {narrow} instead of float32", f"逐元素计算使用了{narrow}而不是float32"),
        Text(f"with the roundings of {narrow} arithmetic", f"按{narrow}计算的舍入误差"),
        unit=narrow.unit,
        explains=lambda case, output: not _is_a_sum(case, output),
    )


def _is_a_sum(case: LoadedCase, output: str) -> bool:
    """Whether an output adds up products with a weight, or rows of a batch; all others are made element by element."""
    return bool({"weight", "params"} & case.op.by_name.keys()) or output == "gradBiasOut"
