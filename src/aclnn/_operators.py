"""The public operators. Written by `make gen` from the contracts; do not edit."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from aclnn.base.device import Device
from aclnn.runtime.executor import Executor
from aclnn.runtime.operator import Operator

A = TypeVar("A")
Number = float | np.generic

__all__ = [
    "conv_tbc",
    "conv_tbc_backward",
    "convolution",
    "convolution_backward",
    "elu",
    "elu_",
    "elu_backward",
    "lstm",
    "lstm_backward",
    "thnn_fused_lstm_cell",
    "thnn_fused_lstm_cell_backward",
]


class _AclnnEluBackward(Operator):
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
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> A:
        return self._apply((grad_output, self_or_result), (alpha, scale, input_scale, is_result), out, product, engine)

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
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare(
            (grad_output, self_or_result), (alpha, scale, input_scale, is_result), out, product, engine, repeatable
        )


elu_backward = _AclnnEluBackward("aclnnEluBackward")


class _AclnnElu(Operator):
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
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> A:
        return self._apply((input,), (alpha, scale, input_scale), out, product, engine)

    def plan(
        self,
        input: A,
        alpha: Number = 1.0,
        scale: Number = 1.0,
        input_scale: Number = 1.0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare((input,), (alpha, scale, input_scale), out, product, engine, repeatable)


elu = _AclnnElu("aclnnElu")


class _AclnnInplaceElu(Operator):
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
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> A:
        return self._apply((input,), (alpha, scale, input_scale), None, product, engine)

    def plan(
        self,
        input: A,
        alpha: Number = 1.0,
        scale: Number = 1.0,
        input_scale: Number = 1.0,
        *,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare((input,), (alpha, scale, input_scale), None, product, engine, repeatable)


elu_ = _AclnnInplaceElu("aclnnInplaceElu")


class _AclnnConvolutionBackward(Operator):
    """Gradients of a convolution: of its input, its weight and its bias, as asked for.

    grad_output: Gradient of the forward's output: batch, output channels, spatial axes.
    input: The forward's input: batch, input channels, spatial axes.
    weight: The kernel: output channels, input channels per group, spatial axes; transposed: input channels, output
        channels per group, spatial axes.
    bias_sizes: The shape of the bias: its number of channels. Read only if outputMask[2].
    stride: The step of the kernel, per axis.
    padding: Padding of both ends, per axis; in 2-D also up, down, left, right.
    dilation: The distance of kernel taps, per axis.
    transposed: Whether the convolution is a transposed one.
    output_padding: What is added to one end of the output of a transposed convolution, per axis.
    groups: How many groups the channels form.
    output_mask: Which gradients are wanted: of input, weight, bias.
    cube_math_type: How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.
    """

    def __call__(
        self,
        grad_output: A,
        input: A,
        weight: A,
        bias_sizes: Sequence[int] | None,
        stride: Sequence[int] | int,
        padding: Sequence[int] | int,
        dilation: Sequence[int] | int,
        transposed: bool,
        output_padding: Sequence[int] | int,
        groups: int,
        output_mask: Sequence[bool],
        cube_math_type: int = 0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> tuple[A | None, A | None, A | None]:
        return self._apply(
            (grad_output, input, weight),
            (bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask, cube_math_type),
            out,
            product,
            engine,
        )

    def plan(
        self,
        grad_output: A,
        input: A,
        weight: A,
        bias_sizes: Sequence[int] | None,
        stride: Sequence[int] | int,
        padding: Sequence[int] | int,
        dilation: Sequence[int] | int,
        transposed: bool,
        output_padding: Sequence[int] | int,
        groups: int,
        output_mask: Sequence[bool],
        cube_math_type: int = 0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare(
            (grad_output, input, weight),
            (bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask, cube_math_type),
            out,
            product,
            engine,
            repeatable,
        )


convolution_backward = _AclnnConvolutionBackward("aclnnConvolutionBackward")


class _AclnnConvolution(Operator):
    """A convolution in one, two or three dimensions, plain or transposed.

    input: The input: batch, input channels, spatial axes.
    weight: The kernel: output channels, input channels per group, spatial axes; transposed: input channels, output
        channels per group, spatial axes.
    bias: What is added to each output channel; null is nothing.
    stride: The step of the kernel, per axis.
    padding: Padding of both ends, per axis; in 2-D also up, down, left, right.
    dilation: The distance of kernel taps, per axis.
    transposed: Whether the convolution is a transposed one.
    output_padding: What is added to one end of the output of a transposed convolution, per axis.
    groups: How many groups the channels form.
    cube_math_type: How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.
    """

    def __call__(
        self,
        input: A,
        weight: A,
        bias: A | None,
        stride: Sequence[int] | int,
        padding: Sequence[int] | int,
        dilation: Sequence[int] | int,
        transposed: bool,
        output_padding: Sequence[int] | int,
        groups: int,
        cube_math_type: int = 0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> A:
        return self._apply(
            (input, weight, bias),
            (stride, padding, dilation, transposed, output_padding, groups, cube_math_type),
            out,
            product,
            engine,
        )

    def plan(
        self,
        input: A,
        weight: A,
        bias: A | None,
        stride: Sequence[int] | int,
        padding: Sequence[int] | int,
        dilation: Sequence[int] | int,
        transposed: bool,
        output_padding: Sequence[int] | int,
        groups: int,
        cube_math_type: int = 0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare(
            (input, weight, bias),
            (stride, padding, dilation, transposed, output_padding, groups, cube_math_type),
            out,
            product,
            engine,
            repeatable,
        )


convolution = _AclnnConvolution("aclnnConvolution")


class _AclnnConvTbcBackward(Operator):
    """Gradients of a convolution over time: of its input, its weight and its bias.

    grad_output: Gradient of the forward's output: time, batch, output channels.
    input: The forward's input: time, batch, input channels.
    weight: The kernel: taps, input channels, output channels.
    bias: The forward's bias, of which only dtype and size matter.
    pad: Steps of padding on both ends of the time axis.
    cube_math_type: How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.
    """

    def __call__(
        self,
        grad_output: A,
        input: A,
        weight: A,
        bias: A,
        pad: int,
        cube_math_type: int = 0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> tuple[A, A, A]:
        return self._apply((grad_output, input, weight, bias), (pad, cube_math_type), out, product, engine)

    def plan(
        self,
        grad_output: A,
        input: A,
        weight: A,
        bias: A,
        pad: int,
        cube_math_type: int = 0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare(
            (grad_output, input, weight, bias), (pad, cube_math_type), out, product, engine, repeatable
        )


conv_tbc_backward = _AclnnConvTbcBackward("aclnnConvTbcBackward")


class _AclnnConvTbc(Operator):
    """A convolution over time.

    input: The input: time, batch, input channels.
    weight: The kernel: taps, input channels, output channels.
    bias: What is added to each output channel.
    pad: Steps of padding on both ends of the time axis.
    cube_math_type: How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.
    """

    def __call__(
        self,
        input: A,
        weight: A,
        bias: A,
        pad: int,
        cube_math_type: int = 0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> A:
        return self._apply((input, weight, bias), (pad, cube_math_type), out, product, engine)

    def plan(
        self,
        input: A,
        weight: A,
        bias: A,
        pad: int,
        cube_math_type: int = 0,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare((input, weight, bias), (pad, cube_math_type), out, product, engine, repeatable)


conv_tbc = _AclnnConvTbc("aclnnConvTbc")


class _AclnnLstmBackward(Operator):
    """Gradient of an LSTM: of its input, its initial state and its parameters.

    input: The input sequences, [T, B, I], or [B, T, I] if batchFirst; with batchSizesOptional also [T·B, I].
    hx: The initial state: h0 and c0, [L·D, B, H] each, at index layer·D + direction.
    params: Weights and biases, per layer and direction: w_ih, w_hh, then b_ih, b_hh if hasBias; rows i, f, g, o.
    dy: Gradient of the top layer's output, laid out as input, forward half first.
    dh: Gradient of the last hidden states.
    dc: Gradient of the last cell states.
    i: Input gates, one [T, B, H] per layer and direction.
    g: Candidate cell states, one [T, B, H] per layer and direction.
    f: Forget gates, one [T, B, H] per layer and direction.
    o: Output gates, one [T, B, H] per layer and direction.
    h: Hidden states, one [T, B, H] per layer and direction.
    c: Cell states, one [T, B, H] per layer and direction.
    tanhc: tanh of the cell states, used as given, one [T, B, H] per layer and direction.
    batch_sizes: How many sequences take part in each step, [T], not increasing; null: all of them.
    has_bias: Whether params holds biases.
    num_layers: The number of layers, L.
    dropout: Dropout between layers. It does not change the gradient: the mask is no argument.
    train: Whether the forward ran in training. It does not change the gradient.
    bidirectional: Whether there is a reverse direction too: D = 2, else 1.
    batch_first: Whether input, dy and dxOut have the batch first.
    """

    def __call__(
        self,
        input: A,
        hx: Sequence[A],
        params: Sequence[A],
        dy: A,
        dh: A,
        dc: A,
        i: Sequence[A],
        g: Sequence[A],
        f: Sequence[A],
        o: Sequence[A],
        h: Sequence[A],
        c: Sequence[A],
        tanhc: Sequence[A],
        batch_sizes: A | None = None,
        *,
        has_bias: bool,
        num_layers: int,
        dropout: float = 0.0,
        train: bool = True,
        bidirectional: bool,
        batch_first: bool,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> tuple[A, A, A, list[A]]:
        return self._apply(
            (input, hx, params, dy, dh, dc, i, g, f, o, h, c, tanhc, batch_sizes),
            (has_bias, num_layers, dropout, train, bidirectional, batch_first),
            out,
            product,
            engine,
        )

    def plan(
        self,
        input: A,
        hx: Sequence[A],
        params: Sequence[A],
        dy: A,
        dh: A,
        dc: A,
        i: Sequence[A],
        g: Sequence[A],
        f: Sequence[A],
        o: Sequence[A],
        h: Sequence[A],
        c: Sequence[A],
        tanhc: Sequence[A],
        batch_sizes: A | None = None,
        *,
        has_bias: bool,
        num_layers: int,
        dropout: float = 0.0,
        train: bool = True,
        bidirectional: bool,
        batch_first: bool,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare(
            (input, hx, params, dy, dh, dc, i, g, f, o, h, c, tanhc, batch_sizes),
            (has_bias, num_layers, dropout, train, bidirectional, batch_first),
            out,
            product,
            engine,
            repeatable,
        )


lstm_backward = _AclnnLstmBackward("aclnnLstmBackward")


class _AclnnLSTM(Operator):
    """An LSTM over whole sequences, with what its backward needs.

    input: The input sequences, [T, B, I], or [B, T, I] if batchFirst; with batchSizes also [T·B, I].
    params: Weights and biases, per layer and direction: w_ih, w_hh, then b_ih, b_hh if hasBias; rows i, f, g, o.
    hx: The initial state: h0 and c0, [L·D, B, H] each, at index layer·D + direction; null is zeros.
    batch_sizes: How many sequences take part in each step, [T], not increasing; null: all of them.
    has_bias: Whether params holds biases.
    num_layers: The number of layers, L.
    dropout: Dropout between layers; in training it must be 0, since the backward could not undo it.
    train: Whether the seven lists are written.
    bidirectional: Whether there is a reverse direction too: D = 2, else 1.
    batch_first: Whether input and output have the batch first.
    """

    def __call__(
        self,
        input: A,
        params: Sequence[A],
        hx: Sequence[A] | None = None,
        batch_sizes: A | None = None,
        *,
        has_bias: bool,
        num_layers: int,
        dropout: float = 0.0,
        train: bool = True,
        bidirectional: bool,
        batch_first: bool,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> tuple[
        A,
        A,
        A,
        list[A] | None,
        list[A] | None,
        list[A] | None,
        list[A] | None,
        list[A] | None,
        list[A] | None,
        list[A] | None,
    ]:
        return self._apply(
            (input, params, hx, batch_sizes),
            (has_bias, num_layers, dropout, train, bidirectional, batch_first),
            out,
            product,
            engine,
        )

    def plan(
        self,
        input: A,
        params: Sequence[A],
        hx: Sequence[A] | None = None,
        batch_sizes: A | None = None,
        *,
        has_bias: bool,
        num_layers: int,
        dropout: float = 0.0,
        train: bool = True,
        bidirectional: bool,
        batch_first: bool,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare(
            (input, params, hx, batch_sizes),
            (has_bias, num_layers, dropout, train, bidirectional, batch_first),
            out,
            product,
            engine,
            repeatable,
        )


lstm = _AclnnLSTM("aclnnLSTM")


class _AclnnThnnFusedLstmCellBackward(Operator):
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
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> tuple[A, A, A | None]:
        return self._apply((grad_hy, grad_cy, cx, cy, storage), (has_bias,), out, product, engine)

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
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare((grad_hy, grad_cy, cx, cy, storage), (has_bias,), out, product, engine, repeatable)


thnn_fused_lstm_cell_backward = _AclnnThnnFusedLstmCellBackward("aclnnThnnFusedLstmCellBackward")


class _AclnnThnnFusedLstmCell(Operator):
    """The LSTM cell behind its matrix products: new states, and the activated gates for the backward.

    input_gates: x·w_ihᵀ, [B, 4H], columns i, f, g, o.
    hidden_gates: h·w_hhᵀ, [B, 4H].
    cx: The old cell state, [B, H].
    input_bias: b_ih, [4H].
    hidden_bias: b_hh, [4H].
    """

    def __call__(
        self,
        input_gates: A,
        hidden_gates: A,
        cx: A,
        input_bias: A | None = None,
        hidden_bias: A | None = None,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
    ) -> tuple[A, A, A]:
        return self._apply((input_gates, hidden_gates, cx, input_bias, hidden_bias), (), out, product, engine)

    def plan(
        self,
        input_gates: A,
        hidden_gates: A,
        cx: A,
        input_bias: A | None = None,
        hidden_bias: A | None = None,
        *,
        out: Any = None,
        product: str | Device | None = None,
        engine: str | None = None,
        repeatable: bool = False,
    ) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare(
            (input_gates, hidden_gates, cx, input_bias, hidden_bias), (), out, product, engine, repeatable
        )


thnn_fused_lstm_cell = _AclnnThnnFusedLstmCell("aclnnThnnFusedLstmCell")
