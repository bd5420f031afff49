"""The convolution over time as one of pictures.

(time, batch, channels) is a picture of `time` rows and `batch` columns with the channels last, and the kernel is one
column wide. Tiles read any strides, so that nothing is copied for it. A batch of one is a row of `time` positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.kernels.convolution import bfloat16
from aclnn.kernels.convolution import fast as convolution_fast
from aclnn.kernels.convolution.call import FEW
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel

Prepare = Callable[[Call, int], Prepared | Refusal]


def too_small(call: Call) -> str | None:
    result = call["output"] if "output" in call.values else call["self"]
    products = result.size * math.prod(call["weight"].shape[:2])
    return f"{products} products are fewer than {FEW}" if products < FEW else None


def gives_way(call: Call) -> str | None:
    return bfloat16.is_ahead(_as_forward(call) if "output" in call.values else _as_gradient(call))


@kernel("aclnnConvTbcBackward", "tiles", engine="fast", too_small=too_small, gives_way=gives_way)
def conv_tbc_backward_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    return _backward(call, threads, convolution_fast.convolution_backward_on_tiles)


@kernel("aclnnConvTbcBackward", "onednn", engine="fast", too_small=too_small)
def conv_tbc_backward_onednn(call: Call, threads: int) -> Prepared | Refusal:
    return _backward(call, threads, convolution_fast.convolution_backward_onednn)


@kernel("aclnnConvTbc", "tiles", engine="fast", too_small=too_small, gives_way=gives_way)
def conv_tbc_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    return _forward(call, threads, convolution_fast.convolution_on_tiles_fast)


@kernel("aclnnConvTbc", "onednn", engine="fast", too_small=too_small)
def conv_tbc_onednn(call: Call, threads: int) -> Prepared | Refusal:
    return _forward(call, threads, convolution_fast.convolution_onednn_fast)


def _backward(call: Call, threads: int, prepare: Prepare) -> Prepared | Refusal:
    plan = prepare(_as_gradient(call), threads)
    if isinstance(plan, Refusal):
        return plan

    def instantiate() -> Run:
        convolve, kernel = plan.instantiate(), _kernel_view(call)

        def run(
            workspace: Array | None, g: Array, x: Array, w: Array, bias: Array, gx: Array, gw: Array, gb: Array
        ) -> None:
            convolve(workspace, _picture(g), _picture(x), kernel(w), _picture(gx), kernel(gw), gb)

        return run

    return Prepared(instantiate, plan.workspace_size, plan.is_launches)


def _forward(call: Call, threads: int, prepare: Prepare) -> Prepared | Refusal:
    plan = prepare(_as_forward(call), threads)
    if isinstance(plan, Refusal):
        return plan

    def instantiate() -> Run:
        convolve, kernel = plan.instantiate(), _kernel_view(call)

        def run(workspace: Array | None, input: Array, weight: Array, bias: Array, output: Array) -> None:
            convolve(workspace, _picture(input), kernel(weight), bias, _picture(output))

        return run

    return Prepared(instantiate, plan.workspace_size, plan.is_launches)


def _is_row(call: Call) -> bool:
    batch: int = call["self"].shape[1]
    return batch == 1


def _picture(array: Array) -> Array:
    """(time, batch, channels) as (1, channels, time, batch), or (1, channels, time) of a batch of one."""
    picture = np.transpose(array, (2, 0, 1))[np.newaxis]
    return picture[..., 0] if picture.shape[3] == 1 else picture


def _kernel_view(call: Call) -> Callable[[Array], Array]:
    """What makes (channels out, channels in, taps, 1) of (taps, channels in, channels out)."""
    if _is_row(call):
        return lambda array: np.transpose(array, (2, 1, 0))
    return lambda array: np.transpose(array, (2, 1, 0))[..., np.newaxis]


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
