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
from aclnn.torch.library import NAMESPACE, library

Context = Any


def register(name: str, keep: Callable[..., None], backward: Callable[..., Any]) -> None:
    """Gives an operator its derivative. `keep(ctx, inputs, output)` saves what `backward(ctx, *grads)` needs."""

    def setup(ctx: Context, inputs: Any, output: Any, keyword_only_inputs: Any = None) -> None:
        ctx.product, ctx.engine = settings.current_product(), settings.current_engine()
        keep(ctx, inputs, output, **({} if keyword_only_inputs is None else keyword_only_inputs))

    def run(ctx: Context, *grads: Any) -> Any:
        with settings.product(ctx.product), settings.engine(ctx.engine):
            return backward(ctx, *grads)

    torch.library.register_autograd(f"{NAMESPACE}::{name}", run, setup_context=setup, lib=library)


def register_all() -> None:
    register("elu", _keep_for_elu, _elu)
    library.impl("elu_", _elu_in_place, "Autograd")
    for op in ops.all_ops():
        if op.name.endswith("Backward"):
            register(op.python, lambda ctx, *rest, **more: None, _refusal(op))


def _refusal(op: Op) -> Callable[..., Any]:
    def refuse(ctx: Context, *grads: Any) -> Any:
        raise invalid(f"{op.name} has no derivative: double backward (create_graph=True) is not supported.")

    return refuse


def _keep_for_elu(ctx: Context, inputs: Any, output: torch.Tensor) -> None:
    input, *ctx.scalars = inputs
    ctx.save_for_backward(input)


def _elu(ctx: Context, grad: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
    (input,) = ctx.saved_tensors
    return torch.ops.aclnn.elu_backward(grad, *ctx.scalars, False, input), None, None, None


def _elu_in_place(input: torch.Tensor, *scalars: float) -> None:
    """The gradient needs the old input, so with autograd "in place" is a copy back."""
    if torch.is_grad_enabled() and input.requires_grad:
        input.copy_(torch.ops.aclnn.elu(input.clone(), *scalars))
    else:
        with torch._C._AutoDispatchBelowAutograd():
            torch.ops.aclnn.elu_(input, *scalars)
