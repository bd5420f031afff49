"""The public operators. Written by `make gen` from the contracts; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from aclnn.base.product import Product
from aclnn.runtime.executor import Executor
from aclnn.runtime.operator import Operator

A = TypeVar("A")
Number = float | np.generic

__all__ = [
    "elu_backward",
]


class _EluBackward(Operator):
    """Gradient of the ELU activation.

    grad_output: Gradient of the forward's output, g.
    alpha: The coefficient of the negative branch.
    scale: The scale of both branches.
    input_scale: The scale of the input of exp.
    is_result: Whether selfOrResult is the forward's output (true) or input (false).
    self_or_result: The forward's output if isResult, else its input.
    """

    def __call__(
        self,
        grad_output: A,
        alpha: Number,
        scale: Number,
        input_scale: Number,
        is_result: bool,
        self_or_result: A,
        *,
        out: Any = None,
        product: str | Product | None = None,
        engine: str | None = None,
    ) -> A:
        result: A = self._call(
            {
                "gradOutput": grad_output,
                "alpha": alpha,
                "scale": scale,
                "inputScale": input_scale,
                "isResult": is_result,
                "selfOrResult": self_or_result,
            },
            out,
            product,
            engine,
        )
        return result

    def plan(
        self,
        grad_output: A,
        alpha: Number,
        scale: Number,
        input_scale: Number,
        is_result: bool,
        self_or_result: A,
        *,
        out: Any = None,
        product: str | Product | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._plan(
            {
                "gradOutput": grad_output,
                "alpha": alpha,
                "scale": scale,
                "inputScale": input_scale,
                "isResult": is_result,
                "selfOrResult": self_or_result,
            },
            out,
            product,
            engine,
            repeatable,
        )


elu_backward = _EluBackward("aclnnEluBackward")
