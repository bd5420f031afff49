"""Convolution over time of (time, batch, channels) tensors, stride 1 and dilation 1, with `pad` steps on both ends.

Tap k brings output step u and input step u − pad + k together; a step that meets only padding takes no part.

Forward   output[u, b] = bias + Σ over k of   input[u − pad + k, b] · weight[k]

Backward  gradInput[i, b]  = Σ over k of       self[i + pad − k, b] · weight[k]ᵀ
          gradWeight[k]    = Σ over u, b of    input[u − pad + k, b]ᵀ · self[u, b]
          gradBias         = Σ over u, b of    self[u, b]

`self` is the gradient of the output; in Python it is called grad_output.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, wraps
from typing import Any

import numpy as np

from aclnn.base.device import CPU, DEFAULT, Device
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.float_range import sums_of_sizes
from aclnn.base.format import Format
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP, cube_inputs
from aclnn.base.taps import tap_ranges
from aclnn.base.tensor import dense
from aclnn.base.tolerance import Terms
from aclnn.contract.builders import at_least, between, equal, one_of, same_dtype, shape_is, when
from aclnn.contract.cases import Case
from aclnn.contract.expr import Attr, Dim, Dims, Is, Limited, Promoted
from aclnn.contract.model import Arg, Op, formats, number, tensor_in, tensor_out
from aclnn.contract.stage import Stage
from aclnn.ops.convolution_rules import CUBE_MATH_TYPE
from aclnn.ops.definition import Definition

SEQUENCE = {"ranks": (3,), "formats": formats(Format.ND, Format.NCL)}
CHANNELS = {"ranks": (1,), "formats": formats(Format.ND, Format.NCL)}
COMPUTED_AS = Promoted(("weight",))
OUTPUT_STEPS = Dim("input", 0) + Attr("pad") * 2 + 1 - Dim("weight", 0)
WEIGHT = tensor_in(
    "weight",
    **SEQUENCE,
    en="The kernel: taps, input channels, output channels.",
    zh="卷积核：核长、输入通道、输出通道。",
)
PAD = number("pad", "int64", en="Steps of padding on both ends of the time axis.", zh="时间轴两端的填充步数。")
ATTRIBUTE_RULES = (
    at_least("pad", 0),
    when(Limited(), between("pad", 0, 255)),
    one_of("cubeMathType", 0, 1, 2, 3),
    when(Is(COMPUTED_AS, ("float16",)), one_of("cubeMathType", 0, 1, 2)),
    when(Is(COMPUTED_AS, ("bfloat16",)), one_of("cubeMathType", 0, 1)),
)


def _gradient(of: str, zh: str, **given: Any) -> Arg:
    """The gradient of an argument, which has its shape and dtype."""
    like: dict[str, Any] = {"shape": of, "dtype_like": of, "contiguous_documented": True}
    return tensor_out(f"grad{of.capitalize()}", **like, en=f"Gradient of {of}.", zh=f"{zh}的梯度。", **given)


conv_tbc_backward = Op(
    "aclnnConvTbcBackward",
    family="ConvTbc",
    header="convolution_backward",
    en="Gradients of a convolution over time: of its input, its weight and its bias.",
    zh="时序卷积的反向计算：输入、权重和偏置的梯度。",
    args=(
        tensor_in(
            "self",
            python="grad_output",
            **SEQUENCE,
            en="Gradient of the forward's output: time, batch, output channels.",
            zh="正向输出的梯度：时间、批、输出通道。",
        ),
        tensor_in(
            "input",
            **SEQUENCE,
            en="The forward's input: time, batch, input channels.",
            zh="正向输入：时间、批、输入通道。",
        ),
        WEIGHT,
        tensor_in(
            "bias",
            **CHANNELS,
            en="The forward's bias, of which only dtype and size matter.",
            zh="正向偏置，只使用其数据类型和大小。",
        ),
        PAD,
        CUBE_MATH_TYPE,
        _gradient("input", "输入", **SEQUENCE),
        _gradient("weight", "权重", **SEQUENCE),
        _gradient("bias", "偏置", **CHANNELS),
    ),
    rules=(
        same_dtype("self", "input", "weight", "bias"),
        ATTRIBUTE_RULES,
        equal(Dim("input", 2), Dim("weight", 1)),
        equal(Dim("bias", 0), Dim("weight", 2)),
        shape_is("self", (OUTPUT_STEPS, Dim("input", 1), Dim("weight", 2))),
        when(
            Limited(),
            between(Dim("weight", 0), 1, 255, stage=Stage.LIMIT),
            between(Dims("self"), 1, 2147483646, stage=Stage.LIMIT),
            between(Dims("input"), 1, 2147483646, stage=Stage.LIMIT),
        ),
    ),
)


def conv_tbc_backward_reference(
    grad_output: Array, input: Array, weight: Array, bias: Array, pad: int, cube_math_type: int = KEEP
) -> tuple[Array, Array, Array]:
    g, x, w = cube_inputs(cube_math_type, grad_output, input, weight)
    grad_input, grad_weight = np.zeros(x.shape), np.zeros(w.shape)
    (taps,) = tap_ranges(g.shape[:1], x.shape[:1], w.shape[:1], (1,), (pad,), (1,))
    for k, (u, i) in enumerate(taps):
        grad_input[i] += g[u] @ w[k].T
        grad_weight[k] = np.tensordot(x[i], g[u], axes=((0, 1), (0, 1)))
    return grad_input, grad_weight, grad_output.astype(np.float64).sum(axis=(0, 1))


def conv_tbc_backward_terms(
    grad_output: Array, input: Array, weight: Array, bias: Array, pad: int, cube_math_type: int = KEEP
) -> tuple[Terms, Terms, Terms]:
    """The same sums over absolute values, and how many terms each has at most."""

    def sums(g: Array, x: Array, w: Array, unrounded: Array) -> tuple[Array, ...]:
        of_input, of_weight, _ = conv_tbc_backward_reference(g, x, w, bias, pad)
        return of_input, of_weight, unrounded.sum(axis=(0, 1))

    seen = cube_inputs(cube_math_type, grad_output, input, weight)
    of_input, of_weight, of_bias = sums_of_sizes(sums, *seen, grad_output.astype(np.float64))
    (taps, _, out_channels), (steps, batch, _) = weight.shape, grad_output.shape
    rows = (steps * batch,)
    return Terms(of_input, (taps * out_channels,)), Terms(of_weight, rows), Terms(of_bias, rows)


def conv_tbc_backward_case(
    time: int = 7,
    batch: int = 2,
    in_channels: int = 3,
    out_channels: int = 4,
    kernel: int = 3,
    pad: int = 0,
    cube_math_type: int = KEEP,
    dtype: DType = FLOAT32,
    device: Device = DEFAULT,
) -> Case:
    steps = time + 2 * pad + 1 - kernel
    if steps < 0:
        raise ValueError(f"the output would have {steps} steps")
    shapes = {
        "self": (steps, batch, out_channels),
        "input": (time, batch, in_channels),
        "weight": (kernel, in_channels, out_channels),
        "bias": (out_channels,),
        "gradInput": (time, batch, in_channels),
        "gradWeight": (kernel, in_channels, out_channels),
        "gradBias": (out_channels,),
    }
    tensors = {name: dense(dtype, shape, Format.ND) for name, shape in shapes.items()}
    return Case(conv_tbc_backward, {**tensors, "pad": pad, "cubeMathType": cube_math_type}, device)


def conv_tbc_backward_cases() -> Iterator[Case]:
    make = conv_tbc_backward_case
    for dtype in (FLOAT32, FLOAT16, BFLOAT16):
        yield make(pad=1, dtype=dtype)
        yield make(time=5, kernel=1, cube_math_type=1, dtype=dtype)
    yield make(pad=2, dtype=FLOAT64, device=CPU)
    yield make(pad=5).but("pad larger than the kernel")
    yield make(time=2, kernel=5, pad=2).but("kernel longer than the input")
    yield make(time=1, batch=1, in_channels=1, out_channels=1, kernel=1)
    yield make(cube_math_type=2)
    yield make(cube_math_type=3)
    yield make(cube_math_type=2, dtype=FLOAT16)
    yield from _views()
    on_cpu = partial(make, device=CPU)
    yield from (on_cpu(time=2), on_cpu(time=0, pad=1), on_cpu(kernel=0))
    yield from (on_cpu(batch=0), on_cpu(in_channels=0), on_cpu(out_channels=0))
    yield on_cpu(time=300, kernel=256).but("beyond the limits")
    yield on_cpu(time=2, kernel=1, pad=256).but("beyond the limits")


def _views() -> Iterator[Case]:
    plain = conv_tbc_backward_case(time=5, kernel=2, pad=1)
    x = plain.values["input"]
    yield plain.but("formats", input=x._replace(format=Format.NCL), gradBias=dense(FLOAT32, (4,), Format.NCL))
    yield plain.seen("broadcast self", self=((0, 1, 0), 3, None))
    yield plain.seen("reversed input", input=((-6, 3, -1), 26, None))
    yield plain.seen("batch first in memory", input=((3, 15, 1), 0, None))
    yield plain.seen("spread gradInput", gradInput=((13, 6, 2), 1, None))
    yield plain.seen("permuted gradWeight", gradWeight=((1, 2, -6), 20, None))


OUTPUT_STEPS_OF_SELF = Dim("self", 0) + Attr("pad") * 2 + 1 - Dim("weight", 0)

conv_tbc = Op(
    "aclnnConvTbc",
    family="ConvTbc",
    header="convolution",
    en="A convolution over time.",
    zh="时序卷积。",
    args=(
        tensor_in(
            "self",
            python="input",
            **SEQUENCE,
            en="The input: time, batch, input channels.",
            zh="输入：时间、批、输入通道。",
        ),
        WEIGHT,
        tensor_in("bias", **CHANNELS, en="What is added to each output channel.", zh="各输出通道的偏置。"),
        PAD,
        tensor_out(
            "output",
            **SEQUENCE,
            shape=(OUTPUT_STEPS_OF_SELF, Dim("self", 1), Dim("weight", 2)),
            dtype_like="self",
            contiguous_documented=True,
            en="The result: time, batch, output channels.",
            zh="输出：时间、批、输出通道。",
        ),
        CUBE_MATH_TYPE,
    ),
    rules=(
        same_dtype("self", "weight", "bias"),
        ATTRIBUTE_RULES,
        equal(Dim("self", 2), Dim("weight", 1)),
        equal(Dim("bias", 0), Dim("weight", 2)),
        between(OUTPUT_STEPS_OF_SELF, 0, stage=Stage.SHAPE),
        when(
            Limited(),
            between(Dim("weight", 0), 1, 255, stage=Stage.LIMIT),
            between(Dims("self"), 1, 2147483646, stage=Stage.LIMIT),
            between(Dims("weight"), 1, 2147483646, stage=Stage.LIMIT),
            between(OUTPUT_STEPS_OF_SELF, 1, stage=Stage.LIMIT),
        ),
    ),
)


def conv_tbc_reference(input: Array, weight: Array, bias: Array, pad: int, cube_math_type: int = KEEP) -> Array:
    x, w = cube_inputs(cube_math_type, input, weight)
    output = np.zeros((len(x) + 2 * pad + 1 - len(w), x.shape[1], w.shape[2])) + bias.astype(np.float64)
    (taps,) = tap_ranges(output.shape[:1], x.shape[:1], w.shape[:1], (1,), (pad,), (1,))
    for k, (u, i) in enumerate(taps):
        output[u] += x[i] @ w[k]
    return output


def conv_tbc_terms(input: Array, weight: Array, bias: Array, pad: int, cube_math_type: int = KEEP) -> Terms:
    """The same sum over absolute values, and how many terms it has at most."""

    def sums(x: Array, w: Array, b: Array) -> tuple[Array]:
        return (conv_tbc_reference(x, w, b, pad),)

    (total,) = sums_of_sizes(sums, *cube_inputs(cube_math_type, input, weight), bias.astype(np.float64))
    return Terms(total, (weight.shape[0] * weight.shape[1] + 1,))


@wraps(conv_tbc_backward_case)
def conv_tbc_case(*sizes: Any, **more: Any) -> Case:
    return _forward(conv_tbc_backward_case(*sizes, **more))


def _forward(back: Case) -> Case:
    values = {name: back.values[name] for name in ("weight", "bias", "pad", "cubeMathType")}
    return Case(
        conv_tbc, {**values, "self": back.values["input"], "output": back.values["self"]}, back.device, back.note
    )


def conv_tbc_cases() -> Iterator[Case]:
    """Those of the backward, with views of its own."""
    yield from (_forward(case) for case in conv_tbc_backward_cases() if "self" not in case.note)
    plain = conv_tbc_case(time=5, kernel=2, pad=1)
    yield plain.seen("broadcast bias", bias=((0,), 1, plain.values["bias"].storage))
    yield plain.seen("permuted output", output=((1, 7, -16), 60, None))


OPERATORS = (
    Definition(
        conv_tbc_backward,
        conv_tbc_backward_reference,
        conv_tbc_backward_terms,
        conv_tbc_backward_case,
        conv_tbc_backward_cases,
    ),
    Definition(conv_tbc, conv_tbc_reference, conv_tbc_terms, conv_tbc_case, conv_tbc_cases),
)
