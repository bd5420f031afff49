"""ELU with its gradient in PyTorch, beside PyTorch's own."""

import torch

import aclnn.torch

torch.manual_seed(7)
x = torch.randn(4, 5, requires_grad=True)
target = torch.randn(4, 5)

((aclnn.torch.elu(x, alpha=1.5) - target) ** 2).sum().backward()
ours, x.grad = x.grad, None

((torch.nn.functional.elu(x, alpha=1.5) - target) ** 2).sum().backward()
print(torch.allclose(ours, x.grad))
# True
