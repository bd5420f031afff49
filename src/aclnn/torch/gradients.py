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
from aclnn.torch.schema import parameters_of

Context = Any
TRAIN = [arg.snake for arg in ops.find("lstm").inputs if not arg.is_tensor].index("train")
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
    """Gives an operator its derivative. `keep(ctx, tensors, attributes, output)` saves what `backward(ctx, *grads)`
    needs to return the gradient of each tensor, or list of them."""

    def setup(ctx: Context, tensors: Any, attributes: Any, output: Any) -> None:
        ctx.context = settings.context()
        keep(ctx, tensors, attributes, output)

    def run(ctx: Context, *grads: Any) -> Any:
        if settings.context() is ctx.context:
            return backward(ctx, *grads)
        product, engine = settings.current_product, settings.current_engine
        with settings.product(ctx.context.product or product()), settings.engine(ctx.context.engine or engine()):
            return backward(ctx, *grads)

    _register_with_dispatcher(ops.find(name), setup, run)
    if not name.endswith("_backward"):
        direct.derive(name, setup, run, slice(3) if name == "lstm" else None)


def _register_with_dispatcher(op: Op, setup: Callable[..., None], run: Callable[..., Any]) -> None:
    """The same for calls whose arguments come as Python shows them."""
    shown = parameters_of(op)
    tensors = [i for i, arg in enumerate(shown) if arg.is_tensor]
    others = [i for i, arg in enumerate(shown) if not arg.is_tensor]
    missing = [None] * sum(not arg.keyword_only for arg in shown)

    def setup_shown(ctx: Context, inputs: Any, output: Any, keyword_only_inputs: Any = None) -> None:
        values = *inputs, *(keyword_only_inputs or {}).values()
        setup(ctx, tuple(values[i] for i in tensors), tuple(values[i] for i in others), output)

    def run_shown(ctx: Context, *grads: Any) -> Any:
        found = list(missing)
        for i, grad in zip(tensors, run(ctx, *grads), strict=True):
            found[i] = grad
        return tuple(found)

    torch.library.register_autograd(f"{NAMESPACE}::{op.python}", run_shown, setup_context=setup_shown, lib=library)
    _shorten(op.python, setup_shown, run_shown)


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


def _keep_for_elu(ctx: Context, tensors: Any, attributes: Any, output: torch.Tensor) -> None:
    ctx.scalars = attributes
    ctx.save_for_backward(*tensors)


def _elu(ctx: Context, grad: torch.Tensor) -> tuple[Grad, ...]:
    (input,) = ctx.saved_tensors
    return (direct.call("elu_backward", (grad, input), (*ctx.scalars, False)),)


def _elu_in_place(input: torch.Tensor, *scalars: float) -> None:
    """The gradient needs the old input, so with autograd "in place" is a copy back."""
    if torch.is_grad_enabled() and input.requires_grad:
        input.copy_(torch.ops.aclnn.elu.default(input.clone(), *scalars))
    else:
        with torch._C._AutoDispatchBelowAutograd():
            torch.ops.aclnn.elu_.default(input, *scalars)


def _keep_for_convolution(ctx: Context, tensors: Any, attributes: Any, output: torch.Tensor) -> None:
    input, weight, bias = tensors
    ctx.attributes = attributes
    ctx.bias_sizes, ctx.bias_dtype = (None, None) if bias is None else ((*bias.shape,), bias.dtype)
    ctx.save_for_backward(input, weight)


def _convolution(ctx: Context, grad: torch.Tensor) -> tuple[Grad, ...]:
    tensors, mask = (grad, *ctx.saved_tensors), (*ctx.needs_input_grad[:3],)
    *window, cube_math_type = ctx.attributes
    attributes = (ctx.bias_sizes if mask[2] else None, *window, mask, cube_math_type)
    grad_input, grad_weight, grad_bias = direct.call("convolution_backward", tensors, attributes)
    if grad_bias is not None and grad_bias.dtype is not ctx.bias_dtype:
        grad_bias = grad_bias.to(ctx.bias_dtype)
    return grad_input, grad_weight, grad_bias


def _keep_for_conv_tbc(ctx: Context, tensors: Any, attributes: Any, output: torch.Tensor) -> None:
    ctx.attributes = attributes
    ctx.save_for_backward(*tensors)


def _conv_tbc(ctx: Context, grad: torch.Tensor) -> tuple[Grad, ...]:
    found: tuple[Grad, ...] = direct.call("conv_tbc_backward", (grad, *ctx.saved_tensors), ctx.attributes)
    return found


def _keep_for_cell(ctx: Context, tensors: Any, attributes: Any, output: tuple[torch.Tensor, ...]) -> None:
    _, _, cx, input_bias, _ = tensors
    _, cy, storage = output
    ctx.has_bias = input_bias is not None
    ctx.save_for_backward(cx, cy, storage)
    ctx.mark_non_differentiable(storage)
    ctx.set_materialize_grads(False)


def _cell(ctx: Context, grad_hy: Grad, grad_cy: Grad, of_storage: None) -> tuple[Grad, ...]:
    tensors = (grad_hy, grad_cy, *ctx.saved_tensors)
    grad_gates, grad_cx, grad_bias = direct.call("thnn_fused_lstm_cell_backward", tensors, (ctx.has_bias,))
    return grad_gates, grad_gates, grad_cx, grad_bias, grad_bias


def _keep_for_lstm(ctx: Context, tensors: Any, attributes: Any, output: Any) -> None:
    input, params, hx, batch_sizes = tensors
    _, hy, cy, *lists = output
    saved = [tensor for one in lists for tensor in one]
    ctx.attributes, ctx.has_hx, ctx.counts = attributes, hx is not None, (len(params), len(lists[0]))
    ctx.save_for_backward(input, *(hx or (torch.zeros_like(hy), torch.zeros_like(cy))), batch_sizes, *params, *saved)
    ctx.mark_non_differentiable(*saved)


def _lstm(ctx: Context, dy: torch.Tensor, dh: torch.Tensor, dc: torch.Tensor, *of_lists: Any) -> tuple[Grad, ...]:
    if not ctx.attributes[TRAIN]:
        raise invalid("aclnnLSTM ran with train=False and kept nothing for its gradient; train must be True.")
    input, h0, c0, batch_sizes, *rest = ctx.saved_tensors
    many, each = ctx.counts
    dy = dy.contiguous()  # that of a sum() has stride 0: no fast kernel takes it
    lists = [rest[start : start + each] for start in range(many, len(rest), each)]
    tensors = input, [h0, c0], rest[:many], dy, dh, dc, *lists, batch_sizes
    dx, dh_prev, dc_prev, dparams = direct.call("lstm_backward", tensors, ctx.attributes)
    return dx, dparams, [dh_prev, dc_prev] if ctx.has_hx else None, None
