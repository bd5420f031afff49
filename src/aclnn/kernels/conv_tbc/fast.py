"""The convolution over time as one of pictures.

(time, batch, channels) is a picture of `time` rows and `batch` columns with the channels last, and the kernel is one
column wide. Tiles read any strides, so that nothing is copied for it. A batch of one is a row of `time` positions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.kernels.conv_tbc.numpy import conv_tbc_backward_numpy, conv_tbc_numpy
from aclnn.kernels.convolution import bfloat16_rule, fast
from aclnn.kernels.convolution.call import FORWARD, AskedConvolution
from aclnn.kernels.registry import Prepared, Refusal, kernel

BACKWARD = ("gradOutput", "input", "weight", "bias", "gradInput", "gradWeight", "gradBias")


def gives_way(call: Call) -> str | None:
    return bfloat16_rule.is_ahead(_asked(call).call)


@kernel("aclnnConvTbcBackward", "tiles", engine="fast", gives_way=gives_way)
@kernel("aclnnConvTbc", "tiles", engine="fast", gives_way=gives_way)
def conv_tbc_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    return fast.tiles(_asked(call), threads)


@kernel("aclnnConvTbcBackward", "onednn", engine="fast")
@kernel("aclnnConvTbc", "onednn", engine="fast")
def conv_tbc_onednn(call: Call, threads: int) -> Prepared | Refusal:
    return fast.onednn(_asked(call), threads)


def _asked(call: Call) -> AskedConvolution:
    """The same tensors, seen as pictures: they begin where they did."""
    if "output" in call.values:
        return AskedConvolution(_as_forward(call), FORWARD, partial(conv_tbc_numpy, call))
    return AskedConvolution(_as_gradient(call), BACKWARD, partial(conv_tbc_backward_numpy, call))


def _is_row(call: Call) -> bool:
    batch: int = call["self"].shape[1]
    return batch == 1


def _as_forward(call: Call) -> Call:
    tensors = {"input": _picture_of(call["self"]), "bias": call["bias"], "output": _picture_of(call["output"])}
    return Call(_attributes(call) | tensors, call.device)


def _as_gradient(call: Call) -> Call:
    """The gradients as those of a convolution of pictures."""
    pictures = {"gradOutput": "self", "input": "input", "gradInput": "gradInput"}
    tensors = {name: _picture_of(call[here]) for name, here in pictures.items()}
    tensors |= {"gradWeight": _kernel_of(call["gradWeight"], 1 if _is_row(call) else 2), "gradBias": call["gradBias"]}
    return Call(_attributes(call) | tensors | {"outputMask": (True, True, True)}, call.device)


def _attributes(call: Call) -> dict[str, Any]:
    axes = 1 if _is_row(call) else 2
    return {
        "weight": _kernel_of(call["weight"], axes),
        "stride": (1,) * axes,
        "padding": (call["pad"], 0)[:axes],
        "dilation": (1,) * axes,
        "transposed": False,
        "groups": 1,
        "cubeMathType": call["cubeMathType"],
    }


def _picture_of(spec: TensorSpec) -> TensorSpec:
    (t, b, c), (per_t, per_b, per_c) = spec.shape, spec.strides
    axes = 3 if b == 1 else 4
    return spec._replace(shape=(1, c, t, b)[:axes], strides=(spec.size, per_c, per_t, per_b)[:axes])


def _kernel_of(spec: TensorSpec, axes: int) -> TensorSpec:
    (taps, in_, out), (per_tap, per_in, per_out) = spec.shape, spec.strides
    return spec._replace(shape=(out, in_, taps, 1)[: 2 + axes], strides=(per_out, per_in, per_tap, 1)[: 2 + axes])
