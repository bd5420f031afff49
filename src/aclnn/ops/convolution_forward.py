"""Convolution in one, two or three dimensions, plain or transposed, forwards.

output[n, u] = bias + Σ W[q] · input[n, i]        over the taps q and the input i that u meets at q

What meets at which tap, and W[q], are explained in convolution.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from aclnn.base.device import DEFAULT, Device
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.float_range import sums_of_sizes
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP, cube_inputs
from aclnn.base.taps import every_tap, output_size, tap_ranges, taps_first
from aclnn.base.tolerance import Terms
from aclnn.contract.builders import between, same_format, same_rank, when
from aclnn.contract.call import Call
from aclnn.contract.cases import Case
from aclnn.contract.expr import Attr, Dim, Either, Formula, Limited, Promoted
from aclnn.contract.model import Op, number, tensor_in, tensor_out
from aclnn.contract.stage import Stage
from aclnn.ops.convolution import channels_last, channels_second, convolution_backward_case, flat, shared_cases
from aclnn.ops.convolution_rules import (
    ATTRIBUTES,
    BIAS_FORMATS,
    CUBE_MATH_TYPE,
    HAS_BATCH_AND_CHANNELS,
    LIMITS,
    OUTPUT_SIZE,
    PLAIN,
    SIZES_READ,
    TENSOR,
    TRANSPOSED,
    TRANSPOSED_OUTPUT_SIZE,
    WEIGHT,
    attribute_rules,
    channel_rules,
    emptiness_rules,
)
from aclnn.ops.definition import Definition

COMPUTED_AS = Promoted(("input", "weight"))
OUTPUT_CHANNELS = Either(TRANSPOSED, Dim("weight", 1) * Attr("groups"), Dim("weight", 0))


def _output_shape(call: Call) -> tuple[int, ...]:
    return (call["input"].shape[0], OUTPUT_CHANNELS.value(call), *OUTPUT_SIZE.value(call))


OUTPUT_SHAPE = Formula(
    _output_shape,
    (*SIZES_READ, "groups"),
    "batch, output channels, and on each axis floor((input size + padding of both ends − dilation × (kernel − 1) − 1) "
    "÷ stride) + 1; transposed: (input size − 1) × stride − padding of both ends + dilation × (kernel − 1) + "
    "outputPadding + 1",
    "批、输出通道，各轴为floor((输入大小 + 两端padding − dilation × (卷积核 − 1) − 1) ÷ stride) + 1；转置卷积为"
    "(输入大小 − 1) × stride − 两端padding + dilation × (卷积核 − 1) + outputPadding + 1",
)

convolution = Op(
    "aclnnConvolution",
    family="Convolution",
    header="convolution",
    en="A convolution in one, two or three dimensions, plain or transposed.",
    zh="一维、二维或三维的卷积或转置卷积。",
    args=(
        tensor_in(
            "input", **TENSOR, en="The input: batch, input channels, spatial axes.", zh="输入：批、输入通道、空间轴。"
        ),
        WEIGHT,
        tensor_in(
            "bias",
            optional=True,
            ranks=(1,),
            formats=BIAS_FORMATS,
            shape=(OUTPUT_CHANNELS,),
            en="What is added to each output channel; null is nothing.",
            zh="各输出通道的偏置；为空时不加。",
        ),
        *ATTRIBUTES,
        number("groups", "int64", en="How many groups the channels form.", zh="通道的分组数。"),
        tensor_out(
            "output",
            **TENSOR,
            shape=OUTPUT_SHAPE,
            dtype_like=COMPUTED_AS,
            contiguous_documented=True,
            en="The result: batch, output channels, spatial axes.",
            zh="输出：批、输出通道、空间轴。",
        ),
        CUBE_MATH_TYPE,
    ),
    rules=(
        same_rank("input", "weight", "output"),
        same_format("input", "output"),
        attribute_rules(COMPUTED_AS),
        emptiness_rules("input", "weight"),
        channel_rules(),
        when(PLAIN, between(OUTPUT_SIZE, 0, stage=Stage.SHAPE)),
        when(TRANSPOSED, between(TRANSPOSED_OUTPUT_SIZE, 0, stage=Stage.SHAPE)),
        when(
            Limited(),
            when(HAS_BATCH_AND_CHANNELS, when(TRANSPOSED, between(TRANSPOSED_OUTPUT_SIZE, 1, stage=Stage.SHAPE))),
        ),
        LIMITS,
    ),
)


def convolution_reference(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    cube_math_type: int = KEEP,
) -> Array:
    input_seen, weight_seen = cube_inputs(cube_math_type, input, weight)
    x = channels_last(input_seen, groups)
    w = taps_first(weight_seen, groups, transposed)  # (*taps, groups, output channels, input channels)
    sizes = output_size(input.shape[2:], weight.shape[2:], stride, padding, dilation, transposed, output_padding)
    y = np.zeros((groups, len(input), *sizes, w.shape[-2]))
    for q, u, i in every_tap(tap_ranges(sizes, x.shape[2:-1], w.shape[:-3], stride, padding, dilation, transposed)):
        y[u] += (flat(x[i]) @ w[q].swapaxes(1, 2)).reshape(y[u].shape)
    by_channel = channels_second(y).reshape(len(input), groups * w.shape[-2], *sizes)
    return by_channel if bias is None else by_channel + bias.astype(np.float64).reshape(-1, *(1,) * len(sizes))


def convolution_terms(
    input: Array, weight: Array, bias: Array | None, cube_math_type: int = KEEP, **attributes: Any
) -> Terms:
    """The same sum over absolute values, and how many terms it has at most."""

    def sums(x: Array, w: Array, *biases: Array) -> tuple[Array]:
        return (convolution_reference(x, w, *(biases or (None,)), **attributes),)

    biases = () if bias is None else (bias.astype(np.float64),)
    (total,) = sums_of_sizes(sums, *cube_inputs(cube_math_type, input, weight), *biases)
    channels = input.shape[1] // attributes["groups"]
    return Terms(total, (channels * math.prod(weight.shape[2:]) + 1,))


def convolution_case(
    nd: int = 2,
    batch: int = 2,
    in_channels: int = 4,
    out_channels: int = 6,
    size: int | tuple[int, ...] = 7,
    kernel: int | tuple[int, ...] = 3,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    output_padding: int | tuple[int, ...] = 0,
    groups: int = 1,
    transposed: bool = False,
    has_bias: bool = True,
    cube_math_type: int = KEEP,
    dtype: DType = FLOAT32,
    device: Device = DEFAULT,
) -> Case:
    """`nd` spatial axes, unless `size` has one entry for each."""
    sizes = (nd, batch, in_channels, out_channels, size, kernel, stride, padding, dilation, output_padding, groups)
    back = convolution_backward_case(
        *sizes, transposed, cube_math_type=cube_math_type, dtype=dtype, device=device
    ).values
    same = ("input", "weight", "stride", "padding", "dilation", "transposed", "outputPadding", "groups", "cubeMathType")
    values = {name: back[name] for name in same}
    values |= {"bias": back["gradBias"] if has_bias else None, "output": back["gradOutput"]}
    return Case(convolution, values, device)


def convolution_cases() -> Iterator[Case]:
    yield from shared_cases(convolution_case)
    for nd in (1, 2, 3):
        yield convolution_case(nd, size=6, padding=1, groups=2, stride=2, dilation=2, has_bias=False)
        yield convolution_case(nd, size=3, padding=1, transposed=True, has_bias=False)
    plain = convolution_case(size=5, padding=1)
    yield plain.seen("channels last in memory", input=((100, 1, 20, 4), 0, None))
    yield plain.seen("broadcast bias", bias=((0,), 1, None))
    yield plain.seen("reversed", input=((100, -25, 5, -1), 90, None), weight=((-36, 9, -3, 1), 200, None))
    yield plain.seen("spread output", output=((301, 50, 10, 2), 3, None))

    def tagged(dtype: DType, name: str) -> dict[str, Any]:
        return {name: plain.values[name]._replace(dtype=dtype)}

    yield plain.but("three dtypes", **tagged(FLOAT16, "input"), **tagged(BFLOAT16, "weight"), cubeMathType=3)
    yield plain.but("bias of another dtype", **tagged(FLOAT16, "bias"))
    yield plain.but("output of another dtype", **tagged(BFLOAT16, "output"))


OPERATORS = (Definition(convolution, convolution_reference, convolution_terms, convolution_case, convolution_cases),)
