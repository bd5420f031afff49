"""A strided 3×3 convolution: forward, then the gradients that the mask asks for."""

import numpy as np

import aclnn

numbers = np.random.default_rng(7)
x = numbers.standard_normal((2, 4, 9, 9), np.float32)
weight = numbers.standard_normal((6, 4, 3, 3), np.float32)
bias = numbers.standard_normal(6, np.float32)
where = {"stride": 2, "padding": 1, "dilation": 1, "transposed": False, "output_padding": 0, "groups": 1}

y = aclnn.convolution(x, weight, bias, **where)
print(y.shape)
# (2, 6, 5, 5)

grad_output = numbers.standard_normal(y.shape, np.float32)
grad_input, grad_weight, grad_bias = aclnn.convolution_backward(
    grad_output, x, weight, bias_sizes=[6], **where, output_mask=[True, True, True]
)
print(grad_input.shape, grad_weight.shape, grad_bias.shape)
# (2, 4, 9, 9) (6, 4, 3, 3) (6,)

# Moving the weight a little in any direction changes ⟨grad_output, y⟩ by ⟨grad_weight, direction⟩.
direction = numbers.standard_normal(weight.shape, np.float32)
moved = aclnn.convolution(x, weight + direction, bias, **where)  # linear in the weight, so any step will do
print(np.isclose(np.vdot(grad_output, moved - y), np.vdot(grad_weight, direction), rtol=1e-4))
# True

# Only what the mask asks for is computed.
nothing, only_weight, _ = aclnn.convolution_backward(
    grad_output, x, weight, bias_sizes=None, **where, output_mask=[False, True, False]
)
print(nothing, np.allclose(only_weight, grad_weight, rtol=1e-5))
# None True
