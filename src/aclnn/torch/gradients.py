"""What autograd does with each forward operator: which tensors it keeps, and the backward operator it calls.

A gradient is computed for the product and on the engine that its forward ran under. The backward operators have no
derivative of their own, and say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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


class Derivative(NamedTuple):
    """The gradient of an operator as one call of another: of the gradients of its results, then of what is kept."""

    backward: str
    kept: tuple[int, ...]  # by number: inputs, then results
    attributes: Callable[[Any, Any, Any], tuple[Any, ...]]
    """Those of the other, from attributes and tensors of this one, and which of these need a gradient."""
    gradients: tuple[int, ...]  # by input: which result of the other is its gradient
    learning: int = 1  # results that have a gradient


def _of_elu(attributes: Any, tensors: Any, needs: Any) -> tuple[Any, ...]:
    return *attributes, False


def _of_convolution(attributes: Any, tensors: Any, needs: Any) -> tuple[Any, ...]:
    *window, cube_math_type = attributes
    return (*tensors[2].shape,) if needs[2] else None, *window, (*needs[:3],), cube_math_type


def _of_conv_tbc(attributes: Any, tensors: Any, needs: Any) -> tuple[Any, ...]:
    return (*attributes,)


def _of_cell(attributes: Any, tensors: Any, needs: Any) -> tuple[Any, ...]:
    return (tensors[3] is not None,)  # whether there are biases


DERIVATIVES = {
    "elu": Derivative("elu_backward", (0,), _of_elu, (0,)),
    "convolution": Derivative("convolution_backward", (0, 1), _of_convolution, (0, 1, 2)),
    "conv_tbc": Derivative("conv_tbc_backward", (0, 1, 2), _of_conv_tbc, (0, 1, 2)),
    "thnn_fused_lstm_cell": Derivative("thnn_fused_lstm_cell_backward", (2, 6, 7), _of_cell, (0, 0, 1, 2, 2), 2),
}


def register_all() -> None:
    for name, derivative in DERIVATIVES.items():
        _register(name, *_ways(derivative))
    library.impl("elu_", _elu_in_place, "Autograd")
    _register("lstm", _keep_for_lstm, _lstm)
    for op in ops.all_ops():
        if op.name.endswith("Backward"):
            _register(op.python, lambda ctx, *rest, **more: None, _refusal(op))


def _ways(derivative: Derivative) -> tuple[Callable[..., None], Callable[..., Any]]:
    """What `_register` takes, of a derivative."""
    attributes_of, kept, learning = derivative.attributes, derivative.kept, derivative.learning
    first = len(kept) if kept == (*range(len(kept)),) else None  # what is kept, if it is the first inputs

    def keep(ctx: Context, tensors: Any, attributes: Any, output: Any) -> None:
        ctx.attributes = attributes_of(attributes, tensors, ctx.needs_input_grad)
        if first is not None:
            ctx.save_for_backward(*tensors[:first])
            return
        every = *tensors, *output
        ctx.save_for_backward(*[every[i] for i in kept])
        ctx.mark_non_differentiable(*output[learning:])
        ctx.set_materialize_grads(False)  # a cell takes what is missing as it is

    def backward(ctx: Context, *grads: Grad) -> Any:
        return gradients_of(derivative, (*grads[:learning], *ctx.saved_tensors), ctx.attributes)

    return keep, backward


def gradients_of(derivative: Derivative, tensors: tuple[Any, ...], attributes: tuple[Any, ...]) -> list[Grad]:
    """By input."""
    found = direct.call(derivative.backward, tensors, attributes)
    return [found[i] for i in derivative.gradients] if type(found) is tuple else [found]


def _register(name: str, keep: Callable[..., None], backward: Callable[..., Any]) -> None:
    """Gives an operator its derivative. `keep(ctx, tensors, attributes, output)` saves what `backward(ctx, *grads)`
    needs to return the gradient of each tensor, or list of them."""

    def setup(ctx: Context, tensors: Any, attributes: Any, output: Any) -> None:
        ctx.context = settings.context()
        keep(ctx, tensors, attributes, output)

    def run(ctx: Context, *grads: Any) -> Any:
        if settings.context() is ctx.context:
            return backward(ctx, *grads)
        return under(ctx.context, backward, ctx, *grads)

    _register_with_dispatcher(ops.find(name), setup, run)
    if not name.endswith("_backward"):
        direct.derive(name, setup, run, slice(3) if name == "lstm" else None)


def under(context: settings.Context, compute: Callable[..., Any], *given: Any) -> Any:
    """Computes for the product and on the engine of a context that may have been left."""
    now = settings.context()
    if now.product is context.product and now.engine == context.engine:
        return compute(*given)
    product, engine = settings.current_product, settings.current_engine
    with settings.product(context.product or product()), settings.engine(context.engine or engine()):
        return compute(*given)


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


def _elu_in_place(input: torch.Tensor, *scalars: float) -> None:
    """The gradient needs the old input, so with autograd "in place" is a copy back."""
    if torch.is_grad_enabled() and input.requires_grad:
        input.copy_(torch.ops.aclnn.elu.default(input.clone(), *scalars))
    else:
        with torch._C._AutoDispatchBelowAutograd():
            torch.ops.aclnn.elu_.default(input, *scalars)


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
