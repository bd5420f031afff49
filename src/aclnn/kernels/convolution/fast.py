"""Convolutions on compiled kernels, forwards and backwards: direct where there are few channels, tiles, and oneDNN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aclnn.base.geometry import Array
from aclnn.contract.call import Call
from aclnn.kernels.convolution import bfloat16, on_tiles
from aclnn.kernels.convolution import direct as direct  # whose kernels are asked first
from aclnn.kernels.convolution.call import as_gradient, forward_not_taken, not_taken, rounding_of, too_small, wanted
from aclnn.kernels.convolution.numpy import convolution_backward_numpy, convolution_numpy
from aclnn.kernels.native import jit
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel
from aclnn.kernels.shared import sums

Prepare = Callable[[Call, int], Prepared | Refusal]


def gives_way(call: Call) -> str | None:
    return bfloat16.is_ahead(call)


@kernel("aclnnConvolutionBackward", "tiles", "fast", too_small=on_tiles.not_worth_it, gives_way=gives_way)
def convolution_backward_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    if (reason := not_taken(call) or on_tiles.too_far(call)) is not None:
        return Refusal(reason)
    try:
        return on_tiles.prepared_backward(call, threads, rounding_of(call), convolution_backward_numpy)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))


@kernel("aclnnConvolution", "tiles", "fast", too_small=on_tiles.not_worth_it, gives_way=gives_way)
def convolution_on_tiles_fast(call: Call, threads: int) -> Prepared | Refusal:
    if (reason := forward_not_taken(call) or on_tiles.too_far(call)) is not None:
        return Refusal(reason)
    rounding = rounding_of(call)
    try:
        return on_tiles.prepared_forward(call, as_gradient(call), threads, rounding, convolution_numpy)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))


@kernel("aclnnConvolutionBackward", "onednn", engine="fast", too_small=too_small)
def convolution_backward_onednn(call: Call, threads: int) -> Prepared | Refusal:
    return bfloat16.backward(call, threads, _exact(convolution_backward_on_tiles, convolution_backward_numpy))


@kernel("aclnnConvolution", "onednn", engine="fast", too_small=too_small)
def convolution_onednn_fast(call: Call, threads: int) -> Prepared | Refusal:
    return bfloat16.forward(call, threads, _exact(convolution_on_tiles_fast, convolution_numpy))


def _exact(tiles: Prepare, numpy: Callable[[Call], Run]) -> Callable[[Call, int], Prepared]:
    """Tiles, or numpy for what they refuse: neither multiplies what is not there."""

    def prepare(call: Call, threads: int) -> Prepared:
        planned = tiles(call, threads)
        return Prepared(lambda: numpy(call)) if isinstance(planned, Refusal) else planned

    return prepare


@kernel("aclnnConvolutionBackward", "numba", engine="fast", too_small=too_small)
def convolution_bias_fast(call: Call, threads: int) -> Prepared | Refusal:
    """gradBias alone."""
    grad_output = call["gradOutput"]
    if wanted(call) or grad_output.dtype not in jit.POINTER or grad_output.is_empty:
        return Refusal("it computes gradBias alone, of float32, float16 or bfloat16")
    try:
        bias = sums.plan(grad_output, 1, call["gradBias"], threads)
    except jit.NoNativeCodeError as reason:
        return Refusal(str(reason))

    def instantiate() -> Run:
        add = bias.adder()

        def run(workspace: Array | None, grad_output: Array, *rest: Any) -> None:
            add(grad_output, rest[-1])

        return run

    return Prepared(instantiate, is_launches=True)
