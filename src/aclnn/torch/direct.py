"""The short way of eager mode: where nothing watches, an operator is called without the dispatcher.

The dispatcher, and what torch.library generates for autograd, cost as much as a small operator, and in a training
step, where the caches hold other things, several times that. Whatever transforms, traces, casts or records calls gets
them through `torch.ops.aclnn` as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C._functorch import TransformType
from torch.autograd import Function, forward_ad

import aclnn
from aclnn.base.status import invalid

Context = Any
Keep = Callable[..., None]
Backward = Callable[..., Any]

_included, _excluded = torch._C._dispatch_tls_local_include_set, torch._C._dispatch_tls_local_exclude_set
_keys, _function_modes = torch._C._dispatch_keys, torch._C._len_torch_function_stack
_is_compiling, _is_profiling = torch.compiler.is_compiling, torch._C._autograd._profiler_enabled


def _usual() -> tuple[Any, Any, Any]:
    """What the dispatcher adds to the keys of a tensor, what it leaves out, and the keys, while no mode is on."""
    with torch.inference_mode(False), torch.autocast("cpu", enabled=False):
        return _included(), _excluded(), _keys(torch.empty(0))


_INCLUDED, _EXCLUDED, _KEYS = _usual()
_PLAIN = (torch.Tensor, torch.nn.Parameter)

_DERIVED: dict[str, Callable[..., Any]] = {}
"""The forward operators with their gradients, as autograd takes them without a dispatcher."""

Tensors = Sequence[torch.Tensor | None]


def call(name: str, tensors: Tensors, inputs: Sequence[Any], **named: Any) -> Any:
    """`torch.ops.aclnn.<name>` of inputs, the tensors among which are `tensors`: the short way if that is the same."""
    if is_watched(name, tensors):
        return getattr(torch.ops.aclnn, name).default(*inputs, **named)
    if not (torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)):
        return getattr(aclnn, name)(*inputs, **named)
    if name not in _DERIVED:  # a backward operator: the dispatcher knows how to refuse its derivative
        return getattr(torch.ops.aclnn, name).default(*inputs, **named)
    return _DERIVED[name](*inputs, **named)


def is_watched(name: str, tensors: Tensors) -> bool:
    """Whether the dispatcher would do more than call the operator. Refuses what it would do wrong."""
    watched = _is_watched(tensors)
    if watched and not _is_compiling():
        _refuse_transforms(name, tensors)
    return watched


def _is_watched(tensors: Tensors) -> bool:
    """Whether there is a mode, a transform or a special tensor."""
    if _is_compiling() or _is_profiling() or _function_modes() or forward_ad._current_level >= 0:
        return True
    if _included() != _INCLUDED or _excluded() != _EXCLUDED:
        return True
    return not all(t is None or (type(t) in _PLAIN and _keys(t) == _KEYS) for t in tensors)


def _refuse_transforms(name: str, tensors: Tensors) -> None:
    """PyTorch would answer a forward-mode derivative of these operators with 0, and torch.func.grad with a riddle."""
    active = {interpreter.key() for interpreter in torch._C._functorch.get_interpreter_stack() or ()}
    has_tangent = forward_ad._current_level >= 0 and any(
        t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors
    )
    if has_tangent or TransformType.Jvp in active:
        raise invalid(f"aclnn.torch.{name} has no forward-mode derivative; torch.autograd.grad has the reverse one.")
    if TransformType.Grad in active:
        raise invalid(f"aclnn.torch.{name} is not for torch.func.grad, vjp or jacrev; use torch.autograd.grad.")


def derive(name: str, keep: Keep, backward: Backward) -> None:
    """Gives an operator its derivative on the short way. For `keep` and `backward` see gradients.py."""
    operator = getattr(aclnn, name)

    class Direct(Function):
        @staticmethod
        def forward(ctx: Context, *inputs: Any) -> Any:
            output = operator(*inputs)
            keep(ctx, inputs, output)
            return output

        @staticmethod
        def backward(ctx: Context, *grads: Any) -> Any:
            return backward(ctx, *grads)

    _DERIVED[name] = Direct.apply


def derive_lstm(keep: Keep, backward: Backward) -> None:
    """The same for the LSTM, whose lists of tensors autograd takes one by one. It returns the first three results."""

    class Direct(Function):
        @staticmethod
        def forward(ctx: Context, attributes: Any, many: int, batch_sizes: Any, input: Any, *tensors: Any) -> Any:
            inputs = (input, tensors[:many], tensors[many:] or None, batch_sizes)
            output = aclnn.lstm(*inputs, **attributes)
            keep(ctx, inputs, output, attributes)
            return output[:3]

        @staticmethod
        def backward(ctx: Context, *grads: Any) -> Any:
            dx, dparams, of_states, _ = backward(ctx, *grads)
            return None, None, None, dx, *dparams, *(of_states or ())

    def lstm(input: Any, params: Any, hx: Any, batch_sizes: Any, **attributes: Any) -> Any:
        return Direct.apply(attributes, len(params), batch_sizes, input, *params, *(hx or ()))

    _DERIVED["lstm"] = lstm
