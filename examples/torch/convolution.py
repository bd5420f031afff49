"""A grouped, strided convolution with its gradients in PyTorch, beside PyTorch's own."""

import torch

import aclnn.torch

torch.manual_seed(7)
x = torch.randn(2, 4, 9, 9, requires_grad=True)
weight = torch.randn(6, 2, 3, 3, requires_grad=True)
bias = torch.randn(6, requires_grad=True)

y = aclnn.torch.convolution(x, weight, bias, [2, 2], [1, 1], [1, 1], False, [0, 0], groups=2)
grad_output = torch.randn_like(y)
ours = torch.autograd.grad(y, (x, weight, bias), grad_output)

theirs = torch.nn.functional.conv2d(x, weight, bias, stride=2, padding=1, groups=2)
same = zip(ours, torch.autograd.grad(theirs, (x, weight, bias), grad_output), strict=True)
print(all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in same))
# True
