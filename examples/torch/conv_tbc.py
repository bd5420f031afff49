"""A convolution over time with its gradients in PyTorch, beside PyTorch's own."""

import torch

import aclnn.torch

torch.manual_seed(7)
x = torch.randn(10, 2, 3, requires_grad=True)
weight = torch.randn(5, 3, 4, requires_grad=True)
bias = torch.randn(4, requires_grad=True)

y = aclnn.torch.conv_tbc(x, weight, bias, pad=2)
grad_output = torch.randn_like(y)
ours = torch.autograd.grad(y, (x, weight, bias), grad_output)

theirs = torch.conv_tbc(x, weight, bias, 2)
same = zip(ours, torch.autograd.grad(theirs, (x, weight, bias), grad_output), strict=True)
print(all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in same))
# True
