"""Who is timed: ours, and PyTorch and JAX where they are installed."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from aclnn.base.adopt import to_torch


def ours(operator: Any, arguments: tuple[Any, ...], fresh: bool, **more: Any) -> Callable[[], object]:
    """A functional call, or a planned one that writes into the same outputs every time."""
    if fresh:
        return lambda: operator(*arguments, **more)
    plan = operator.plan(*arguments, **more, repeatable=True)
    workspace = np.empty(plan.workspace_size, np.uint8)
    return lambda: plan.run(workspace)


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def as_torch(*arrays: np.ndarray) -> list[Any]:
    """The arrays as torch tensors; Nones where torch is not installed."""
    return [to_torch(a) for a in arrays] if has("torch") else [None] * len(arrays)


def as_jax(*arrays: np.ndarray) -> list[Any]:
    """The arrays as JAX arrays; Nones where JAX is not installed."""
    if not has("jax"):
        return [None] * len(arrays)
    import jax

    return [jax.numpy.asarray(a) for a in arrays]


def compiled_by_torch(function: Callable[..., Any], *arguments: Any) -> Callable[[], object] | None:
    """The function through torch.compile; None where that does not work."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compiled = torch.compile(function)
            compiled(*arguments)
        except Exception:  # a missing compiler, an operator it does not know
            return None
    return lambda: compiled(*arguments)
