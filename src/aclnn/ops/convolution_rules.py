"""What the contracts of both directions of a convolution share: conditions, formulas of sizes, arguments, rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from aclnn.base.device import CPU
from aclnn.base.format import Format
from aclnn.base.rounding import KEEP
from aclnn.base.taps import output_size, padding_ends
from aclnn.contract.builders import (
    Rules,
    at_least,
    between,
    each_below,
    equal,
    flatten,
    length,
    multiple,
    one_of,
    when,
)
from aclnn.contract.call import Call
from aclnn.contract.cases import Case
from aclnn.contract.expr import At, Attr, Dim, Dims, Expr, Formula, Is, Limited, Not, PlaneOf, Rank
from aclnn.contract.model import flag, int_array, number, tensor_in
from aclnn.contract.stage import Stage

TRANSPOSED = Attr("transposed")
PLAIN = Not(TRANSPOSED)
THREE_D = Is(Rank("input"), (5,))
AXES = Rank("input") - 2


def _output_size(call: Call) -> tuple[int, ...]:
    attributes = (call[n] for n in ("stride", "padding", "dilation", "transposed", "outputPadding"))
    return output_size(call["input"].shape[2:], call["weight"].shape[2:], *attributes)


def _room_for_the_kernel(call: Call) -> tuple[int, ...]:
    sizes, kernel = call["input"].shape[2:], call["weight"].shape[2:]
    axes = zip(sizes, padding_ends(call["padding"], len(sizes)), kernel, call["dilation"], strict=True)
    return tuple(n + sum(ends) - (k - 1) * d - 1 for n, ends, k, d in axes)


def _has_batch_and_channels(call: Call) -> bool:
    return 0 not in call["input"].shape[:2]


SIZES_READ = ("input", "weight", "stride", "padding", "dilation", "transposed", "outputPadding")
OUTPUT_SIZE = Formula(
    _output_size,
    SIZES_READ,
    "the output size floor((input size + padding of both ends − dilation × (kernel − 1) − 1) ÷ stride) + 1",
    "输出大小floor((输入大小 + 两端padding − dilation × (卷积核 − 1) − 1) ÷ stride) + 1",
)
TRANSPOSED_OUTPUT_SIZE = Formula(
    _output_size,
    SIZES_READ,
    "the output size (input size − 1) × stride − padding of both ends + dilation × (kernel − 1) + outputPadding + 1",
    "输出大小(输入大小 − 1) × stride − 两端padding + dilation × (卷积核 − 1) + outputPadding + 1",
)
ROOM_FOR_THE_KERNEL = Formula(
    _room_for_the_kernel,
    SIZES_READ[:5],
    "the padded input size minus the dilated kernel size, dilation × (kernel − 1) + 1,",
    "填充后的输入大小减去膨胀后的卷积核大小dilation × (卷积核 − 1) + 1",
)
HAS_BATCH_AND_CHANNELS = Formula(
    _has_batch_and_channels,
    ("input",),
    "neither input.shape[0] nor input.shape[1] is 0",
    "input.shape[0]与input.shape[1]均不为0",
)

TENSOR = {
    "ranks": (3, 4, 5),
    "formats": ((3, (Format.NCL, Format.ND)), (4, (Format.NCHW,)), (5, (Format.NCDHW, Format.ND))),
}
BIAS_FORMATS = ((1, (Format.ND, Format.NCL, Format.NCHW, Format.NCDHW)),)  # real callers tag it as they tag the rest

WEIGHT = tensor_in(
    "weight",
    **TENSOR,
    en="The kernel: output channels, input channels per group, spatial axes; transposed: input channels, "
    "output channels per group, spatial axes.",
    zh="卷积核：输出通道、每组输入通道、空间轴；转置卷积为输入通道、每组输出通道、空间轴。",
)
ATTRIBUTES = (
    int_array("stride", python_axes=AXES, en="The step of the kernel, per axis.", zh="各轴上卷积核的步长。"),
    int_array(
        "padding",
        python_axes=AXES,
        en="Padding of both ends, per axis; in 2-D also up, down, left, right.",
        zh="各轴两端的填充；2D时也可为上、下、左、右四个值。",
    ),
    int_array("dilation", python_axes=AXES, en="The distance of kernel taps, per axis.", zh="各轴上卷积核元素的间距。"),
    flag("transposed", en="Whether the convolution is a transposed one.", zh="是否为转置卷积。"),
    int_array(
        "outputPadding",
        python_axes=AXES,
        en="What is added to one end of the output of a transposed convolution, per axis.",
        zh="转置卷积输出各轴单端增加的大小。",
    ),
)
CUBE_MATH_TYPE = number(
    "cubeMathType",
    "int8",
    default=KEEP,
    en="How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.",
    zh="float32输入的预舍入方式：0不舍入，1和3舍入为HF32，2舍入为float16。",
)


def attribute_rules(computed_as: Expr) -> Rules:
    return flatten(
        (
            [length(name, AXES, stage=Stage.ATTRIBUTE) for name in ("stride", "dilation", "outputPadding")],
            when(Is(Rank("input"), (4,)), length("padding", 2, 4, stage=Stage.ATTRIBUTE)),
            when(Is(Rank("input"), (3, 5)), length("padding", AXES, stage=Stage.ATTRIBUTE)),
            at_least("stride", 1),
            at_least("padding", 0),
            at_least("dilation", 1),
            at_least("groups", 1),
            when(Limited(), between("groups", 1, 65535)),
            when(PLAIN, between("outputPadding", 0, 0)),
            when(TRANSPOSED, each_below("outputPadding", "stride")),
            one_of("cubeMathType", 0, 1, 2, 3),
            when(Is(computed_as, ("bfloat16",)), one_of("cubeMathType", 0, 1)),
        )
    )


def emptiness_rules(*tensors: str) -> Rules:
    """What may be empty on NPU products: the batch, the channels of a plain convolution, and then other sizes too."""
    full = [between(Dims(name), 1, stage=Stage.SHAPE) for name in tensors]
    return when(
        Limited(),
        between(Dim("weight", 0), 1, stage=Stage.SHAPE),
        when(HAS_BATCH_AND_CHANNELS, *full),
        when(PLAIN, between(ROOM_FOR_THE_KERNEL, 0, stage=Stage.SHAPE)),
    )


def channel_rules() -> Rules:
    return (
        *multiple(Dim("weight", 0), Attr("groups")),
        *when(PLAIN, equal(Dim("input", 1), Dim("weight", 1) * Attr("groups"))),
        *when(TRANSPOSED, equal(Dim("input", 1), Dim("weight", 0))),
    )


LIMITS = when(
    Limited(),
    between(PlaneOf(Dims("weight", 2)), None, 255, stage=Stage.LIMIT),
    between(PlaneOf(Attr("padding")), 0, 255, stage=Stage.LIMIT),
    when(PLAIN, when(THREE_D, between(PlaneOf(Attr("stride")), 1, 63, stage=Stage.LIMIT))),
    when(PLAIN, between("dilation", 1, 255, stage=Stage.LIMIT)),
    when(TRANSPOSED, between(PlaneOf(Attr("stride")), 1, 63, stage=Stage.LIMIT)),
    when(TRANSPOSED, between(PlaneOf(Attr("dilation")), 1, 255, stage=Stage.LIMIT)),
    [
        when(TRANSPOSED, when(THREE_D, between(At(name, 0), None, 10**6, stage=Stage.LIMIT)))
        for name in ("stride", "padding", "dilation")
    ],
)


def beyond_the_limits(make: Callable[..., Case]) -> Iterator[Case]:
    """What only `cpu` takes: each is refused elsewhere, by one of the limits."""
    on_cpu = partial(make, device=CPU)
    yield on_cpu(1, size=257, kernel=256)
    yield on_cpu(1, size=3, padding=256)
    yield on_cpu(3, size=1, kernel=1, stride=64)
    yield on_cpu(1, size=3, kernel=1, dilation=256)
    yield on_cpu(1, size=2, stride=64, transposed=True)
    yield on_cpu(1, size=2, kernel=2, dilation=256, transposed=True)
    deep = partial(on_cpu, 3, size=1, kernel=(2, 1, 1), transposed=True)
    half, far = 5 * 10**5, 10**6 + 1
    yield deep(stride=(far, 1, 1))
    yield deep(padding=(far, 0, 0), dilation=(2 * far, 1, 1))
    yield deep(padding=(half, 0, 0), dilation=(far, 1, 1))
