"""Convolution in one, two or three dimensions, plain or transposed.

Every tap q of the kernel brings output positions and input positions together. Plain, output u meets input
u·stride − padding + q·dilation; transposed, input u meets output u·stride − padding + q·dilation. What meets only
padding takes no part. With W[q] the (output channels, input channels) matrix of a tap, in each group of channels:

Forward   output[n, u] = bias + Σ W[q] · input[n, i]                over the taps q and the input i that u meets at q

Backward  gradInput[n, i] = Σ W[q]ᵀ · gradOutput[n, u]              over the taps q and the output u that i meets at q
          gradWeight[q]   = Σ gradOutput[n, u] · input[n, i]ᵀ       over n and all u, i that meet at q
          gradBias        = Σ gradOutput[n, u]                      over n and all u
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from aclnn.base.device import CPU, DEFAULT, Device
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.float_range import sums_of_sizes
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP, cube_inputs
from aclnn.base.taps import every_tap, output_size, tap_ranges, taps_first, taps_last
from aclnn.base.tensor import dense
from aclnn.base.tolerance import Terms
from aclnn.contract.builders import equal, length, same_format, same_rank, when
from aclnn.contract.cases import Case
from aclnn.contract.expr import At, Attr, Dim, Dims, Promoted
from aclnn.contract.model import Arg, Op, bool_array, int_array, number, tensor_in, tensor_out
from aclnn.contract.stage import Stage
from aclnn.ops.convolution_rules import (
    ATTRIBUTES,
    BIAS_FORMATS,
    CUBE_MATH_TYPE,
    LIMITS,
    OUTPUT_SIZE,
    PLAIN,
    TENSOR,
    TRANSPOSED,
    TRANSPOSED_OUTPUT_SIZE,
    WEIGHT,
    attribute_rules,
    beyond_the_limits,
    channel_rules,
    emptiness_rules,
)
from aclnn.ops.definition import Definition

COMPUTED_AS = Promoted(("gradOutput", "input", "weight"))


def _gradient(name: str, index: int, en: str, zh: str, **given: Any) -> Arg:
    """An output that outputMask asks for."""
    return tensor_out(
        name,
        when=At("outputMask", index),
        contiguous_documented=True,
        en=f"Gradient of {en}. Written only if outputMask[{index}].",
        zh=f"{zh}的梯度。仅在outputMask[{index}]为true时写入。",
        **given,
    )


convolution_backward = Op(
    "aclnnConvolutionBackward",
    family="Convolution",
    header="convolution_backward",
    en="Gradients of a convolution: of its input, its weight and its bias, as asked for.",
    zh="卷积的反向计算：按需计算输入、权重和偏置的梯度。",
    args=(
        tensor_in(
            "gradOutput",
            **TENSOR,
            en="Gradient of the forward's output: batch, output channels, spatial axes.",
            zh="正向输出的梯度：批、输出通道、空间轴。",
        ),
        tensor_in(
            "input",
            **TENSOR,
            en="The forward's input: batch, input channels, spatial axes.",
            zh="正向输入：批、输入通道、空间轴。",
        ),
        WEIGHT,
        int_array(
            "biasSizes",
            when=At("outputMask", 2),
            en="The shape of the bias: its number of channels. Read only if outputMask[2].",
            zh="偏置的shape，即其通道数。仅在outputMask[2]为true时使用。",
        ),
        *ATTRIBUTES,
        number("groups", "int32", en="How many groups the channels form.", zh="通道的分组数。"),
        bool_array(
            "outputMask",
            en="Which gradients are wanted: of input, weight, bias.",
            zh="需要计算哪些梯度：输入、权重、偏置。",
        ),
        CUBE_MATH_TYPE,
        _gradient("gradInput", 0, "input", "输入", **TENSOR, shape="input", dtype_like="input"),
        _gradient("gradWeight", 1, "weight", "权重", **TENSOR, shape="weight", dtype_like="weight", dtype_free=True),
        _gradient(
            "gradBias",
            2,
            "the bias",
            "偏置",
            ranks=(1,),
            formats=BIAS_FORMATS,
            shape=(Dim("gradOutput", 1),),
            dtype_like="gradOutput",
        ),
    ),
    rules=(
        length("outputMask", 3, stage=Stage.COUNT),
        same_rank("input", "gradOutput", "weight", "gradInput"),
        same_rank("weight", "gradWeight"),
        same_format("input", "gradOutput", "gradInput"),
        same_format("weight", "gradWeight"),
        attribute_rules(COMPUTED_AS),
        emptiness_rules("input", "weight", "gradOutput"),
        equal(Dim("gradOutput", 0), Dim("input", 0)),
        channel_rules(),
        when(PLAIN, equal(Dim("gradOutput", 1), Dim("weight", 0))),
        when(TRANSPOSED, equal(Dim("gradOutput", 1), Dim("weight", 1) * Attr("groups"))),
        length("biasSizes", 1, stage=Stage.SHAPE),
        when(PLAIN, equal(At("biasSizes", 0), Dim("weight", 0))),
        when(TRANSPOSED, equal(At("biasSizes", 0), Dim("weight", 1) * Attr("groups"))),
        when(PLAIN, equal(Dims("gradOutput", 2), OUTPUT_SIZE)),
        when(TRANSPOSED, equal(Dims("gradOutput", 2), TRANSPOSED_OUTPUT_SIZE)),
        LIMITS,
    ),
)


def convolution_backward_reference(
    grad_output: Array,
    input: Array,
    weight: Array,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
    cube_math_type: int = KEEP,
) -> tuple[Array | None, Array | None, Array | None]:
    of_input, of_weight, of_bias = output_mask
    grad_output_seen, input_seen, weight_seen = cube_inputs(cube_math_type, grad_output, input, weight)
    g, x = channels_last(grad_output_seen, groups), channels_last(input_seen, groups)
    w = taps_first(weight_seen, groups, transposed)  # (*taps, groups, output channels, input channels)
    axes = tap_ranges(g.shape[2:-1], x.shape[2:-1], w.shape[:-3], stride, padding, dilation, transposed)
    grad_x, grad_w = np.zeros(x.shape), np.zeros(w.shape)
    for q, u, i in every_tap(axes):
        rows = flat(g[u])
        if of_input:
            grad_x[i] += (rows @ w[q]).reshape(x[i].shape)
        if of_weight:
            grad_w[q] = rows.swapaxes(1, 2) @ flat(x[i])
    return (
        channels_second(grad_x).reshape(input.shape) if of_input else None,
        taps_last(grad_w, transposed) if of_weight else None,
        _channel_sums(grad_output.astype(np.float64)) if of_bias else None,
    )


def channels_last(tensor: Array, groups: int) -> Array:
    """(batch, channels, *positions) as (groups, batch, *positions, channels of a group)."""
    batch, channels, *sizes = tensor.shape
    return np.moveaxis(tensor.reshape(batch, groups, channels // groups, *sizes), (1, 2), (0, -1))


def channels_second(grouped: Array) -> Array:
    return np.moveaxis(grouped, (0, -1), (1, 2))


def flat(grouped: Array) -> Array:
    """Batch and positions as one axis."""
    return grouped.reshape(len(grouped), math.prod(grouped.shape[1:-1]), grouped.shape[-1])


def _channel_sums(tensor: Array) -> Array:
    return np.asarray(tensor.sum(axis=(0, *range(2, tensor.ndim))))


def convolution_backward_terms(
    grad_output: Array, input: Array, weight: Array, cube_math_type: int = KEEP, **attributes: Any
) -> tuple[Terms | None, ...]:
    """The same sums over absolute values, and how many terms each has at most."""

    def sums(g: Array, x: Array, w: Array, unrounded: Array) -> tuple[Array | None, ...]:
        of_input, of_weight, of_bias = convolution_backward_reference(g, x, w, **attributes)
        return of_input, of_weight, None if of_bias is None else _channel_sums(unrounded)

    g, x, w = cube_inputs(cube_math_type, grad_output, input, weight)
    totals = sums_of_sizes(sums, g, x, w, grad_output.astype(np.float64))
    channels, taps = g.shape[1] // attributes["groups"], math.prod(w.shape[2:])
    outputs, inputs = (len(a) * math.prod(a.shape[2:]) for a in (g, x))
    counts = channels * taps, inputs if attributes["transposed"] else outputs, outputs
    return tuple(None if t is None else Terms(t, (k,)) for t, k in zip(totals, counts, strict=True))


def convolution_backward_case(
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
    output_mask: tuple[bool, ...] = (True, True, True),
    cube_math_type: int = KEEP,
    dtype: DType = FLOAT32,
    device: Device = DEFAULT,
) -> Case:
    """`nd` spatial axes, unless `size` has one entry for each."""
    axes = nd if isinstance(size, int) else len(size)
    per_axis = (size, kernel, stride, padding, dilation, output_padding)
    sizes, taps, s, p, d, extra = ((v,) * axes if isinstance(v, int) else tuple(v) for v in per_axis)
    positions = output_size(sizes, taps, s, p, d, transposed, extra)
    if min(positions) < 0:
        raise ValueError(f"the output would have the size {list(positions)}")
    channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
    shapes = {
        "gradOutput": (batch, out_channels, *positions),
        "input": (batch, in_channels, *sizes),
        "weight": (*channels, *taps),
        "gradInput": (batch, in_channels, *sizes),
        "gradWeight": (*channels, *taps),
        "gradBias": (out_channels,),
    }
    args = convolution_backward.by_name
    tensors = {n: dense(dtype, shape, args[n].default_format(len(shape))) for n, shape in shapes.items()}
    values = {"biasSizes": (out_channels,), "stride": s, "padding": p, "dilation": d, "transposed": transposed}
    values |= {"outputPadding": extra, "groups": groups, "outputMask": output_mask, "cubeMathType": cube_math_type}
    return Case(convolution_backward, {**tensors, **values}, device)


def convolution_backward_cases() -> Iterator[Case]:
    yield from shared_cases(convolution_backward_case)
    yield from _mixed_dtypes_and_masks()
    yield from _views()


def shared_cases(make: Callable[..., Case]) -> Iterator[Case]:
    """What both directions are tried on; `make` makes the cases of one of them."""
    yield from _attributes(make)
    yield from _dtypes(make)
    yield from _empty_tensors(make)
    yield from beyond_the_limits(make)


def _attributes(make: Callable[..., Case]) -> Iterator[Case]:
    for nd in (1, 2, 3):
        yield make(nd, size=5, padding=1)
        yield make(nd, size=6, padding=1, groups=2, stride=2, dilation=2)
        yield make(nd, size=3, padding=1, transposed=True)
        yield make(nd, size=3, padding=1, groups=2, stride=3, dilation=2, output_padding=1, transposed=True)
    yield make(size=(6, 5, 4), kernel=(3, 2, 1), stride=(1, 2, 3), padding=(2, 0, 1), dilation=(1, 2, 1))
    yield make(kernel=1)
    yield make(size=(9, 1), kernel=(4, 1), padding=(2, 0))
    yield make(size=2, padding=2)
    yield make(batch=1, in_channels=1, out_channels=1, size=1, kernel=1)
    for transposed in (False, True):
        yield make(groups=4, out_channels=8, padding=1, transposed=transposed).but("depthwise")
        yield make(padding=(0, 1, 2, 1), stride=2, transposed=transposed).but("up, down, left, right")


def _dtypes(make: Callable[..., Case]) -> Iterator[Case]:
    for dtype in (FLOAT16, BFLOAT16):
        yield make(size=5, padding=1, dtype=dtype)
        yield make(1, size=4, stride=2, output_padding=1, transposed=True, dtype=dtype)
    yield make(size=5, stride=2, dtype=FLOAT64, device=CPU)
    for cube_math_type in (1, 2, 3):
        yield make(size=5, cube_math_type=cube_math_type)
        yield make(size=3, cube_math_type=cube_math_type, transposed=True, dtype=FLOAT16)
    yield make(size=5, cube_math_type=1, dtype=BFLOAT16)


def _mixed_dtypes_and_masks() -> Iterator[Case]:
    plain = convolution_backward_case(size=5)

    def tagged(dtype: DType, *names: str) -> dict[str, Any]:
        return {n: plain.values[n]._replace(dtype=dtype) for n in names}

    mixed = tagged(FLOAT16, "gradOutput", "gradBias") | tagged(BFLOAT16, "weight")
    yield plain.but("three dtypes", **mixed, cubeMathType=3)
    yield plain.but("float16 and bfloat16", **mixed, **tagged(FLOAT16, "input", "gradInput"))
    yield plain.but("gradWeight of another dtype", **tagged(BFLOAT16, "gradWeight"))
    for wanted in range(3):
        mask = tuple(i == wanted for i in range(3))
        others: dict[str, Any] = dict.fromkeys(
            n for n, on in zip(("gradInput", "gradWeight", "gradBias"), mask, strict=True) if not on
        )
        yield plain.but(f"only {wanted}", outputMask=mask, biasSizes=(6,) if mask[2] else None, **others)
    yield plain.but("nothing wanted", outputMask=(False,) * 3, gradInput=plain.values["gradBias"])


def _views() -> Iterator[Case]:
    plain = convolution_backward_case(size=5, padding=1)
    yield plain.seen("broadcast gradOutput", gradOutput=((0, 0, 1, 0), 2, None))
    yield plain.seen("channels last in memory", input=((100, 1, 20, 4), 0, None))
    yield plain.seen("reversed", input=((100, -25, 5, -1), 90, None), weight=((-36, 9, -3, 1), 200, None))
    yield plain.seen("spread gradInput", gradInput=((201, 50, 10, 2), 3, None))
    yield plain.seen("permuted gradWeight", gradWeight=((1, 6, -72, 24), 150, None))
    yield plain.seen("reversed gradBias", gradBias=((-2,), 11, None))


def _empty_tensors(make: Callable[..., Case]) -> Iterator[Case]:
    for transposed in (False, True):
        yield make(batch=0, size=4, transposed=transposed).but("no batch")
        yield make(1, batch=0, size=3, kernel=0, transposed=transposed).but("no batch, no kernel")
    yield make(batch=0, size=(3, 0), kernel=(3, 1), padding=1).but("no batch, no width")
    yield make(batch=0, size=(3, 0), transposed=True).but("no batch, no width")
    yield make(batch=0, out_channels=0, size=4, transposed=True).but("no batch, no output channels")
    yield make(in_channels=0, size=4, groups=2).but("no input channels")
    yield make(in_channels=0, size=0, kernel=1, padding=1).but("no input channels, no positions")
    on_cpu = partial(make, device=CPU)
    yield from (on_cpu(out_channels=0), on_cpu(size=0, padding=1, kernel=1), on_cpu(size=2), on_cpu(kernel=0))
    yield on_cpu(in_channels=0, size=4, transposed=True)
    yield on_cpu(1, size=1, kernel=2, padding=1, transposed=True).but("no output positions")


OPERATORS = (
    Definition(
        convolution_backward,
        convolution_backward_reference,
        convolution_backward_terms,
        convolution_backward_case,
        convolution_backward_cases,
    ),
)
