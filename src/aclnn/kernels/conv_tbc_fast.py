"""The convolution over time as one of pictures, or, on oneDNN backwards, as matrix products (conv_tbc_products.py).

(time, batch, channels) is a picture of `time` rows and `batch` columns with the channels last, and the kernel is one
column wide: a two-dimensional convolution on exactly the layout that oneDNN computes in, and tiles read any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.kernels import convolution_forward_fast, convolution_on_tiles, jit, onednn, precedence
from aclnn.kernels.conv_tbc_products import NAMES, Execution, Plan, block_count
from aclnn.kernels.convolution import convolution_backward_numpy
from aclnn.kernels.convolution_fast import rounding_of
from aclnn.kernels.convolution_program import LAST
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel

FEW = 300_000  # products of a gradient: below, numpy takes less than loading oneDNN and making its primitives


def too_small(call: Call) -> str | None:
    products = call["self"].size * math.prod(call["weight"].shape[:2])
    return f"{products} products are fewer than {FEW}" if products < FEW else None


def gives_way(call: Call) -> str | None:
    return precedence.of_long_sums(call)


def _not_taken(call: Call, names: Sequence[str]) -> str | None:
    if call["self"].dtype not in jit.POINTER:
        return "it takes float32, float16 and bfloat16"
    return "a tensor is empty" if any(call[name].is_empty for name in names) else None


@kernel("aclnnConvTbcBackward", "tiles", engine="fast", too_small=too_small, gives_way=gives_way)
def conv_tbc_backward_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    if (why_not := _not_taken(call, NAMES)) is not None:
        return Refusal(why_not)
    gradient = _as_gradient(call)
    if (why_not := convolution_on_tiles.too_far(gradient)) is not None:
        return Refusal(why_not)
    exact, rounding = convolution_backward_numpy, rounding_of(gradient)
    try:
        plan = convolution_on_tiles.prepared_backward(gradient, threads, rounding, exact)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))

    def instantiate() -> Run:
        convolve = plan.instantiate()

        def run(
            workspace: Array | None, g: Array, x: Array, w: Array, bias: Array, gx: Array, gw: Array, gb: Array
        ) -> None:
            convolve(workspace, _picture(g), _picture(x), _kernel(w), _picture(gx), _kernel(gw), gb)

        return run

    return Prepared(instantiate, plan.workspace_size)


MOST_PRODUCTS = 20_000  # each is an object of oneDNN, made in phase 1: 2³¹ steps would be millions of them


def slab_products(call: Call) -> int:
    """How many products gradInput is made of."""
    (times, batch, _), taps = call["input"].shape, int(call["weight"].shape[0])
    return taps * block_count(times, batch)


@kernel("aclnnConvTbcBackward", "onednn", engine="fast", too_small=too_small)
def conv_tbc_backward_fast(call: Call, threads: int) -> Prepared | Refusal:
    if (why_not := _not_taken(call, NAMES)) is not None:
        return Refusal(why_not)
    if (products := slab_products(call)) > MOST_PRODUCTS:
        return Refusal(f"its {products} products over slabs are more than {MOST_PRODUCTS}")
    try:
        plan = Plan(call, threads)
        size = plan.slabs().program.arena.size
    except (onednn.OneDnnError, jit.NoNativeCodeError) as reason:
        return Refusal(str(reason))
    return Prepared(lambda: Execution(plan).run, size)


def too_small_forward(call: Call) -> str | None:
    products = call["output"].size * math.prod(call["weight"].shape[:2])
    return f"{products} products are fewer than {FEW}" if products < FEW else None


FORWARD = ("self", "weight", "output")


def forward_gives_way(call: Call) -> str | None:
    return precedence.of_convolution(_as_forward_convolution(call))


@kernel("aclnnConvTbc", "tiles", engine="fast", too_small=too_small_forward, gives_way=forward_gives_way)
def conv_tbc_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    return _forward(call, threads, convolution_forward_fast.convolution_on_tiles_fast)


@kernel("aclnnConvTbc", "onednn", engine="fast", too_small=too_small_forward)
def conv_tbc_fast(call: Call, threads: int) -> Prepared | Refusal:
    return _forward(call, threads, lambda c, n: convolution_forward_fast.prepared(c, n, (LAST, LAST)))


def _forward(call: Call, threads: int, prepare: Callable[[Call, int], Prepared | Refusal]) -> Prepared | Refusal:
    """As a convolution of pictures."""
    if (reason := _not_taken(call, FORWARD)) is not None:
        return Refusal(reason)
    plan = prepare(_as_forward_convolution(call), threads)
    if isinstance(plan, Refusal):
        return plan

    def instantiate() -> Run:
        convolve = plan.instantiate()

        def run(workspace: Array | None, input: Array, weight: Array, bias: Array, output: Array) -> None:
            convolve(workspace, _picture(input), _kernel(weight), bias, _picture(output))

        return run

    return Prepared(instantiate, plan.workspace_size)


def _picture(array: Array) -> Array:
    """(time, batch, channels) as (1, channels, time, batch)."""
    return np.transpose(array, (2, 0, 1))[np.newaxis]


def _kernel(array: Array) -> Array:
    """(taps, channels in, channels out) as (channels out, channels in, taps, 1)."""
    return np.transpose(array, (2, 1, 0))[..., np.newaxis]


def _as_forward_convolution(call: Call) -> Call:
    tensors = {"input": _picture_of(call["self"]), "bias": call["bias"], "output": _picture_of(call["output"])}
    return Call(_attributes(call) | tensors, call.product)


def _as_gradient(call: Call) -> Call:
    """The gradients as those of a convolution of pictures."""
    pictures = {"gradOutput": "self", "input": "input", "gradInput": "gradInput"}
    tensors = {name: _picture_of(call[here]) for name, here in pictures.items()}
    tensors |= {"gradWeight": _kernel_of(call["gradWeight"]), "gradBias": call["gradBias"]}
    return Call(_attributes(call) | tensors | {"outputMask": (True, True, True)}, call.product)


def _attributes(call: Call) -> dict[str, Any]:
    return {
        "weight": _kernel_of(call["weight"]),
        "stride": (1, 1),
        "padding": (call["pad"], 0),
        "dilation": (1, 1),
        "transposed": False,
        "groups": 1,
        "cubeMathType": call["cubeMathType"],
    }


def _picture_of(spec: TensorSpec) -> TensorSpec:
    (t, b, c), (per_t, per_b, per_c) = spec.shape, spec.strides
    return spec._replace(shape=(1, c, t, b), strides=(spec.size, per_c, per_t, per_b))


def _kernel_of(spec: TensorSpec) -> TensorSpec:
    (taps, in_, out), (per_tap, per_in, per_out) = spec.shape, spec.strides
    return spec._replace(shape=(out, in_, taps, 1), strides=(per_out, per_in, per_tap, 1))
