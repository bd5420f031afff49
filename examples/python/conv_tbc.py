"""A convolution over time of (time, batch, channels) sequences, forwards and backwards."""

import numpy as np

import aclnn

numbers = np.random.default_rng(7)
x = numbers.standard_normal((10, 2, 3), np.float32)
weight = numbers.standard_normal((5, 3, 4), np.float32)  # taps, input channels, output channels
bias = numbers.standard_normal(4, np.float32)

y = aclnn.conv_tbc(x, weight, bias, pad=2)
print(y.shape)
# (10, 2, 4)

grad_output = numbers.standard_normal(y.shape, np.float32)
grad_input, grad_weight, grad_bias = aclnn.conv_tbc_backward(grad_output, x, weight, bias, pad=2)
print(grad_input.shape, grad_weight.shape, grad_bias.shape)
# (10, 2, 3) (5, 3, 4) (4,)

# The convolution is linear in its input: one inner product on each side must be the same.
without_bias = aclnn.conv_tbc(x, weight, np.zeros_like(bias), pad=2)
print(np.isclose(np.vdot(grad_output, without_bias), np.vdot(grad_input, x), rtol=1e-4))
# True

# The same call on inputs rounded to HF32, as an NPU does with cubeMathType 1.
rounded, _, _ = aclnn.conv_tbc_backward(grad_output, x, weight, bias, pad=2, cube_math_type=1)
print(f"{np.abs(rounded - grad_input).max():.0e}")
# 1e-03
