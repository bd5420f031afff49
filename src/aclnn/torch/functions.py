"""The operators as functions of torch tensors, with gradients: `torch.ops.aclnn.*` under their Python names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from aclnn.runtime.call_key import flat
from aclnn.torch.direct import call, is_watched

Number = float | int | bool
_NO_DROPOUT = 0.0  # in the operator: it is a module's affair


def _learns(tensors: Sequence[Any]) -> bool:
    return any(t is not None and t.requires_grad for t in flat(tensors))


def elu(
    input: torch.Tensor, alpha: Number = 1.0, scale: Number = 1.0, input_scale: Number = 1.0, inplace: bool = False
) -> torch.Tensor:
    """x for x > 0, alpha·(exp(x) − 1) otherwise, with two further scales."""
    if inplace:
        is_watched("elu", (input,))  # for what it refuses
        torch.ops.aclnn.elu_.default(input, alpha, scale, input_scale)
        return input
    return call("elu", (input,), (alpha, scale, input_scale))


def convolution(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    cube_math_type: int = 0,
) -> torch.Tensor:
    """A convolution over one, two or three spatial axes: (batch, channels, *positions)."""
    window = [(*v,) if type(v) is list else v for v in (stride, padding, dilation)]
    extra = (*output_padding,) if type(output_padding) is list else output_padding
    return call("convolution", (input, weight, bias), (*window, transposed, extra, groups, cube_math_type))


def conv_tbc(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, pad: int = 0, cube_math_type: int = 0
) -> torch.Tensor:
    """A convolution over time: (time, batch, channels)."""
    return call("conv_tbc", (input, weight, bias), (pad, cube_math_type))


def lstm(
    input: torch.Tensor,
    params: Sequence[torch.Tensor],
    hx: Sequence[torch.Tensor] | None = None,
    batch_sizes: torch.Tensor | None = None,
    *,
    has_bias: bool = True,
    num_layers: int = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """An LSTM over padded sequences: the states of the top layer, the last hidden and the last cell states.

    The seven lists for the backward are kept only if there will be one. A trace is called with gradients or without,
    whatever it was made with.
    """
    tensors = input, params, hx, batch_sizes
    train = (torch.is_grad_enabled() or torch.jit.is_tracing()) and _learns(tensors)
    attributes = has_bias, num_layers, _NO_DROPOUT, train, bidirectional, batch_first
    output, hy, cy, *_ = call("lstm", tensors, attributes)
    return output, hy, cy


def thnn_fused_lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cx: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The LSTM cell behind its matrix products: the new hidden and the new cell state."""
    tensors = (input_gates, hidden_gates, cx, input_bias, hidden_bias)
    hy, cy, _ = call("thnn_fused_lstm_cell", tensors, ())
    return hy, cy
