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
    "elu",
    "elu_",
    "elu_backward",
    "thnn_fused_lstm_cell_backward",
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


class _Elu(Operator):
    """The ELU activation.

    input: The input, x.
    alpha: The coefficient of the negative branch.
    scale: The scale of both branches.
    input_scale: The scale of the input of exp.
    """

    def __call__(
        self,
        input: A,
        alpha: Number = 1.0,
        scale: Number = 1.0,
        input_scale: Number = 1.0,
        *,
        out: Any = None,
        product: str | Product | None = None,
        engine: str | None = None,
    ) -> A:
        result: A = self._call(
            {"self": input, "alpha": alpha, "scale": scale, "inputScale": input_scale}, out, product, engine
        )
        return result

    def plan(
        self,
        input: A,
        alpha: Number = 1.0,
        scale: Number = 1.0,
        input_scale: Number = 1.0,
        *,
        out: Any = None,
        product: str | Product | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._plan(
            {"self": input, "alpha": alpha, "scale": scale, "inputScale": input_scale}, out, product, engine, repeatable
        )


elu = _Elu("aclnnElu")


class _InplaceElu(Operator):
    """The ELU activation, written over its input.

    input: The input x, then the result y.
    alpha: The coefficient of the negative branch.
    scale: The scale of both branches.
    input_scale: The scale of the input of exp.
    """

    def __call__(
        self,
        input: A,
        alpha: Number = 1.0,
        scale: Number = 1.0,
        input_scale: Number = 1.0,
        *,
        product: str | Product | None = None,
        engine: str | None = None,
    ) -> A:
        result: A = self._call(
            {"selfRef": input, "alpha": alpha, "scale": scale, "inputScale": input_scale}, None, product, engine
        )
        return result

    def plan(
        self,
        input: A,
        alpha: Number = 1.0,
        scale: Number = 1.0,
        input_scale: Number = 1.0,
        *,
        product: str | Product | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._plan(
            {"selfRef": input, "alpha": alpha, "scale": scale, "inputScale": input_scale},
            None,
            product,
            engine,
            repeatable,
        )


elu_ = _InplaceElu("aclnnInplaceElu")


class _ThnnFusedLstmCellBackward(Operator):
    """Gradient of the LSTM cell behind its matrix products: of the four gates, the cell state and the bias.

    grad_hy: Gradient of the hidden state hy, [B, H]; null is zeros.
    grad_cy: Gradient of the new cell state cy, [B, H]; null is zeros.
    cx: The old cell state, [B, H].
    cy: The new cell state, [B, H].
    storage: The activated gates i, f, g, o side by side, [B, 4H].
    has_bias: Whether gradBiasOut is computed; if not it may be null and is never written.
    """

    def __call__(
        self,
        grad_hy: A | None,
        grad_cy: A | None,
        cx: A,
        cy: A,
        storage: A,
        has_bias: bool,
        *,
        out: Any = None,
        product: str | Product | None = None,
        engine: str | None = None,
    ) -> tuple[A, A, A | None]:
        result: tuple[A, A, A | None] = self._call(
            {
                "gradHyOptional": grad_hy,
                "gradCOptional": grad_cy,
                "cx": cx,
                "cy": cy,
                "storage": storage,
                "hasBias": has_bias,
            },
            out,
            product,
            engine,
        )
        return result

    def plan(
        self,
        grad_hy: A | None,
        grad_cy: A | None,
        cx: A,
        cy: A,
        storage: A,
        has_bias: bool,
        *,
        out: Any = None,
        product: str | Product | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._plan(
            {
                "gradHyOptional": grad_hy,
                "gradCOptional": grad_cy,
                "cx": cx,
                "cy": cy,
                "storage": storage,
                "hasBias": has_bias,
            },
            out,
            product,
            engine,
            repeatable,
        )


thnn_fused_lstm_cell_backward = _ThnnFusedLstmCellBackward("aclnnThnnFusedLstmCellBackward")
