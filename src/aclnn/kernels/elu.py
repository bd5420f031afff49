"""ELU kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aclnn.base.geometry import Array
from aclnn.contract.call import Call
from aclnn.kernels.registry import Run, numpy_kernel


@numpy_kernel("aclnnEluBackward")
def elu_backward_numpy(call: Call) -> Run:
    """Whole-array arithmetic in float32 (float64 for float64 tensors)."""
    compute = call["gradOutput"].dtype.compute
    wide = compute.numpy
    alpha, scale, input_scale = (wide.type(call[n].rounded_to(compute)) for n in ("alpha", "scale", "inputScale"))
    is_result = call["isResult"]

    def run(workspace: Array | None, grad_output: Array, self_or_result: Array, grad_input: Array) -> None:
        g, x = grad_output.astype(wide, copy=False), self_or_result.astype(wide, copy=False)
        with np.errstate(all="ignore"):
            if is_result:
                slope = input_scale * (x + alpha * scale)
            else:
                slope = (input_scale * alpha * scale) * np.exp(np.where(x > 0, 0, x) * input_scale)
            slope = np.where(x > 0, scale, slope)
            grad_input[...] = (g * slope).astype(grad_output.dtype, copy=False)

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
        with np.errstate(all="ignore"):
            y: Array = np.where(x > 0, scale * x, (alpha * scale) * np.expm1(np.where(x > 0, 0, x) * input_scale))
        return y

    return elu
