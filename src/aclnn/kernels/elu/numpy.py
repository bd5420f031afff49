"""ELU kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aclnn.base.geometry import Array
from aclnn.contract.call import Call
from aclnn.kernels.registry import Run, numpy_kernel


@numpy_kernel("aclnnEluBackward")
def elu_backward_numpy(call: Call) -> Run:
    """Whole-array arithmetic in float32 (float64 for float64 tensors), on one array: tiny calls are many."""
    compute = call["gradOutput"].dtype.compute
    wide = compute.numpy
    alpha, scale, input_scale = (wide.type(call[n].rounded_to(compute)) for n in ("alpha", "scale", "inputScale"))
    is_result, zero = call["isResult"], wide.type(0)
    with np.errstate(all="ignore"):
        scaled_alpha = alpha * scale if is_result else input_scale * alpha * scale
    scales_input, scales_slope = input_scale != 1, scaled_alpha != 1 and not is_result
    # where x > 0 exp gets 0: the scaled alpha times 1 is then the slope there, and no second pass is needed
    one_slope = not is_result and scaled_alpha == scale and np.isfinite(input_scale)
    given, wanted = call["gradOutput"].dtype.numpy, call["gradInput"].dtype.numpy
    one_dtype = given == wanted == wide

    def run(workspace: Array | None, grad_output: Array, self_or_result: Array, grad_input: Array) -> None:
        x = self_or_result if one_dtype else self_or_result.astype(wide)
        slope = x if one_slope and not one_dtype else np.empty(x.shape, wide)
        if is_result:
            np.add(x, scaled_alpha, slope)
        else:
            np.minimum(x, zero, out=slope)  # where x > 0 the slope is scale, and exp must not overflow
        if scales_input:
            np.multiply(slope, input_scale, slope)
        if not is_result:
            np.exp(slope, slope)
        if scales_slope:
            np.multiply(slope, scaled_alpha, slope)
        if not one_slope:
            np.copyto(slope, scale, where=x > zero)
        if one_dtype:
            np.multiply(grad_output, slope, grad_input)
        else:
            np.multiply(grad_output.astype(wide), slope, slope)
            grad_input[...] = slope if given == wanted else slope.astype(given)

    return run


@numpy_kernel("aclnnElu")
def elu_numpy(call: Call) -> Run:
    elu = _forward(call, "self")

    def run(workspace: Array | None, input: Array, out: Array) -> None:
        out[...] = elu(input).astype(input.dtype, copy=False)

    return run


@numpy_kernel("aclnnInplaceElu")
def elu_in_place_numpy(call: Call) -> Run:
    elu = _forward(call, "selfRef")

    def run(workspace: Array | None, input: Array) -> None:
        input[...] = elu(input)

    return run


def _forward(call: Call, name: str) -> Callable[[Array], Array]:
    """ELU of a whole array, in float32 (float64 for float64 tensors)."""
    compute = call[name].dtype.compute
    wide = compute.numpy
    alpha, scale, input_scale = (wide.type(call[n].rounded_to(compute)) for n in ("alpha", "scale", "inputScale"))

    def elu(input: Array) -> Array:
        x = input.astype(wide, copy=False)
        y: Array = np.where(x > 0, scale * x, (alpha * scale) * np.expm1(np.where(x > 0, 0, x) * input_scale))
        return y

    return elu
