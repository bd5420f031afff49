"""The short way of eager mode: where nothing watches, an operator is called without the dispatcher.

The dispatcher, and what torch.library generates for autograd, cost as much as a small operator, and in a training
step, where the caches hold other things, several times that. Whatever transforms, traces, casts or records calls gets
them through `torch.ops.aclnn` as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import Function, forward_ad

import aclnn
from aclnn import ops
from aclnn.base.status import invalid
from aclnn.runtime.call_key import flat
from aclnn.runtime.familiar_calls import Familiar, recall, remember
from aclnn.runtime.operator import Operator
from aclnn.torch.schema import parameters_of

Context = Any
Keep = Callable[..., None]
Backward = Callable[..., Any]
Tensors = Sequence[torch.Tensor | None]

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _always(*given: Any) -> bool:
    return True


def _make_questions() -> tuple[Callable[[], bool], Callable[[Tensors], bool]]:
    """Whether calls are observed, and whether there is a mode, a transform or a special tensor besides: asked of names
    that PyTorch does not promise to keep. Where one is missing, everything takes the way of the dispatcher, which is
    right and slower."""
    try:
        bindings, is_compiling, is_profiling = (
            torch._C,
            torch.compiler.is_compiling,
            torch._C._autograd._profiler_enabled,
        )
        included, excluded = bindings._dispatch_tls_local_include_set, bindings._dispatch_tls_local_exclude_set
        keys_of, function_modes = bindings._dispatch_keys, bindings._len_torch_function_stack
        with torch.inference_mode(False), torch.autocast("cpu", enabled=False):
            usual = included(), excluded(), keys_of(torch.empty(0))  # what the dispatcher sees while no mode is on
        is_profiling(), function_modes(), forward_ad._current_level >= 0
    except (AttributeError, TypeError):
        return _always, _always
    usually_included, usually_excluded, usual_keys = usual

    def is_observed() -> bool:
        return bool(is_compiling() or is_profiling() or function_modes() or forward_ad._current_level >= 0)

    def is_watched(tensors: Tensors) -> bool:
        if is_observed() or included() != usually_included or excluded() != usually_excluded:
            return True
        for tensor in tensors:
            if tensor is not None and (type(tensor) not in _PLAIN or keys_of(tensor) != usual_keys):
                return True
        return False

    return is_observed, is_watched


OPERATORS: dict[str, Operator] = {op.python: getattr(aclnn, op.python) for op in ops.all_ops()}
_DERIVED: dict[str, Callable[..., Any]] = {}
"""The forward operators with their gradients, as autograd takes them without a dispatcher."""

_is_observed, _is_watched = _make_questions()
again: Callable[[str, Sequence[Any], tuple[Any, ...]], Any] | None = None
"""Where it is built (node.py): the results of a call whose like was made before, without Python, or None."""


def call(name: str, tensors: Sequence[Any], attributes: tuple[Any, ...]) -> Any:
    """`torch.ops.aclnn.<name>` of tensors, and lists of them, and attributes: the short way if that is the same. Of an
    operator with a derivative and more than three results it may give the first three.

    What is familiar has been found to be watched by nobody."""
    known = None
    if not _is_observed():
        if again is not None and (found := again(name, tensors, attributes)) is not None:
            return found
        known = recall(OPERATORS[name].op, tensors, attributes)
    if known is None:
        return _call_unfamiliar(name, tensors, attributes)
    if known.learns and torch.is_grad_enabled():
        return _with_derivative(name, known, tensors, attributes)
    return known(tensors)


def _call_unfamiliar(name: str, tensors: Sequence[Any], attributes: tuple[Any, ...]) -> Any:
    every = flat(tensors)
    if is_watched(name, every):
        return _dispatched(name, tensors, attributes)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in every):
        result = _with_derivative(name, None, tensors, attributes)
    else:
        result = OPERATORS[name].apply((*tensors,), attributes)
    remember(OPERATORS[name], tensors, attributes)
    return result


def _with_derivative(name: str, known: Familiar | None, tensors: Sequence[Any], attributes: tuple[Any, ...]) -> Any:
    if name not in _DERIVED:  # a backward operator: the dispatcher knows how to refuse its derivative
        return _dispatched(name, tensors, attributes)
    return _DERIVED[name](*flat(tensors), known, tensors, attributes)


def _dispatched(name: str, tensors: Sequence[Any], attributes: tuple[Any, ...]) -> Any:
    """Through the dispatcher, which has arguments as Python shows them."""
    of_kind = {True: iter(tensors), False: iter(attributes)}
    given = [(arg, next(of_kind[arg.is_tensor])) for arg in parameters_of(OPERATORS[name].op)]
    named = {arg.snake: value for arg, value in given if arg.keyword_only}
    inputs = [value for arg, value in given if not arg.keyword_only]
    return getattr(torch.ops.aclnn, name).default(*inputs, **named)


def is_watched(name: str, tensors: Tensors) -> bool:
    """Whether the dispatcher would do more than call the operator. Refuses what it would do wrong."""
    watched = _is_watched(tensors)
    if watched and not torch.compiler.is_compiling():
        _refuse_transforms(name, tensors)
    return watched


def below_autograd(compute: Callable[..., Any], derived: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel for calls of `torch.ops.aclnn` that stand before autograd: `derived` serves any call; where nothing is
    derived and nothing is watched, `compute` does the same without a second way through the dispatcher. What the
    dispatcher has found of modes and tensors is its key set: one that was found to be plain once is so again."""
    plain: list[Any] = []

    def kernel(keyset: Any, *args: Any, **named: Any) -> Any:
        if forward_ad._current_level >= 0 or (torch.is_grad_enabled() and torch._C._any_requires_grad(*args)):
            return derived(keyset, *args, **named)
        if plain and keyset == plain[0]:
            return compute(*args, **named)
        result = derived(keyset, *args, **named)
        if not plain and not _is_watched([one for one in flat(args) if isinstance(one, torch.Tensor)]):
            plain.append(keyset)
        return result

    return kernel


