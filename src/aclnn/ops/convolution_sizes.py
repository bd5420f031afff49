"""What the contracts of convolutions say of sizes: conditions and named formulas."""

from __future__ import annotations

from aclnn.base.taps import output_size, padding_ends
from aclnn.contract.call import Call
from aclnn.contract.expr import Attr, Formula, Is, Not, Rank

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
