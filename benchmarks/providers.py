"""Who is timed: ours, and PyTorch and JAX where they are installed.

A benchmark gives a maker per provider: what makes the call that is timed. Makers nobody asks for are not called.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np

from aclnn.base.foreign_arrays import to_torch
from benchmarks.measure import Call

Maker = Callable[[], Call]
IN_TURN = ("aclnn", "torch")
BESIDE = {
    "elu": ("torch.compile", "jax"),
    "convolution": ("jax",),
    "conv_tbc": ("jax",),
    "lstm": ("jax",),
    "lstm_cell": ("torch.compile", "jax"),
}
"""Timed in processes of their own: their threads spin on after a call, and calls of 30 µs beside them took 8 ms."""


serving: list[str] = []
"""The kernels that serve the calls of ours that were made."""


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def made(makers: dict[str, Maker], wanted: Collection[str]) -> dict[str, Call]:
    """The calls of the wanted providers that are there; further ones may fail, which is said."""
    found = {}
    for name, maker in makers.items():
        package = name.split(".")[0]
        if name not in wanted or (package != "aclnn" and not has(package)):
            continue
        try:
            found[name] = maker()
        except Exception as reason:
            if name in ("aclnn", "torch"):
                raise
            print(f"    no {name}: {str(reason).splitlines()[0][:100]}", file=sys.stderr)
    return found


def ours(operator: Any, arguments: tuple[Any, ...], column: str, **more: Any) -> Maker:
    """A functional call, one with `out=`, one with tensors, one from C, or a planned one that writes into the same
    outputs."""

    def functional() -> Call:
        tensors = _tensors(arguments) if column == "torch" and has("torch") else arguments
        given = more | ({"out": operator(*tensors, **more)} if column == "out" else {})
        return lambda: operator(*tensors, **given)

    def planned() -> Call:
        plan = operator.plan(*arguments, **more, repeatable=True)
        workspace = np.empty(plan.workspace_size, np.uint8)
        return lambda: plan.run(workspace)

    def from_c() -> Call:
        from benchmarks import c_door

        return c_door.call(operator, arguments, **more)

    make = functional if column in ("fresh", "out", "torch") else from_c if column == "c" else planned

    def noted() -> Call:
        serving.append(operator.plan(*arguments, **more).kernel)
        return make()

    return noted


def theirs(name: str, arguments: tuple[Any, ...], out: str = "") -> Maker:
    """PyTorch's operator of that name; with the name of its `out=`, where it has one that is no copy."""

    def call() -> Call:
        import torch

        operator, tensors = getattr(torch.ops.aten, name), _tensors(arguments)
        if not out:
            return lambda: operator.default(*tensors)
        memory = {out: torch.empty_like(next(t for t in tensors if isinstance(t, torch.Tensor)))}
        operator = getattr(operator, out)
        return lambda: operator(*tensors, **memory)

    return call


def _tensors(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_tensors(v) for v in value)
    return to_torch(value) if isinstance(value, np.ndarray) else value


def as_torch(*arrays: np.ndarray) -> list[Any]:
    return [to_torch(a) for a in arrays]


def steps(name: str, arguments: tuple[Any, ...], inputs: tuple[np.ndarray, ...], **more: Any) -> dict[str, Maker]:
    """Forward and backward of a module of that name: ours, and PyTorch's with the same arguments."""
    packages = {"aclnn": "aclnn.torch", "torch": "torch.nn"} if has("torch") else {}
    return {p: partial(_step, importlib.import_module(m), name, arguments, inputs, more) for p, m in packages.items()}


def _step(package: Any, name: str, arguments: tuple[Any, ...], inputs: tuple[np.ndarray, ...], more: Any) -> Call:
    import torch

    torch.manual_seed(0)
    first, *states = as_torch(*inputs)
    module = getattr(package, name)(*arguments, **more, dtype=first.dtype) if arguments else getattr(package, name)()
    wanted = [first.requires_grad_(), *module.parameters()]

    def outputs() -> list[Any]:
        return _flat(module(first, tuple(states)) if states else module(first))

    gradients = [torch.ones_like(t) for t in outputs()]
    return lambda: torch.autograd.grad(outputs(), wanted, gradients)


def _flat(value: Any) -> list[Any]:
    return [t for v in value for t in _flat(v)] if isinstance(value, tuple | list) else [value]


def compiled_by_torch(function: Callable[..., Any], *arrays: np.ndarray) -> Call:
    """The function through torch.compile."""
    import torch

    tensors = as_torch(*arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(function)
        compiled(*tensors)
    return lambda: compiled(*tensors)


def compiled_by_jax(function: Callable[..., Any], *arrays: np.ndarray) -> Call:
    """The function through jax.jit."""
    import jax

    compiled, given = jax.jit(function), [jax.numpy.asarray(a) for a in arrays]
    jax.block_until_ready(compiled(*given))
    return lambda: jax.block_until_ready(compiled(*given))