def _refuse_transforms(name: str, tensors: Tensors) -> None:
    """PyTorch would answer a forward-mode derivative of these operators with 0, and torch.func.grad with a riddle."""
    active = {interpreter.key() for interpreter in _interpreters()}
    level = getattr(forward_ad, "_current_level", 0)
    has_tangent = level >= 0 and any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors)
    if has_tangent or any(str(key).endswith("Jvp") for key in active):
        raise invalid(f"aclnn.torch.{name} has no forward-mode derivative; torch.autograd.grad has the reverse one.")
    if any(str(key).endswith("Grad") for key in active):
        raise invalid(f"aclnn.torch.{name} is not for torch.func.grad, vjp or jacrev; use torch.autograd.grad.")


def _interpreters() -> Sequence[Any]:
    """The transforms under way, where PyTorch says so."""
    ask = getattr(getattr(torch._C, "_functorch", None), "get_interpreter_stack", None)
    return ask() or () if ask is not None else ()


def _apply_of(function: type[Function]) -> Callable[..., Any]:
    """What Function.apply calls after it has looked for transforms, which were looked for here already."""
    apply: Callable[..., Any] = getattr(super(Function, function), "apply", function.apply)
    return apply


def derive(name: str, keep: Keep, backward: Backward, results: slice | None = None) -> None:
    """Gives an operator its derivative on the short way, and of several results those. Autograd gets tensors one by
    one, those of lists too; for `keep` and `backward` see gradients.py."""
    apply = OPERATORS[name].apply
    has_lists = any(arg.kind == "tensor_list" for arg in OPERATORS[name].op.inputs)

    class DirectCall(Function):
        @staticmethod
        def forward(ctx: Context, *given: Any) -> Any:
            known, tensors, attributes = given[-3:]
            output = apply(tensors, attributes) if known is None else known(tensors)
            keep(ctx, tensors, attributes, output)
            return output if results is None else output[results]

        @staticmethod
        def backward(ctx: Context, *grads: Any) -> Any:
            found = backward(ctx, *grads)
            return *(flat(found) if has_lists else found), None, None, None

    _DERIVED[name] = _apply_of(DirectCall)
