"""The operators as functions of torch tensors, with gradients: `torch.ops.aclnn.*` under their Python names."""

from __future__ import annotations

import torch

Number = float | int | bool


def elu(
    input: torch.Tensor, alpha: Number = 1.0, scale: Number = 1.0, input_scale: Number = 1.0, inplace: bool = False
) -> torch.Tensor:
    """x for x > 0, alpha·(exp(x) − 1) otherwise, with two further scales."""
    if inplace:
        torch.ops.aclnn.elu_.default(input, alpha, scale, input_scale)
        return input
    return torch.ops.aclnn.elu.default(input, alpha, scale, input_scale)
