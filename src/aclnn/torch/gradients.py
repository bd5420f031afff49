"""What autograd does with each forward operator: which tensors it keeps, and the backward operator it calls.

A gradient is computed for the product and on the engine that its forward ran under. The backward operators have no
derivative of their own, and say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from aclnn import ops
from aclnn.base.status import invalid
from aclnn.contract.model import Op
from aclnn.runtime import settings
from aclnn.torch import direct
from aclnn.torch.library import NAMESPACE, computation, library

Context = Any
Grad = Any  # a tensor, or None where nothing depends on that result


def register_all() -> None:
    _register("elu", _keep_for_elu, _elu)
    library.impl("elu_", _elu_in_place, "Autograd")
    _register("convolution", _keep_for_convolution, _convolution)
    _register("conv_tbc", _keep_for_conv_tbc, _conv_tbc)
    _register("thnn_fused_lstm_cell", _keep_for_cell, _cell)
    _register("lstm", _keep_for_lstm, _lstm)
    for op in ops.all_ops():
        if op.name.endswith("Backward"):
            _register(op.python, lambda ctx, *rest, **more: None, _refusal(op))


def _register(name: str, keep: Callable[..., None], backward: Callable[..., Any]) -> None:
    """Gives an operator its derivative. `keep(ctx, inputs, output)` saves what `backward(ctx, *grads)` needs."""

    def setup(ctx: Context, inputs: Any, output: Any, keyword_only_inputs: Any = None) -> None:
        ctx.product, ctx.engine = settings.current_product(), settings.current_engine()
        keep(ctx, inputs, output, **({} if keyword_only_inputs is None else keyword_only_inputs))

    def run(ctx: Context, *grads: Any) -> Any:
        if (settings.current_product(), settings.current_engine()) == (ctx.product, ctx.engine):
            return backward(ctx, *grads)
        with settings.product(ctx.product), settings.engine(ctx.engine):
            return backward(ctx, *grads)

    torch.library.register_autograd(f"{NAMESPACE}::{name}", run, setup_context=setup, lib=library)
    _shorten(name, setup, run)
    if name == "lstm":
        direct.derive_lstm(setup, run)
    elif not name.endswith("_backward"):
        direct.derive(name, setup, run)


def _shorten(name: str, setup: Callable[..., None], run: Callable[..., Any]) -> None:
    """Puts a kernel before what register_autograd made, for CPU tensors, that calls the operator at once where it may.
    Where PyTorch has other names than these, calls take the way that it made."""
    try:
        from torch._library.autograd import Info, make_autograd_impl

        derived = make_autograd_impl(getattr(torch.ops.aclnn, name).default, Info(run, setup))
        kernel = direct.below_autograd(computation(ops.find(name)), derived)
        library.impl(name, kernel, "AutogradCPU", with_keyset=True)
    except (ImportError, AttributeError, TypeError):
        return


def _refusal(op: Op) -> Callable[..., Any]:
    def refuse(ctx: Context, *grads: Grad) -> Any:
        raise invalid(f"{op.name} has no derivative: double backward (create_graph=True) is not supported.")

    return refuse


def _keep_for_elu(ctx: Context, inputs: Any, output: torch.Tensor) -> None:
    input, *ctx.scalars = inputs
    ctx.save_for_backward(input)


def _elu(ctx: Context, grad: torch.Tensor) -> tuple[Grad, ...]:
    (input,) = ctx.saved_tensors
    return direct.call("elu_backward", (grad, input), (grad, *ctx.scalars, False, input)), None, None, None


def _elu_in_place(input: torch.Tensor, *scalars: float) -> None:
    """The gradient needs the old input, so with autograd "in place" is a copy back."""
    if torch.is_grad_enabled() and input.requires_grad:
        input.copy_(torch.ops.aclnn.elu.default(input.clone(), *scalars))
    else:
        with torch._C._AutoDispatchBelowAutograd():
            torch.ops.aclnn.elu_.default(input, *scalars)


def _keep_for_convolution(ctx: Context, inputs: Any, output: torch.Tensor) -> None:
    input, weight, bias, *ctx.attributes, ctx.cube_math_type = inputs
    ctx.bias_sizes = None if bias is None else list(bias.shape)
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.save_for_backward(input, weight)


def _convolution(ctx: Context, grad: torch.Tensor) -> tuple[Grad, ...]:
    input, weight = ctx.saved_tensors
    mask = list(ctx.needs_input_grad[:3])
    grad_input, grad_weight, grad_bias = direct.call(
        "convolution_backward",
        (grad, input, weight),
        (grad, input, weight, ctx.bias_sizes if mask[2] else None, *ctx.attributes, mask, ctx.cube_math_type),
    )
    grad_bias = None if grad_bias is None else grad_bias.to(ctx.bias_dtype)
    return grad_input, grad_weight, grad_bias, *(None,) * 7


def _keep_for_conv_tbc(ctx: Context, inputs: Any, output: torch.Tensor) -> None:
    input, weight, bias, ctx.pad, ctx.cube_math_type = inputs
    ctx.save_for_backward(input, weight, bias)


def _conv_tbc(ctx: Context, grad: torch.Tensor) -> tuple[Grad, ...]:
    tensors = (grad, *ctx.saved_tensors)
    found = direct.call("conv_tbc_backward", tensors, (*tensors, ctx.pad, ctx.cube_math_type))
    return *found, None, None


def _keep_for_cell(ctx: Context, inputs: Any, output: tuple[torch.Tensor, ...]) -> None:
    _, _, cx, input_bias, _ = inputs
    _, cy, storage = output
    ctx.has_bias = input_bias is not None
    ctx.save_for_backward(cx, cy, storage)
    ctx.mark_non_differentiable(storage)
    ctx.set_materialize_grads(False)


def _cell(ctx: Context, grad_hy: Grad, grad_cy: Grad, of_storage: None) -> tuple[Grad, ...]:
    tensors = (grad_hy, grad_cy, *ctx.saved_tensors)
    grad_gates, grad_cx, grad_bias = direct.call("thnn_fused_lstm_cell_backward", tensors, (*tensors, ctx.has_bias))
    return grad_gates, grad_gates, grad_cx, grad_bias, grad_bias


def _keep_for_lstm(ctx: Context, inputs: Any, output: Any, **attributes: Any) -> None:
    input, params, hx, batch_sizes = inputs
    _, hy, cy, *lists = output
    saved = [tensor for one in lists for tensor in one]
    ctx.attributes, ctx.has_hx, ctx.counts = attributes, hx is not None, (len(params), len(lists[0]))
    ctx.save_for_backward(input, *(hx or (torch.zeros_like(hy), torch.zeros_like(cy))), batch_sizes, *params, *saved)
    ctx.mark_non_differentiable(*saved)


def _lstm(ctx: Context, dy: torch.Tensor, dh: torch.Tensor, dc: torch.Tensor, *of_lists: Any) -> tuple[Grad, ...]:
    if not ctx.attributes["train"]:
        raise invalid("aclnnLSTM ran with train=False and kept nothing for its gradient; train must be True.")
    saved = ctx.saved_tensors
    input, h0, c0, batch_sizes, *rest = saved
    many, each = ctx.counts
    dy = dy.contiguous()  # that of a sum() has stride 0: no fast kernel takes it
    lists = [list(rest[start : start + each]) for start in range(many, len(rest), each)]
    dx, dh_prev, dc_prev, dparams = direct.call(
        "lstm_backward",
        (*saved, dy, dh, dc),
        (input, [h0, c0], list(rest[:many]), dy, dh, dc, *lists, batch_sizes),
        **ctx.attributes,
    )
    return dx, dparams, [dh_prev, dc_prev] if ctx.has_hx else None, None
