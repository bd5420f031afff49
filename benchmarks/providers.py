"""Who is timed: ours, and PyTorch and JAX where they are installed.

A benchmark gives a maker per provider: what makes the call that is timed. Makers nobody asks for are not called.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from aclnn.base.adopt import to_torch
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


def ours(operator: Any, arguments: tuple[Any, ...], fresh: bool, **more: Any) -> Maker:
    """A functional call, or a planned one that writes into the same outputs every time."""

    def planned() -> Call:
        plan = operator.plan(*arguments, **more, repeatable=True)
        workspace = np.empty(plan.workspace_size, np.uint8)
        return lambda: plan.run(workspace)

    return (lambda: lambda: operator(*arguments, **more)) if fresh else planned


def as_torch(*arrays: np.ndarray) -> list[Any]:
    return [to_torch(a) for a in arrays]


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
