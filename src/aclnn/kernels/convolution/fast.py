"""Convolutions on compiled kernels, forwards and backwards: direct where there are few channels, tiles, and oneDNN."""

from __future__ import annotations

from functools import partial

from aclnn.contract.call import Call
from aclnn.kernels.convolution import bfloat16_rule, direct, on_onednn, on_tiles
from aclnn.kernels.convolution.call import BACKWARD, FORWARD, AskedConvolution, not_taken, wanted
from aclnn.kernels.convolution.numpy import convolution_backward_numpy, convolution_numpy
from aclnn.kernels.native import jit, launch_sequence
from aclnn.kernels.registry import Prepared, Refusal, kernel
from aclnn.kernels.shared import sums


def tiles(asked: AskedConvolution, threads: int) -> Prepared | Refusal:
    if (reason := not_taken(asked.call) or on_tiles.too_far(asked.call)) is not None:
        return Refusal(reason)
    try:
        return on_tiles.prepared(asked, threads)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))


def onednn(asked: AskedConvolution, threads: int) -> Prepared | Refusal:
    """With tiles, or what they refuse for, beside it: for runs that meet NaN or Inf."""
    if (reason := not_taken(asked.call) or on_onednn.refused(asked.call)) is not None:
        return Refusal(reason)
    exact = tiles(asked, threads)
    return on_onednn.prepared(asked, threads, Prepared(asked.exact) if isinstance(exact, Refusal) else exact)


def gives_way(call: Call) -> str | None:
    return bfloat16_rule.is_ahead(call)


def _asked(call: Call) -> AskedConvolution:
    if "gradOutput" in call.values:
        return AskedConvolution(call, BACKWARD, partial(convolution_backward_numpy, call))
    return AskedConvolution(call, FORWARD, partial(convolution_numpy, call))


@kernel("aclnnConvolutionBackward", "direct", engine="fast")
@kernel("aclnnConvolution", "direct", engine="fast")
def convolution_direct(call: Call, threads: int) -> Prepared | Refusal:
    return direct.prepared(_asked(call), threads)


@kernel("aclnnConvolutionBackward", "tiles", "fast", too_small=on_tiles.not_worth_it, gives_way=gives_way)
@kernel("aclnnConvolution", "tiles", "fast", too_small=on_tiles.not_worth_it, gives_way=gives_way)
def convolution_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    return tiles(_asked(call), threads)


@kernel("aclnnConvolutionBackward", "onednn", engine="fast")
@kernel("aclnnConvolution", "onednn", engine="fast")
def convolution_onednn(call: Call, threads: int) -> Prepared | Refusal:
    return onednn(_asked(call), threads)


@kernel("aclnnConvolutionBackward", "numba", engine="fast")
def convolution_bias_fast(call: Call, threads: int) -> Prepared | Refusal:
    """gradBias alone."""
    grad_output = call["gradOutput"]
    if wanted(call) or grad_output.dtype not in jit.POINTER or grad_output.is_empty:
        return Refusal("it computes gradBias alone, of float32, float16 or bfloat16")
    try:
        bias = sums.plan(grad_output, 1, call["gradBias"], threads)
        return launch_sequence.prepared([bias.step("gradOutput", "gradBias")], BACKWARD, 0)
    except jit.NoNativeCodeError as reason:
        return Refusal(str(reason))
